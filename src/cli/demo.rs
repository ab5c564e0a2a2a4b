//! Two incidents, played in a folder of their own with real files and a real log: what a naive check would have said,
//! what the verdict is, and why.
//!
//! Needs no agent, no network and no login: a verdict needs only the files that an agent would have left.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::chain::{Ledger, Receipt, Request, ledger};
use crate::cli::args::Demo;
use crate::cli::ask::ask;
use crate::cli::error::{Failure, exit};
use crate::cli::output::Output;
use crate::cli::{listing, store};
use crate::event::{Route, VerdictWord};
use crate::id::{AgentId, ProviderName};
use crate::log::{Import, Log as _, Mode};
use crate::provider::ConfigDir;
use crate::world::write;

const OLD: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const NEW: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const TWIN: &str = "cccccccc-0000-4000-8000-000000000003";

/// One question of an incident, with the answer that the demo vouches for.
struct Expected {
    title: &'static str,
    verdict: VerdictWord,
    route: Route,
    session: Option<&'static str>,
}

/// Plays both incidents; fails if an answer is not the one that the story tells.
pub(super) fn demo(args: &Demo, output: &Output) -> Result<u8, Failure> {
    let temporary;
    let root = match &args.keep {
        Some(dir) => {
            write::empty_dir(dir).map_err(|error| {
                Failure::of("io", exit::ERROR, &error).next("give a folder that does not exist or is empty")
            })?;
            dir.clone()
        }
        None => {
            temporary = tempfile::Builder::new()
                .prefix("throughline-demo-")
                .tempdir()
                .map_err(|error| Failure::of("io", exit::ERROR, &error).next("set TMPDIR to a writable folder"))?;
            temporary.path().to_owned()
        }
    };
    // The agent names its folder after the physical path.
    let root = crate::world::files::real_path(&root).map_err(|error| Failure::of("io", exit::ERROR, &error))?;
    let mut stage = Stage { root, output, json: Vec::new() };
    stage.stale_but_valid()?;
    stage.two_copies()?;
    if output.json {
        output.value(&json!({"schema": 1, "demo": stage.json}))?;
    } else if args.keep.is_some() {
        output.data(&format!("Everything is in {}.\n", stage.root.display()))?;
    }
    Ok(exit::OK)
}

struct Stage<'a> {
    root: PathBuf,
    output: &'a Output,
    json: Vec<serde_json::Value>,
}

impl Stage<'_> {
    fn tell(&self, text: &str) -> Result<(), Failure> {
        if self.output.json || self.output.quiet {
            return Ok(());
        }
        // The folder's own name tells nobody anything.
        let text = text.replace(&*self.root.to_string_lossy(), "…");
        self.output.data(&format!("{text}\n"))
    }

    /// The pane holds an id that was right nine days ago. Its file is still there, so nothing ever fails.
    fn stale_but_valid(&mut self) -> Result<(), Failure> {
        self.tell("1. Stale, but still valid\n")?;
        self.tell(
            "   Nine days ago agent camper's conversation moved from session aaaaaaaa to bbbbbbbb. The pane still holds\n\
             \x20  aaaaaaaa. Its file exists and resumes without an error: the wrong conversation, and no warning.\n",
        )?;
        let place = self.place("stale")?;
        let old = place.session(&place.cwd, OLD, &["plan the trip", "pack the tent"])?;
        place.session(&place.cwd, NEW, &["plan the trip", "pack the tent", "book the ferry"])?;
        self.naive("the held id has a non-empty file", &old)?;
        let mut request = place.request(OLD);
        self.ask(
            &request,
            None,
            &Expected {
                title: "without a log: what the disk alone can say",
                verdict: VerdictWord::Resume,
                route: Route::Held,
                session: Some(OLD),
            },
        )?;
        let lines = [segment("monday", &place, OLD, None), segment("today", &place, NEW, None)].concat();
        let log = place.log("camper", &lines)?;
        request.agent = Some(uid("camper")?);
        self.ask(
            &request,
            Some(&log),
            &Expected {
                title: "with the log: the head is elsewhere",
                verdict: VerdictWord::Resume,
                route: Route::Redirect,
                session: Some(NEW),
            },
        )?;
        self.history(&log)
    }

    /// The same id in two project folders: the agent refuses both, although every search finds a file.
    fn two_copies(&mut self) -> Result<(), Failure> {
        self.tell("\n2. Two copies make the agent refuse\n")?;
        self.tell(
            "   Somebody copied session cccccccc into a second project folder, \"to be safe\". Asked from a third directory,\n\
             \x20  the agent finds two candidates and refuses: no conversation found. One copy would have resumed.\n",
        )?;
        let place = self.place("twins")?;
        let (here, there) = (self.dir("twins/app")?, self.dir("twins/backup")?);
        let original = place.session(&here, TWIN, &["fix the parser", "now the tests"])?;
        let mut request = place.request(TWIN);
        self.ask(
            &request,
            None,
            &Expected {
                title: "one copy, in another project's folder: the agent finds it",
                verdict: VerdictWord::Resume,
                route: Route::Held,
                session: Some(TWIN),
            },
        )?;
        place.session(&there, TWIN, &["fix the parser", "now the tests"])?;
        self.naive("a search of all projects finds a non-empty file", &original)?;
        self.ask(
            &request,
            None,
            &Expected {
                title: "two copies, without a log",
                verdict: VerdictWord::Fresh,
                route: Route::None,
                session: None,
            },
        )?;
        let log = place.log("fixer", &segment("only", &place, TWIN, Some(&original)))?;
        request.agent = Some(uid("fixer")?);
        self.ask(
            &request,
            Some(&log),
            &Expected {
                title: "two copies, with the log: it knows which file is the conversation, and has it read by its path",
                verdict: VerdictWord::Resume,
                route: Route::Relocate,
                session: Some(TWIN),
            },
        )?;
        self.history(&log)
    }

    fn naive(&self, why: &str, path: &str) -> Result<(), Failure> {
        self.tell(&format!("   A naive check says: continue ({why}: {path})\n"))
    }

    fn ask(&mut self, request: &Request, log: Option<&Path>, expected: &Expected) -> Result<(), Failure> {
        let ledger = match log {
            Some(path) => ledger::read(&*store::reader(path)?, request).map_err(|error| store::of_log(&error))?,
            None => Ledger::default(),
        };
        let receipt = ask(&ledger, request)?;
        self.tell(&format!("   Throughline, {}:", expected.title))?;
        self.tell(&indented(&self.output.verdict(&receipt)))?;
        self.json.push(json!({
            "title": expected.title,
            "receipt": receipt.to_json().map_err(|error| Failure::of("json", exit::ERROR, &error))?,
        }));
        if tells(&receipt, expected) {
            return Ok(());
        }
        let text = format!("the demo expected {} ({}) and got another verdict", expected.verdict, expected.route);
        Err(Failure::new("demo", exit::ERROR, text).next("please report it with this output"))
    }

    fn history(&self, log: &Path) -> Result<(), Failure> {
        self.tell("   The history that the answer rests on:")?;
        let lines = listing::all(&*store::reader(log)?, self.output)?;
        self.tell(&indented(&lines))
    }

    fn dir(&self, name: &str) -> Result<String, Failure> {
        let dir = self.root.join(name);
        write::create_dir(&dir).map_err(|error| Failure::of("io", exit::ERROR, &error))?;
        Ok(dir.to_string_lossy().into_owned())
    }

    fn place(&self, name: &str) -> Result<Scene, Failure> {
        Ok(Scene { config_dir: self.dir(&format!("{name}/login"))?, cwd: self.dir(&format!("{name}/work"))? })
    }
}

fn tells(receipt: &Receipt, expected: &Expected) -> bool {
    let verdict = receipt.verdict();
    verdict.verdict == expected.verdict
        && verdict.route == expected.route
        && verdict.session_id.as_deref() == expected.session
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("     {line}\n")).collect()
}

fn uid(text: &str) -> Result<AgentId, Failure> {
    AgentId::parse(text).map_err(|error| Failure::of("id", exit::ERROR, &error))
}

/// One login and one working directory.
struct Scene {
    config_dir: String,
    cwd: String,
}

impl Scene {
    fn request(&self, session: &str) -> Request {
        // The name is a constant of the provider's grammar.
        let provider = ProviderName::parse("claude").unwrap_or_else(|_| unreachable!());
        let mut request = Request::new(provider, Some(ConfigDir::Named(self.config_dir.clone())), self.cwd.clone());
        request.session = Some(session.into());
        request
    }

    /// A session file with one turn for each of `asked`, as the agent would have left it.
    fn session(&self, cwd: &str, id: &str, asked: &[&str]) -> Result<String, Failure> {
        let dir = format!("{}/projects/{}", self.config_dir, crate::provider::claude::slug(cwd));
        let path = format!("{dir}/{id}.jsonl");
        let mut text = String::new();
        let mut parent = None;
        for (index, words) in asked.iter().enumerate() {
            for (role, said) in [("user", *words), ("assistant", "Done.")] {
                let uuid = format!(
                    "{}-{index:04}-4000-8000-{}",
                    &id[..8],
                    if role == "user" { "0000000000a1" } else { "0000000000b2" }
                );
                let record = json!({"type": role, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "cwd": cwd,
                    "sessionId": id, "message": {"role": role, "content": said}});
                text.push_str(&format!("{record}\n"));
                parent = Some(uuid);
            }
        }
        write::create_dir(Path::new(&dir))
            .and_then(|()| write::new_file(Path::new(&path), text.as_bytes()))
            .map_err(|error| Failure::of("io", exit::ERROR, &error))?;
        Ok(path)
    }

    /// A log beside the login, with these hand-written lines.
    fn log(&self, agent: &str, lines: &str) -> Result<PathBuf, Failure> {
        let path = Path::new(&self.config_dir).with_file_name("log.db");
        let lines = lines.replace("AGENT", agent);
        let import = Import { mode: Mode::Unverified, at_ms: store::now_ms() };
        store::writer(&path, 5_000)?
            .import(&mut lines.as_bytes(), &import, &mut |_| {})
            .map_err(|error| store::of_import(&error, Mode::Unverified))?;
        Ok(path)
    }
}

/// One provider process, from spawn to exit, that confirmed a session.
fn segment(name: &str, place: &Scene, session: &str, path: Option<&str>) -> String {
    let Scene { config_dir, cwd } = place;
    let mut to = json!({"session": session, "config_dir": config_dir, "cwd": cwd, "provider": "claude"});
    if let Some(path) = path {
        to["path"] = json!(path);
    }
    [
        (
            "spawned",
            json!({"segment": name, "cwd": cwd, "config_dir": config_dir, "provider": "claude", "how": "fresh"}),
        ),
        ("session_reported", json!({"segment": name, "session": session})),
        ("turn_confirmed", json!({"segment": name, "session": session})),
        ("chain_head_moved", json!({"segment": name, "to": to})),
        ("segment_ended", json!({"segment": name, "reason": "exited", "code": 0})),
    ]
    .iter()
    .map(|(kind, body)| format!("{}\n", json!({"stream": "agent/AGENT", "kind": kind, "body": body})))
    .collect()
}
