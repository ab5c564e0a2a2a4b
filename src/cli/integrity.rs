//! `anchor` and `verify`: whether the log is what it was.

use std::path::Path;

use serde_json::json;

use crate::cli::args::{self, Verify};
use crate::cli::error::{Failure, chain_of, exit};
use crate::cli::output::Output;
use crate::cli::showing::event_at;
use crate::cli::store;
use crate::id::{Anchor, Seq};
use crate::log::Records as _;

/// Prints the log's end, now or at an earlier event.
pub(super) fn anchor(args: &args::Anchor, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let reader = store::reader(&store::path(log)?)?;
    let anchor = match args.at {
        None => reader.anchor().map_err(|error| store::of_log(&error))?,
        Some(at) => {
            let event = event_at(&*reader, Seq(at))?;
            Anchor { seq: event.seq, chain: event.chain }
        }
    };
    if output.json {
        output.value(&json!({"schema": 1, "store": reader.store(), "anchor": anchor}))?;
    } else {
        output.data(&format!("{anchor}\n"))?;
    }
    Ok(exit::OK)
}

/// Refolds everything and says what is wrong.
pub(super) fn verify(args: &Verify, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let known = args.anchor.as_deref().map(str::parse::<Anchor>).transpose();
    let known = known.map_err(|error| Failure::usage(error.to_string()))?;
    let reader = store::reader(&store::path(log)?)?;
    let mut progress = output.progress("events verified");
    let found = reader.verify(known, &mut |seq| progress.at(seq.0)).map_err(|error| {
        store::of_log(&error).next("restore the log from a copy or an export, and keep this file as evidence")
    })?;
    drop(progress);
    let problems: Vec<_> = found
        .problems
        .iter()
        .map(|problem| json!({"seq": problem.seq, "stream": problem.stream, "detail": chain_of(problem)}))
        .collect();
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    let sound = found.is_sound();
    if output.json {
        output.value(&json!({
            "schema": 1, "ok": sound, "store": found.store, "anchor": found.anchor, "events": found.events,
            "streams": found.streams, "problems": problems, "notes": notes,
        }))?;
    } else if sound {
        output.data(&format!("ok: {} events in {} streams, {}\n", found.events, found.streams, found.anchor))?;
    }
    for note in &notes {
        output.say(&format!("throughline: note: {note}"));
    }
    if !sound {
        for problem in &found.problems {
            output.say(&format!("throughline: {}", chain_of(problem)));
        }
        output.say(
            "throughline: the log does not hold; restore it from a copy or an export, and keep this file as evidence",
        );
    }
    Ok(if sound { exit::OK } else { exit::CORRUPT })
}
