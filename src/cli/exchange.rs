//! `export`, `import`, `append`: the log as text, and text as events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::cli::args;
use crate::cli::error::{Failure, exit};
use crate::cli::output::{Output, stdout_failure};
use crate::cli::store;
use crate::event::Event;
use crate::event::canonical::{self, Strict};
use crate::id::{IdempotencyKey, StreamName, Version};
use crate::log::{Append, Entry, Expectation, Import, LINE_BYTES_MAX, Log as _, Mode, Records as _};
use crate::world::write;

/// Writes the log as NDJSON.
pub(super) fn export(args: &args::Export, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let reader = store::reader(&store::path(log)?)?;
    let mut progress = output.progress("events exported");
    let mut at = |seq: crate::id::Seq| progress.at(seq.0);
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(io::stdout().lock());
        reader.export(&mut out, &mut at).map_err(|error| store::of_export(&error))?;
        out.flush().map_err(stdout_failure)?;
        return Ok(exit::OK);
    };
    let anchor = write::new_file_with(path, |file| {
        let mut out = BufWriter::new(file);
        let anchor = reader.export(&mut out, &mut at).map_err(|error| store::of_export(&error))?;
        out.flush().map_err(|error| Failure::of("io", exit::ERROR, &error))?;
        Ok::<_, Failure>(anchor)
    })
    .map_err(|error| {
        Failure::of("io", exit::ERROR, &error).next("name a file that does not exist yet, in a writable folder")
    })??;
    if output.json {
        output.value(&json!({"schema": 1, "file": path.to_string_lossy(), "anchor": anchor}))?;
    }
    output.say(&format!("{} events are in {}; the anchor is {anchor}", anchor.seq, path.display()));
    Ok(exit::OK)
}

/// Reads a log from NDJSON.
pub(super) fn import(args: &args::Import, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let mut from = whole(&args.file)?;
    let path = store::path(log)?;
    let writer = store::writer(&path, args.writing.busy_ms)?;
    let mode = match (args.as_new, args.unverified) {
        (true, _) => Mode::AsNew,
        (false, true) => Mode::Unverified,
        (false, false) => Mode::Verified,
    };
    let mut progress = output.progress("lines read");
    let import = Import { mode, at_ms: store::now_ms() };
    let imported = writer
        .import(&mut *from, &import, &mut |line| progress.at(line))
        .map_err(|error| store::of_import(&error, mode))?;
    drop(progress);
    if output.json {
        output.done(&json!({"schema": 1, "events": imported.events, "anchor": imported.anchor}))?;
    } else {
        output.say(&format!("{} events imported; the log ends at {}", imported.events, imported.anchor));
    }
    Ok(exit::OK)
}

/// One event as it is given to `append`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    stream: StreamName,
    kind: String,
    #[serde(default = "first_schema")]
    schema: u32,
    body: Strict,
}

fn first_schema() -> u32 {
    1
}

/// Appends events: all of them or none.
pub(super) fn append(args: &args::Append, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    for text in &args.expect {
        let (stream, version) = expectation(text)?;
        entries.push(Entry { stream, expected: Expectation::Version(version), events: Vec::new() });
    }
    let key = args.key.as_deref().map(IdempotencyKey::parse).transpose();
    let key = key.map_err(|error| Failure::usage(error.to_string()))?;
    let mut from = input(&args.file)?;
    let mut number = 0;
    while let Some(text) = next_line(&mut *from, &mut number)? {
        let (stream, event) = event(&text, number)?;
        match entries.last_mut() {
            Some(entry) if entry.stream == stream && !entry.events.is_empty() => entry.events.push(event),
            Some(_) | None => entries.push(Entry { stream, expected: Expectation::Any, events: vec![event] }),
        }
    }
    let writer = store::writer(&store::path(log)?, args.writing.busy_ms)?;
    let append = Append { at_ms: store::now_ms(), key, unfenced: false };
    let appended = writer.append(&entries, &append).map_err(|error| store::of_append(&error))?;
    if output.json {
        output.done(
            &json!({"schema": 1, "first": appended.first, "anchor": appended.anchor, "frontiers": appended.frontiers}),
        )?;
    } else {
        output.say(&format!("the log ends at {}", appended.anchor));
    }
    Ok(exit::OK)
}

fn expectation(text: &str) -> Result<(StreamName, Version), Failure> {
    let wrong = || Failure::usage(format!("--expect {text:?} is not STREAM=VERSION"));
    let (stream, version) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((stream.parse().map_err(|_| wrong())?, Version(version.parse().map_err(|_| wrong())?)))
}

fn event(text: &[u8], number: u64) -> Result<(StreamName, Event), Failure> {
    let wrong = |error: &(dyn std::error::Error + 'static)| {
        let mut failure = Failure::of("line", exit::ERROR, error);
        failure.message = format!("line {number}: {}", failure.message);
        failure.next("nothing was appended; give one object a line with `stream`, `kind`, `body`")
    };
    let line: Line = serde_json::from_slice(text).map_err(|error| wrong(&error))?;
    let body = canonical::write(&line.body.0).map_err(|error| wrong(&error))?;
    let event = Event::decode(&line.stream, &line.kind, line.schema, &body).map_err(|error| wrong(&error))?;
    Ok((line.stream, event))
}

/// The next line that is not blank, bounded.
fn next_line(from: &mut dyn BufRead, number: &mut u64) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        let mut line = Vec::new();
        let read = from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| Failure::of("io", exit::ERROR, &error))?;
        if read == 0 {
            return Ok(None);
        }
        *number += 1;
        if read as u64 == LINE_BYTES_MAX {
            let text = format!("line {number} is longer than {LINE_BYTES_MAX} bytes");
            return Err(Failure::new("line", exit::ERROR, text).next("nothing was appended"));
        }
        if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            return Ok(Some(line));
        }
    }
}

/// The input, at its end before anything is begun: whoever feeds a pipe slowly keeps no other writer waiting.
fn whole(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path != Path::new("-") && path.is_file() {
        return input(path);
    }
    let failed = |error: io::Error| {
        let next = "nothing was imported; see what feeds it, and the space in TMPDIR";
        Failure::of("io", exit::ERROR, &error).or_next(next)
    };
    let mut kept = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut *input(path)?, &mut kept).and_then(|_| kept.rewind()).map_err(failed)?;
    Ok(Box::new(BufReader::new(kept)))
}

fn input(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path).map_err(|error| {
        let mut failure = Failure::of("io", exit::ERROR, &error);
        failure.message = format!("{}: {}", path.display(), failure.message);
        failure.next("name a readable file, or - for stdin")
    })?;
    Ok(Box::new(BufReader::new(file)))
}
