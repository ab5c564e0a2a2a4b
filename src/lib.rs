//! Whether the next spawn of a coding agent continues the conversation that the person sees: asked before the spawn,
//! answered from an append-only log, the disk as it is, and rules that were observed on the agents themselves.
//!
//! ```no_run
//! use throughline::chain::{ledger, observe::RealView, preflight, Ledger, Request};
//! use throughline::id::{AgentId, ProviderName};
//! use throughline::log::Reader;
//! use throughline::provider::ConfigDir;
//! use throughline::world::{clock, process};
//!
//! let login = ConfigDir::Named("/home/me/.claude-work".into());
//! let mut request = Request::new(ProviderName::parse("claude")?, Some(login), "/home/me/app");
//! request.session = Some("2f6c3e0a-0000-4000-8000-000000000001".into());
//! request.agent = Some(AgentId::parse("marks")?);
//!
//! let log = Reader::open("/home/me/.local/state/throughline/log.db".as_ref())?;
//! let ledger = ledger::read(&*log, &request)?;
//! let receipt = preflight(&ledger, &request, &mut RealView::new(clock::now_ms(), process::own()?))?;
//! println!("{} {:?}", receipt.verdict().verdict, receipt.verdict().session_id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Three truths
//!
//! A verdict is right only if three things are: **the log** (what happened; the only thing that knows that an id which
//! still exists is stale), **the disk** (what is there now) and **the provider** (what its CLI really does with it). So
//! there are three inputs, each a value, and the decision is pure:
//!
//! ```text
//! verdict = decide( fold(log), snapshot, request )
//! ```
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | agent | one long-lived assistant with one conversation |
//! | session | one provider conversation file and its id |
//! | login | a provider's config dir plus the identity signed in there |
//! | pane | where a person sees an agent; may hold a session id, may render the history of one |
//! | segment | one provider process, from spawn to exit |
//! | chain, head | an agent's segments in log order; the head is where the conversation was last *confirmed* to be |
//! | copy, marker, token | a session file relocated for one spawn; the small file that says whose it is; the id that ties both to the log |
//! | lease | one live driver per agent, across all processes of the host |
//! | snapshot | the answers of the disk and the process table that a decision asked for, as a value |
//! | verdict, receipt | the answer of a preflight; the verdict with what it rests on |
//!
//! # Floors
//!
//! A file imports only what stands above it here; a test keeps it so.
//!
//! | floor | |
//! |---|---|
//! | [`id`] | names: newtypes with their grammar |
//! | [`event`] | everything that can happen, and its canonical bytes |
//! | [`snapshot`] | questions about the world and their answers, as values |
//! | [`world`] | the doors: files, processes, clock, environment; beside them only the log's own storage touches a disk |
//! | [`log`] | the append-only store: digests, chains, memo, verify, export, import |
//! | [`provider`] | what each agent CLI does, as rules over a view |
//! | [`chain`] | an agent's conversation: state, gate, preflight; lease, spawn, relocation, sweep |
//! | `sim` | the protocols on a machine that can break, every order and every death explored (feature `sim`) |
//! | `probe` | the installed agent itself, asked whether the rules hold (feature `probe`) |
//! | `cli` | words for people (feature `cli`) |
//!
//! # Invariants
//!
//! - The head moves only to a place that was confirmed, by compare-and-set; an attempt never moves it.
//! - With a chain, only its head is ever resumed. Never across identities.
//! - *Absent* is not *unreadable*: what could not be read is `unknown`, never `fresh`.
//! - Order is log order. No clock decides anything.
//! - A reader changes nothing on disk but SQLite's own `-shm`; no conversation text and no secret is ever in the log.
//! - A receipt has no public constructor: it can be held, compared and refused, not made up.

pub mod chain;
#[cfg(feature = "cli")]
pub mod cli;
pub mod event;
pub mod id;
pub mod log;
#[cfg(feature = "probe")]
pub mod probe;
pub mod provider;
#[cfg(feature = "sim")]
pub mod sim;
pub mod snapshot;
pub mod world;
