//! `follow`: events as they are appended, by whichever process, for as long as somebody reads them.
//!
//! Nothing is lost and nothing comes twice: it goes on where it was after the log was busy, checkpointed or copied, and a
//! consumer that remembers the last seq goes on with `--from`. Damage ends it, and so does another file under the log's name.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::chain::fold::State;
use crate::cli::args;
use crate::cli::error::{Failure, exit};
use crate::cli::line::printed;
use crate::cli::listing::{self, is_known, wanted};
use crate::cli::output::Output;
use crate::cli::store::{self, Reader};
use crate::cli::walk::{Part, Wanted};
use crate::id::Seq;
use crate::log::{Class, Follow, LogError, OpenError, Records as _};
use crate::world::files::{self, Stat};
use crate::world::stdout;

/// How long to wait for an event before looking around: at the deadline, at the reader, at the file.
const LOOK: Duration = Duration::from_millis(200);

/// How long to wait before a log is looked for again, or asked again after an error.
const AGAIN: Duration = Duration::from_millis(50);

/// Prints events until it is stopped, nobody reads any more, or so long as was asked for.
pub(super) fn follow(args: &args::Follow, log: Option<&Path>, output: &Output) -> Result<u8, Failure> {
    let wanted = wanted(&args.filter)?;
    let patience = Patience::of(args);
    let path = store::path(log)?;
    let Some((reader, was_there)) = opened(&path, args.wait, &patience, output)? else { return Ok(exit::OK) };
    let it_was = files::stat(&path, true).ok();
    let end = reader.anchor().map_err(|error| store::of_log(&error))?.seq;
    let from = match args.from {
        Some(from) => Seq(from),
        // All of a log that was waited for comes from now on.
        None => {
            if was_there {
                end.next()
            } else {
                Seq(1)
            }
        }
    };
    let whole = Part { from: Seq(1), until: end };
    if let Some(uid) = &wanted.agent
        && !is_known(&*reader, uid, whole)?
    {
        output.say(&format!("throughline: agent {uid} has no event yet"));
    }
    if from > end.next() {
        output.say(&format!("throughline: the log ends at {end}; waiting for event {from}"));
    }
    if let Some(most) = args.most.filter(|_| was_there) {
        listing::last(&*reader, &wanted, whole, most, &mut |event| output.data(&printed(event, output)))?;
    }
    Following { path, it_was, end, wanted, patience, output }.go(Follow::of(&*reader, from))
}

/// What is followed, and how.
struct Following<'a> {
    path: PathBuf,
    /// The file that the reader has open.
    it_was: Option<Stat>,
    /// The last event when it began.
    end: Seq,
    wanted: Wanted,
    patience: Patience,
    output: &'a Output,
}

impl Following<'_> {
    fn go(mut self, mut follow: Follow<'_, State>) -> Result<u8, Failure> {
        let mut failing = false;
        loop {
            match follow.next_within(self.patience.left().min(LOOK)) {
                Ok(Some(event)) => {
                    failing = false;
                    let is_wanted = self.wanted.takes(&event);
                    if is_wanted {
                        self.output.data(&printed(&event, self.output))?;
                        self.patience.printed();
                    }
                    // What was there when it began is no idleness, however much of it is not wanted.
                    let is_idle = !is_wanted && event.seq > self.end;
                    if self.patience.is_over() || is_idle && self.patience.has_ended() {
                        return Ok(exit::OK);
                    }
                }
                Ok(None) => {
                    failing = false;
                    self.is_still_there()?;
                    if self.patience.has_ended() {
                        return Ok(exit::OK);
                    }
                }
                Err(error) if error.class() == Class::Busy => {
                    self.retry(&error, &mut failing);
                    if self.patience.has_ended() {
                        return Ok(exit::OK);
                    }
                }
                Err(error) => {
                    // Another file is no damage of this one.
                    self.is_still_there()?;
                    return Err(store::of_log(&error));
                }
            }
        }
    }

    /// Says it once in a row of failures, and waits.
    fn retry(&self, error: &LogError, failing: &mut bool) {
        if !std::mem::replace(failing, true) {
            self.output.say(&format!("throughline: {}; trying again", store::of_log(error).message));
        }
        std::thread::sleep(AGAIN);
    }

    /// Refuses to go on with a file that nobody else sees any more: no event would ever come.
    fn is_still_there(&self) -> Result<(), Failure> {
        let now = files::stat(&self.path, true).ok();
        if self.it_was.zip(now).is_some_and(|(then, now)| then.is_same(&now)) {
            return Ok(());
        }
        let text = format!("the log {} was removed or replaced while it was followed", self.path.display());
        Err(Failure::new("replaced", exit::ERROR, text).next("follow the one that is there now, with --from"))
    }
}

/// The log, and whether it was there at once. Nothing where it did not come in time, or nobody waits for it any more.
fn opened(path: &Path, wait: bool, patience: &Patience, output: &Output) -> Result<Option<(Reader, bool)>, Failure> {
    let mut was_there = true;
    loop {
        match Reader::open(path) {
            Ok(reader) => return Ok(Some((reader, was_there))),
            Err(error) if wait && is_to_come(path, &error) => {
                if std::mem::replace(&mut was_there, false) {
                    output.say(&format!("throughline: waiting for a log at {}", path.display()));
                }
            }
            Err(error) => {
                let failure = store::of_open(path, &error);
                let is_absent = matches!(error, OpenError::NotThere { .. });
                let next = "name it with --log, or give --wait to wait for it";
                return Err(if is_absent { failure.next(next) } else { failure });
            }
        }
        if patience.has_ended() {
            return Ok(None);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Whether a log may still come: there is nothing, an empty file that somebody is about to make one, or a lock on it.
fn is_to_come(path: &Path, error: &OpenError) -> bool {
    let is_empty = || files::stat(path, true).is_ok_and(|stat| stat.bytes == 0);
    match error.class() {
        Class::NotThere | Class::Busy => true,
        Class::Corrupt => matches!(error, OpenError::NotALog { .. }) && is_empty(),
        Class::ReadOnly | Class::DiskFull | Class::Refused | Class::Io => false,
    }
}

/// How long following goes on by itself.
struct Patience {
    begun: Instant,
    printed: Instant,
    whole: Option<Duration>,
    idle: Option<Duration>,
}

impl Patience {
    fn of(args: &args::Follow) -> Self {
        let now = Instant::now();
        let whole = args.for_ms.map(Duration::from_millis);
        Self { begun: now, printed: now, whole, idle: args.until_idle.map(Duration::from_millis) }
    }

    fn printed(&mut self) {
        self.printed = Instant::now();
    }

    /// How long is left.
    fn left(&self) -> Duration {
        let idle = self.idle.map(|idle| idle.saturating_sub(self.printed.elapsed()));
        let whole = self.whole.map(|whole| whole.saturating_sub(self.begun.elapsed()));
        idle.into_iter().chain(whole).min().unwrap_or(Duration::MAX)
    }

    fn is_idle(&self) -> bool {
        self.idle.is_some_and(|idle| self.printed.elapsed() >= idle)
    }

    fn is_over(&self) -> bool {
        self.whole.is_some_and(|whole| self.begun.elapsed() >= whole)
    }

    /// Whether a moment in which nothing came is the end: by the clock, or because nobody reads any more.
    fn has_ended(&self) -> bool {
        self.is_idle() || self.is_over() || stdout::has_no_reader()
    }
}
