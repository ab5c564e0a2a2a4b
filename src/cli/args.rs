//! The command line's grammar.

pub(super) mod hook;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::event::{AgentEvent, AuditEvent, HookEvent};

/// Says, before a coding agent is spawned, whether it will continue the conversation the person sees.
#[derive(Parser, Debug)]
#[command(name = "throughline", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub(super) struct Cli {
    /// The log; else $THROUGHLINE_LOG, else $XDG_STATE_HOME/throughline/log.db, else ~/.local/state/throughline/log.db
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) log: Option<PathBuf>,
    /// Print JSON on stdout, errors included
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only a verdict's word, and no talk on stderr
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
    /// Print the evidence of a verdict too
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(super) verbose: bool,
    /// When to use colours; NO_COLOR is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: When,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// When colours are used.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    /// On a terminal without NO_COLOR
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

const EXIT_CODES: &str = "Exit codes: 0 resume or success, 1 error, 2 usage, 10 recover, 11 fresh, 12 busy, 14 unknown, 15 drift, \
    20 a probe differs, 65 the log is corrupt or not one, 75 the log is busy: try again.";

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Say what the next spawn will do to a conversation; changes nothing
    Preflight(Preflight),
    /// Start an agent's CLI: what `preflight` said is what happens, written down as it happens
    Spawn(Spawn),
    /// Adopt an existing conversation as an agent's
    Bind(Bind),
    /// List the events of the log
    Log(Listing),
    /// Show one event and what it changed, or what the log knows of one agent
    Show(Show),
    /// Print events as they are appended, by whichever process
    Follow(Follow),
    /// Print SEQ:CHAIN of the log's end, to be kept elsewhere
    Anchor(Anchor),
    /// Refold the whole log and name the first bad event
    Verify(Verify),
    /// Write the log as NDJSON
    Export(Export),
    /// Read a log from NDJSON
    Import(Import),
    /// Append events given as NDJSON lines with `stream`, `kind`, `body`
    Append(Append),
    /// Have Claude Code itself say which session it is in, by its hooks
    Hook(hook::Hook),
    /// Run an installed agent in invented worlds and say where our rules about it do not hold
    #[cfg(feature = "probe")]
    Probe(Probe),
    /// Explore the protocols on a simulated machine: every order, death, failed door and power cut of the stated scopes
    #[cfg(feature = "sim")]
    Simulate(Simulate),
    /// Remove what an agent's dead spawns left, and say in the log what they did not live to say
    Sweep(Upkeep),
    /// As `sweep`: what is said without a spawn, and what is removed, are one act
    Reconcile(Upkeep),
    /// Play two incidents in a temporary folder and show what a naive check would have said
    Demo(Demo),
    /// Print a completion script
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

/// Which agent is probed, and how.
#[cfg(feature = "probe")]
#[derive(Args, Debug)]
pub(super) struct Probe {
    /// Whose CLI
    #[arg(value_parser = ["claude"])]
    pub(super) agent: String,
    /// Its program; else the one on the PATH
    #[arg(long, value_name = "PATH")]
    pub(super) bin: Option<PathBuf>,
    /// Only cases whose name contains one of these words, with commas between
    #[arg(long, value_name = "FILTER")]
    pub(super) cases: Option<String>,
    /// How many runs at a time; else as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) jobs: Option<u16>,
    /// So many random worlds beyond the fixed cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) random: usize,
    /// What the random worlds are made from
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,
    /// Judge the rules of this version instead of the installed one
    #[arg(long, value_name = "V")]
    pub(super) rules_of: Option<String>,
    #[command(flatten)]
    pub(super) tables: Tables,
    /// Learn this version's own rules from what it does, judge those, and add them to this file
    #[arg(long, value_name = "RULES", conflicts_with = "rules_of")]
    pub(super) save: Option<PathBuf>,
    /// Print the names of the fixed cases and end
    #[arg(long)]
    pub(super) list: bool,
}

/// What is explored.
#[cfg(feature = "sim")]
#[derive(Args, Debug)]
pub(super) struct Simulate {
    /// Only this scope
    #[arg(long, value_name = "NAME")]
    pub(super) scope: Option<String>,
    /// Print the scopes and end
    #[arg(long)]
    pub(super) list: bool,
    /// Print the canaries and end: machines with one thing wrong, each of which must break a property
    #[arg(long)]
    pub(super) list_canaries: bool,
    /// Explore this canary; 20 where it is found, as it must be
    #[arg(long, value_name = "NAME", conflicts_with_all = ["scope", "schedule"])]
    pub(super) canary: Option<String>,
    /// Also the scopes that take minutes
    #[arg(long)]
    pub(super) exhaustive: bool,
    /// Compare the counts with those that this version is known to have; 20 where they differ
    #[arg(long, requires = "exhaustive")]
    pub(super) check: bool,
    /// Run so many random worlds instead
    #[arg(long, value_name = "N", conflicts_with_all = ["scope", "canary", "exhaustive"])]
    pub(super) seeds: Option<u64>,
    /// The first of their seeds
    #[arg(long, value_name = "S", default_value_t = 1, requires = "seeds")]
    pub(super) seed: u64,
    /// Replay one schedule of --scope, step by step
    #[arg(long, value_name = "S", requires = "scope")]
    pub(super) schedule: Option<String>,
    /// End a scope after so many schedules
    #[arg(long, value_name = "N")]
    pub(super) schedules_max: Option<u64>,
    /// Go on after the first violation of a scope
    #[arg(long)]
    pub(super) keep_going: bool,
    /// Go on also from moments that were met before: to check that leaving them out loses nothing
    #[arg(long)]
    pub(super) no_pruning: bool,
}

/// How a command writes to the log.
#[derive(Args, Debug)]
pub(super) struct Writing {
    /// How long to wait for other writers before the answer is "busy, try again" (75)
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    pub(super) busy_ms: u64,
}

/// Rules beside those built in.
#[derive(Args, Debug)]
pub(super) struct Tables {
    /// A file of rules that `probe --save` wrote (may be given several times); else $THROUGHLINE_RULES
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Vec<PathBuf>,
}

/// What will be spawned. Defaults are what the provider itself would use here.
#[derive(Args, Debug)]
pub(super) struct Question {
    /// Whose CLI
    #[arg(long, default_value = "claude")]
    pub(super) provider: String,
    /// Its version; else what the installed program says of itself, else the newest observed rules
    #[arg(long, value_name = "V")]
    pub(super) provider_version: Option<String>,
    /// Its program, to be asked for its version; else the one on the PATH
    #[arg(long, value_name = "PATH", conflicts_with = "provider_version")]
    pub(super) bin: Option<PathBuf>,
    #[command(flatten)]
    pub(super) tables: Tables,
    /// The login's folder, literally as the child's variable will hold it (even empty)
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(super) config_dir: Option<OsString>,
    /// No login's folder is known
    #[arg(long, conflicts_with = "config_dir")]
    pub(super) no_config_dir: bool,
    /// A further login's folder, searched for evidence only (may be given several times)
    #[arg(long, value_name = "D")]
    pub(super) also: Vec<OsString>,
    /// The working directory of the child; else this one
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(super) cwd: Option<OsString>,
    /// The session id that is held
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub(super) session: Option<String>,
    /// The session id of the history that the pane renders
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    pub(super) history: Option<String>,
    /// The agent, where the log is to be asked
    #[arg(long, value_name = "UID")]
    pub(super) agent: Option<String>,
    /// The agent whose conversation a first spawn may continue
    #[arg(long, value_name = "UID")]
    pub(super) fork_of: Option<String>,
    /// The key of the identity signed in, where the caller knows better than the login's folder
    #[arg(long, value_name = "KEY")]
    pub(super) identity: Option<String>,
    /// The flag that resumes, if not the provider's own; empty: none
    #[arg(long, value_name = "F", allow_hyphen_values = true)]
    pub(super) resume_flag: Option<String>,
    /// A fork is asked for
    #[arg(long)]
    pub(super) fork: bool,
    /// Which way a session that lies elsewhere is reached, where the agent has several: by_path or by_copy
    #[arg(long, value_name = "MEANS", value_parser = ["by_path", "by_copy"])]
    pub(super) means: Option<String>,
    /// Replace a leading ~ of paths by the home directory (agents do not)
    #[arg(long)]
    pub(super) expand_home: bool,
    /// Read transcripts whole, whatever their size
    #[arg(long)]
    pub(super) deep: bool,
    /// The epoch of the lease that the caller holds itself
    #[arg(long, value_name = "EPOCH")]
    pub(super) lease: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Preflight {
    #[command(flatten)]
    pub(super) question: Question,
    /// The CLI will be told to continue without naming an id
    #[arg(long = "continue")]
    pub(super) continue_newest: bool,
    /// Append `verdict_given` to the agent's audit stream
    #[arg(long, requires = "agent")]
    pub(super) record: bool,
    /// Exit with 0 whatever the verdict
    #[arg(long)]
    pub(super) exit_zero: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

#[derive(Args, Debug)]
pub(super) struct Spawn {
    #[command(flatten)]
    pub(super) question: Question,
    /// What `preflight --json` printed: anything else than that is drift (15), and nothing is started
    #[arg(long, value_name = "FILE")]
    pub(super) receipt: Option<PathBuf>,
    /// Write what happened to this file as JSON; else a line on stderr
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// When the agent refuses the session: recover (another of this project, else a new one) or stop; without a receipt:
    /// recover
    #[arg(long, value_name = "WHAT", value_parser = ["recover", "stop"])]
    pub(super) on_reject: Option<String>,
    /// Start it although it cannot be told what will happen
    #[arg(long)]
    pub(super) anyway: bool,
    /// Where a person sees it
    #[arg(long, value_name = "PANE")]
    pub(super) pane: Option<String>,
    #[command(flatten)]
    pub(super) writing: Writing,
    /// The agent's program and its arguments; what resumes is added before the first -- of it, else at its end
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

/// Whose leftovers.
#[derive(Args, Debug)]
pub(super) struct Upkeep {
    /// This agent's
    #[arg(long, value_name = "UID", required_unless_present = "all")]
    pub(super) agent: Option<String>,
    /// Those of every agent in the log
    #[arg(long, conflicts_with = "agent")]
    pub(super) all: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

#[derive(Args, Debug)]
pub(super) struct Bind {
    #[command(flatten)]
    pub(super) question: Question,
    /// Move an agent's head that is elsewhere
    #[arg(long)]
    pub(super) replace: bool,
    /// Print the events instead of appending them
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

/// Which events.
#[derive(Args, Debug)]
pub(super) struct Filter {
    /// Only this agent's streams
    #[arg(long, value_name = "UID")]
    pub(super) agent: Option<String>,
    /// Only this kind of event (may be given several times)
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(kinds()))]
    pub(super) kind: Vec<String>,
}

/// Every kind of event that this build knows.
fn kinds() -> Vec<&'static str> {
    [AgentEvent::KINDS, AuditEvent::KINDS, HookEvent::KINDS].concat()
}

#[derive(Args, Debug)]
pub(super) struct Listing {
    /// At most the last N
    #[arg(short = 'n', value_name = "N")]
    pub(super) most: Option<u64>,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// The log as it was when this event was its last
    #[arg(long, value_name = "SEQ")]
    pub(super) at: Option<u64>,
    /// From this event on
    #[arg(long, value_name = "SEQ")]
    pub(super) from: Option<u64>,
    /// Newest first
    #[arg(long)]
    pub(super) reversed: bool,
}

#[derive(Args, Debug)]
pub(super) struct Show {
    /// An event's seq, or an agent's uid with --agent
    #[arg(required_unless_present = "agent", conflicts_with = "agent")]
    pub(super) seq: Option<u64>,
    /// What the log knows of this agent
    #[arg(long, value_name = "UID")]
    pub(super) agent: Option<String>,
    /// What it knew when this event was its last
    #[arg(long, value_name = "SEQ", requires = "agent", conflicts_with = "seq")]
    pub(super) at: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Follow {
    /// From this event on, which may not be there yet; else what comes from now on. To resume: the last one seen, and one
    #[arg(long, value_name = "SEQ", conflicts_with = "most")]
    pub(super) from: Option<u64>,
    /// Begin with the last N
    #[arg(short = 'n', value_name = "N")]
    pub(super) most: Option<u64>,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Wait for a log that is not there yet
    #[arg(long)]
    pub(super) wait: bool,
    /// End when nothing was printed for so long
    #[arg(long, value_name = "MS")]
    pub(super) until_idle: Option<u64>,
    /// End after so long
    #[arg(long = "for", value_name = "MS")]
    pub(super) for_ms: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Anchor {
    /// As it was when this event was the log's last
    #[arg(long, value_name = "SEQ")]
    pub(super) at: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Verify {
    /// What `anchor` printed once: also recognise a log that was cut off
    #[arg(long, value_name = "SEQ:CHAIN")]
    pub(super) anchor: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct Export {
    /// Where to write; else stdout. An existing file is not overwritten.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct Import {
    /// The NDJSON file, or - for stdin
    pub(super) file: PathBuf,
    /// Under a new store id, digests made anew
    #[arg(long, conflicts_with = "unverified")]
    pub(super) as_new: bool,
    /// Hand-written lines: only stream, kind, body, at_ms
    #[arg(long)]
    pub(super) unverified: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

#[derive(Args, Debug)]
pub(super) struct Append {
    /// The NDJSON file, or - for stdin
    #[arg(default_value = "-")]
    pub(super) file: PathBuf,
    /// The version that a stream must have: STREAM=VERSION (may be given several times)
    #[arg(long, value_name = "STREAM=VERSION")]
    pub(super) expect: Vec<String>,
    /// A repeated append with this key returns the first one's result
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
    #[command(flatten)]
    pub(super) writing: Writing,
}

#[derive(Args, Debug)]
pub(super) struct Demo {
    /// Play in this new or empty folder and leave it
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
}
