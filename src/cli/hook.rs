//! `hook install` and `hook uninstall`: an agent's settings, edited so that it runs `hook claude`, and back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::cli::announce::announce;
use crate::cli::args::hook::{Hook, HookCommand, Install, Settings, Uninstall};
use crate::cli::error::{Failure, exit};
use crate::cli::output::{Output, visible};
use crate::id::AgentId;
use crate::provider::claude::hooks::{self, After, Edit, PROGRAM, SETTINGS};
use crate::world::replace::{ReplaceError, Replacing};

/// How long to wait for others that edit the same settings.
const WAIT: Duration = Duration::from_secs(5);

pub(super) fn hook(args: &Hook, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    match &args.command {
        HookCommand::Claude(args) => Ok(announce(args, log)),
        HookCommand::Install(args) => install(args, log, output),
        HookCommand::Uninstall(args) => uninstall(args, output),
    }
}

fn install(args: &Install, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let command = command(args, log)?;
    let mut events: Vec<String> = Vec::new();
    for event in &args.events {
        if !events.contains(event) {
            events.push(event.clone());
        }
    }
    let done = edit(&args.settings, '+', output, |text| hooks::install(text, &events, &command))?;
    let (file, when) = (&done.file, events.join(", "));
    if output.json {
        let more = json!({"command": command, "events": events, "inserted": done.edit.pieces});
        done.print(more, output)?;
    }
    output.say(&match (&done.edit.after, args.settings.dry_run) {
        (After::Same, _) => format!("{file} runs it on {when} already; there is nothing to do"),
        (_, true) => format!("{file} would run it on {when}; nothing was changed"),
        (_, false) => format!("{file} runs it on {when} from now on: {command}"),
    });
    if args.agent.is_none() {
        output.say("the hook takes the agent from $THROUGHLINE_AGENT, and writes nothing down where that is not set");
    }
    Ok(exit::OK)
}

fn uninstall(args: &Uninstall, output: &Output) -> Result<u8, Failure> {
    let done = edit(&args.settings, '-', output, |text| match text {
        Some(text) => hooks::uninstall(text),
        None => Ok(Edit { after: After::Same, pieces: Vec::new() }),
    })?;
    if output.json {
        done.print(json!({"removed": done.edit.pieces}), output)?;
    }
    let file = &done.file;
    output.say(&match (&done.edit.after, args.settings.dry_run) {
        (After::Same, _) => format!("{file} runs no hook of throughline; there is nothing to do"),
        (_, true) => format!("the hook would be taken out of {file}; nothing was changed"),
        (After::Gone, false) => format!("{file} held nothing but the hook, and is removed"),
        (After::Text(_), false) => format!("the hook is taken out of {file}"),
    });
    Ok(exit::OK)
}

/// An edit, and the file that it is of.
struct Done {
    file: String,
    edit: Edit,
    dry_run: bool,
}

impl Done {
    fn print(&self, more: serde_json::Value, output: &Output) -> Result<(), Failure> {
        let changed = self.edit.after != After::Same && !self.dry_run;
        let mut value = json!({"schema": 1, "file": self.file, "changed": changed, "dry_run": self.dry_run});
        if let (Some(fields), serde_json::Value::Object(more)) = (value.as_object_mut(), more) {
            fields.extend(more);
        }
        output.value(&value)
    }
}

/// Reads the settings, has `make` say what becomes of them, and does that; with `--dry-run` it is printed instead, each
/// line behind `sign`.
fn edit(
    settings: &Settings,
    sign: char,
    output: &Output,
    make: impl FnOnce(Option<&str>) -> Result<Edit, hooks::EditError>,
) -> Result<Done, Failure> {
    let path = settings.config_dir.join(SETTINGS);
    let of = |error: ReplaceError| {
        let next = "see what the system says of the file and its folder; nothing was changed";
        Failure::of("settings", exit::ERROR, &error).or_next(next)
    };
    let replacing = Replacing::begin(&path, WAIT).map_err(of)?;
    let text = replacing.bytes().map(std::str::from_utf8).transpose();
    let text = text.map_err(|error| Failure::of("settings", exit::ERROR, &error).or_next("make it UTF-8"))?;
    let edit = make(text).map_err(|error| {
        let mut failure = Failure::of("settings", exit::ERROR, &error);
        failure.message = format!("{}: {}", path.display(), failure.message);
        failure
    })?;
    if settings.dry_run {
        if !output.json {
            output.data(&diff(&edit.pieces, sign))?;
        }
    } else {
        match &edit.after {
            After::Same => {}
            After::Text(text) => replacing.replace(text.as_bytes()).map_err(of)?,
            After::Gone => replacing.remove().map_err(of)?,
        }
    }
    Ok(Done { file: path.to_string_lossy().into_owned(), edit, dry_run: settings.dry_run })
}

/// The lines of what goes in or out. A line that holds only the comma which joins a piece to what is before it says nothing.
fn diff(pieces: &[String], sign: char) -> String {
    let lines = pieces.iter().flat_map(|piece| piece.lines());
    let lines = lines.filter(|line| !matches!(line.trim(), "" | ","));
    lines.map(|line| format!("{sign}{}\n", visible(line))).collect()
}

/// The command that the hook will run.
fn command(args: &Install, log: Option<&Path>) -> Result<String, Failure> {
    let agent = args.agent.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| Failure::usage(error.to_string()))?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(|error| {
            Failure::of("program", exit::ERROR, &error).or_next("name the program's path with --program")
        })?,
    };
    if program.file_name().is_none_or(|name| name != PROGRAM) {
        let text =
            format!("the program {program:?} is not called {PROGRAM}, so that its hook could not be found again");
        return Err(Failure::new("program", exit::ERROR, text).next("name one that is with --program"));
    }
    let log = log.map(absolute).transpose()?;
    Ok(hooks::command(&utf8(program)?, log.as_deref(), agent.as_ref().map(AgentId::as_str)))
}

/// A hook runs in a folder of the agent's choice.
fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path);
    utf8(path.map_err(|error| Failure::of("path", exit::ERROR, &error).or_next("spell the path of the log out"))?)
}

fn utf8(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        let text = format!("the path {path:?} is not UTF-8");
        Failure::new("not_utf8", exit::ERROR, text).next("settings.json can name only paths that are")
    })
}
