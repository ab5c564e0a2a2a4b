//! Words for people: arguments, text, JSON, exit codes. Decides nothing: each command asks the library and prints.

mod announce;
mod args;
mod ask;
mod changes;
mod demo;
mod error;
mod exchange;
mod following;
mod hook;
mod installed;
mod integrity;
mod line;
mod listing;
mod output;
#[cfg(feature = "probe")]
mod probe;
mod question;
mod showing;
#[cfg(feature = "sim")]
mod simulate;
mod spawn;
mod store;
mod upkeep;
mod walk;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use self::args::{Cli, Command, When};
use self::error::{Failure, exit};
use self::output::Output;

/// Runs the command and gives its exit code. Prints; never panics.
///
/// Exit codes: 0 resume or success · 1 error · 2 usage · 10 recover · 11 fresh · 12 busy · 14 unknown · 15 drift · 20 a probe differs ·
/// 65 corrupt log · 75 busy log, try again.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && announce::is_meant(&arguments) => {
            return announce::misread(&error, &arguments);
        }
        Err(error) => return usage(&error, &arguments),
    };
    let output = Output::new(cli.json, cli.quiet, cli.verbose, cli.color);
    match dispatch(&cli, &output) {
        Ok(code) => code,
        Err(failure) => report(&failure, &output),
    }
}

fn dispatch(cli: &Cli, output: &Output) -> Result<u8, Failure> {
    let log = cli.log.as_deref();
    match &cli.command {
        Command::Preflight(args) => ask::preflight(args, log, output),
        Command::Spawn(args) => spawn::spawn(args, log, output),
        Command::Bind(args) => ask::bind(args, log, output),
        Command::Log(args) => listing::log(args, log, output),
        Command::Show(args) => showing::show(args, log, output),
        Command::Follow(args) => following::follow(args, log, output),
        Command::Anchor(args) => integrity::anchor(args, log, output),
        Command::Verify(args) => integrity::verify(args, log, output),
        Command::Export(args) => exchange::export(args, log, output),
        Command::Import(args) => exchange::import(args, log, output),
        Command::Append(args) => exchange::append(args, log, output),
        Command::Hook(args) => hook::hook(args, log, output),
        #[cfg(feature = "probe")]
        Command::Probe(args) => probe::probe(args, output),
        Command::Sweep(args) | Command::Reconcile(args) => upkeep::upkeep(args, log, output),
        #[cfg(feature = "sim")]
        Command::Simulate(args) => simulate::simulate(args, output),
        Command::Demo(args) => demo::demo(args, output),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "throughline", &mut script);
            output.data(&String::from_utf8_lossy(&script))?;
            Ok(exit::OK)
        }
        Command::Man => {
            let mut page = Vec::new();
            for command in pages(Cli::command()) {
                let rendered = clap_mangen::Man::new(command).render(&mut page);
                rendered.map_err(|error| Failure::of("io", exit::ERROR, &error))?;
            }
            output.data(&String::from_utf8_lossy(&page))?;
            Ok(exit::OK)
        }
    }
}

/// A command and all that stand below it, each by its whole name.
fn pages(command: clap::Command) -> Vec<clap::Command> {
    let name = command.get_name().to_owned();
    let below = command.get_subcommands().map(|sub| sub.clone().name(format!("{name} {}", sub.get_name())));
    let below: Vec<_> = below.flat_map(pages).collect();
    std::iter::once(command).chain(below).collect()
}

fn report(failure: &Failure, output: &Output) -> u8 {
    if failure.class != "closed_pipe" {
        if output.json {
            // The sentence on stderr still says it where stdout is gone.
            let _ = output.value(&failure.to_json());
        }
        Output::complain(&format!("throughline: {}", failure.sentence()));
    }
    failure.code
}

/// Clap's own words: help and version are data; a usage error is talk, and JSON where JSON was asked for.
fn usage(error: &clap::Error, arguments: &[OsString]) -> u8 {
    let json = arguments.iter().any(|argument| argument == "--json");
    let output = Output::new(json, false, false, When::Auto);
    if !error.use_stderr() {
        return match output.data(&error.render().to_string()) {
            Ok(()) => exit::OK,
            Err(failure) => failure.code,
        };
    }
    if json {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let mut failure = Failure::usage(first);
        if let Some(near) = nearest(error) {
            failure = failure.next(format!("did you mean {near}?"));
        }
        let _ = output.value(&failure.to_json());
    }
    let _ = error.print();
    exit::USAGE
}

/// The words that clap thinks were meant.
fn nearest(error: &clap::Error) -> Option<String> {
    let given = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let found = given.into_iter().find_map(|kind| error.get(kind))?;
    if let ContextValue::Strings(words) = found {
        return (!words.is_empty()).then(|| words.join(" or "));
    }
    if let ContextValue::String(word) = found { Some(word.clone()) } else { None }
}
