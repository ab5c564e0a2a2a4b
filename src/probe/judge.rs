//! What the rules say of a world, what the agent did in it, and whether that is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::agent::{End, Ran};
use super::world::{Ask, BEYOND_CLEANUP_MS, Built};
use crate::chain::observe::RealView;
use crate::provider::claude::{AT_ITS_START, Cleaning, IN_A_LONG_RUN, Table, session_id};
use crate::provider::{Lookup, Outcome, Provider as _};
use crate::snapshot::{Ask as _, Depth, Seen, SnapshotError, View};

/// What became of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// At least one earlier turn was sent.
    Continues,
    /// The session was taken, and no earlier turn was sent.
    Empty,
    /// A new session was begun.
    Fresh,
    /// It was refused.
    Refused,
    /// It neither answered nor ended.
    Hangs,
    /// It cannot be told, or something else happened.
    Unknown,
}

/// Where the new turn goes, or went.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Writes {
    /// It is appended to this file.
    To(PathBuf),
    /// Into a new file in this folder.
    NewIn(PathBuf),
    /// It is not saved.
    Nowhere,
}

/// An outcome, foretold or seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Fate {
    pub(super) word: Word,
    /// The tag of the file whose turns are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// How many turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) writes: Option<Writes>,
    /// The file that is read is gone afterwards.
    pub(super) source_lost: bool,
    /// The agent deletes that file at its start: it may find it gone itself.
    pub(super) races: bool,
    /// The codes of the findings, or what the agent said.
    pub(super) said: Vec<String>,
}

impl Fate {
    fn of(word: Word) -> Self {
        Self { word, from: None, turns: None, writes: None, source_lost: false, races: false, said: Vec::new() }
    }

    /// In one line, for people.
    pub(super) fn line(&self) -> String {
        let mut words = vec![format!("{:?}", self.word).to_lowercase()];
        words.extend(self.turns.map(|turns| format!("{turns} turns")));
        words.extend(self.from.as_ref().map(|from| format!("of {from}")));
        if self.word == Word::Continues {
            words.extend(self.writes.as_ref().map(|writes| match writes {
                Writes::To(path) => format!("→ {}", path.display()),
                Writes::NewIn(folder) => format!("→ new in {}", folder.display()),
                Writes::Nowhere => "→ not saved".into(),
            }));
        }
        words.extend(self.source_lost.then(|| "source deleted".into()));
        if !self.said.is_empty() {
            words.push(format!("({})", self.said.join("; ")));
        }
        words.join(" ")
    }

    /// Whether what was foretold is what was seen. A fork always gets a new id: an empty history and a fresh start are one.
    pub(super) fn agrees(&self, seen: &Self, fork: bool) -> bool {
        let same_word = self.word == seen.word
            || (fork && [self.word, seen.word].iter().all(|word| matches!(word, Word::Empty | Word::Fresh)));
        // Deleted at the start, before or after it was read.
        if self.races && seen.source_lost && seen.word == Word::Refused {
            return true;
        }
        let same_turns = self.turns.is_none() || self.turns == seen.turns;
        let same_place = self.word != Word::Continues || self.writes.is_none() || self.writes == seen.writes;
        same_word && self.from == seen.from && same_turns && same_place && self.source_lost == seen.source_lost
    }
}

/// What the rules say will happen in a run that lasts so long.
pub(super) fn foretold(
    rules: &Table,
    view: &mut RealView,
    built: &Built,
    holds_ms: u64,
) -> Result<Fate, SnapshotError> {
    if let Ask::Resume { chosen: Some(chosen), .. } | Ask::Path { chosen: Some(chosen), .. } = &built.ask
        && let Seen::Is(path) = rules.path_of(view, &built.place, chosen)?
        && view.node(&path, true)? != Seen::Absent
    {
        return Ok(Fate::of(Word::Refused));
    }
    let mut fate = by_rules(rules, view, built)?;
    if built.uncounted {
        fate.turns = None;
    }
    // A quick run ends before a clean-up that comes later.
    fate.source_lost &= holds_ms >= BEYOND_CLEANUP_MS || rules.cleans == Cleaning::AtOnce;
    fate.races = fate.source_lost && rules.cleans == Cleaning::AtOnce;
    let is_chosen = fate.said.iter().any(|code| code == "not_kept");
    if fate.writes == Some(Writes::Nowhere) && rules.unsaved_fails && !is_chosen {
        fate.word = Word::Unknown;
    }
    Ok(fate)
}

fn by_rules(rules: &Table, view: &mut RealView, built: &Built) -> Result<Fate, SnapshotError> {
    let none = BTreeSet::new();
    let place = &built.place;
    match &built.ask {
        Ask::Resume { id, fork, .. } => {
            let found = rules.lookup(view, place, id, &none, Depth::Windows)?;
            fate_of(rules, view, built, &found, *fork)
        }
        Ask::Path { path, .. } => {
            let found = rules.lookup_path(view, path, Depth::Windows)?;
            fate_of(rules, view, built, &found, true)
        }
        Ask::Continue => match rules.newest(view, place, &none, Depth::Windows)? {
            Seen::Absent => Ok(Fate::of(Word::Fresh)),
            Seen::Unreadable(why) => Ok(Fate { said: vec![why], ..Fate::of(Word::Unknown) }),
            Seen::Is(scanned) => {
                let found = rules.lookup(view, place, &scanned.session, &none, Depth::Windows)?;
                // Without a turn it goes on in that file all the same.
                let mut fate = fate_of(rules, view, built, &found, false)?;
                if fate.word == Word::Refused {
                    fate = Fate::of(Word::Empty);
                }
                Ok(fate)
            }
        },
        Ask::New { chosen } => Ok(match rules.path_of(view, place, chosen)? {
            Seen::Is(path) => match view.node(&path, true)? {
                Seen::Absent => Fate::of(Word::Fresh),
                Seen::Is(_) => Fate::of(Word::Refused),
                Seen::Unreadable(why) => Fate { said: vec![why], ..Fate::of(Word::Unknown) },
            },
            Seen::Absent | Seen::Unreadable(_) => Fate::of(Word::Unknown),
        }),
    }
}

fn fate_of(
    rules: &Table,
    view: &mut dyn View,
    built: &Built,
    found: &Lookup,
    fork: bool,
) -> Result<Fate, SnapshotError> {
    let mut said: Vec<String> = found.findings.iter().map(|finding| finding.code.clone()).collect();
    let word = match &found.outcome {
        Outcome::Continues => Word::Continues,
        Outcome::Empty => Word::Empty,
        Outcome::Refused => Word::Refused,
        Outcome::StartsFresh => Word::Fresh,
        Outcome::Unknown { .. } if said.iter().any(|code| code == "would_block" || code == "would_hang") => Word::Hangs,
        Outcome::Unknown { .. } => Word::Unknown,
    };
    let Some(path) = found.path.as_ref().filter(|_| matches!(word, Word::Continues | Word::Empty)) else {
        return Ok(Fate { said, ..Fate::of(word) });
    };
    let keeping = rules.keeping(view, &built.place, path, fork)?;
    let has = |code: &str| keeping.iter().any(|finding| finding.code == code);
    let writes = if has("not_writable") || has("not_a_directory") || has("not_kept") {
        Writes::Nowhere
    } else if fork {
        match rules.own_dir(view, &built.place)? {
            Seen::Is(own) => Writes::NewIn(physical(Path::new(&own))),
            Seen::Absent | Seen::Unreadable(_) => Writes::Nowhere,
        }
    } else {
        Writes::To(physical(Path::new(path)))
    };
    let is_lost = |detail: &str| detail.contains(IN_A_LONG_RUN) || detail.contains(AT_ITS_START);
    let source_lost = keeping.iter().any(|finding| finding.code == "retention" && is_lost(&finding.detail));
    said.extend(keeping.iter().map(|finding| finding.code.clone()));
    if word == Word::Empty {
        return Ok(Fate { source_lost, said, ..Fate::of(word) });
    }
    Ok(Fate {
        word,
        from: tag_in(Path::new(path)),
        turns: found.transcript.as_ref().filter(|held| held.is_whole()).map(|held| held.reached),
        writes: Some(writes),
        source_lost,
        races: false,
        said,
    })
}

/// The path without links, as far as it exists.
fn physical(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => physical(parent).join(name),
        (Err(_), ..) => path.to_owned(),
    }
}

/// The tag of the turns in a file.
fn tag_in(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    marks(&text).into_iter().next().map(|(tag, _)| tag)
}

/// Every mark in a text: its tag and its turn.
pub(super) fn marks(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (at, begin) in text.match_indices("mark-") {
        let rest = &text[at + begin.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        if let Some((tag, turn)) = rest[..end].split_once('-') {
            found.insert((tag.to_owned(), turn.to_owned()));
        }
    }
    found
}

/// The session files below a folder, with their sizes.
pub(super) type Files = BTreeMap<PathBuf, Held>;

/// A session file as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Held {
    bytes: u64,
    digest: blake3::Hash,
    /// It holds the new turn.
    has_turn: bool,
}

/// Looks at every session file below a folder, and at one that may lie where nothing can be listed; links are not followed.
pub(super) fn files(below: &Path, also: Option<&Path>, prompt: &str) -> Files {
    let mut files = Files::new();
    if let Some(path) = also.and_then(|path| fs::canonicalize(path).ok()) {
        files.extend(held(&path, prompt).map(|held| (path, held)));
    }
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        // What may not be entered holds nothing that the agent could have written as the same user.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
                files.extend(held(&path, prompt).map(|held| (path, held)));
            }
        }
    }
    files
}

fn held(path: &Path, prompt: &str) -> Option<Held> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    let has_turn = memchr::memmem::find(&bytes, prompt.as_bytes()).is_some();
    Some(Held { bytes: bytes.len() as u64, digest: blake3::hash(&bytes), has_turn })
}

/// What was seen of a run.
pub(super) fn seen(
    ran: &Ran,
    messages: &[String],
    asked: Option<&str>,
    source: Option<&Path>,
    before: &Files,
    after: &Files,
    foretold: &Fate,
) -> Fate {
    let sent: BTreeSet<(String, String)> = messages.iter().flat_map(|text| marks(text)).collect();
    let from: BTreeSet<&String> = sent.iter().map(|(tag, _)| tag).collect();
    let reported = reported_session(&ran.stdout);
    let kept = asked.and_then(session_id).zip(reported.as_deref()).is_some_and(|(asked, got)| asked == got);
    let word = match (messages.is_empty(), sent.is_empty(), &ran.end) {
        (false, false, _) => Word::Continues,
        // A first request is on its way before the session is looked for.
        (false, true, End::Exit(code)) if *code != 0 => Word::Refused,
        (false, true, _) if kept => Word::Empty,
        (false, true, _) => Word::Fresh,
        (true, _, End::TimedOut) => Word::Hangs,
        (true, _, End::Exit(code)) if *code != 0 => Word::Refused,
        (true, _, End::Exit(_) | End::Signal(_)) => Word::Unknown,
    };
    let mut writes = Writes::Nowhere;
    for (path, held) in after.iter().filter(|(_, held)| held.has_turn) {
        writes = match before.get(path) {
            Some(then) if then == held => continue,
            Some(_) => Writes::To(path.clone()),
            None => Writes::NewIn(path.parent().unwrap_or(path).to_owned()),
        };
        // One file may have several names.
        if foretold.writes.as_ref() == Some(&writes) {
            break;
        }
    }
    let turns = (word == Word::Continues).then_some(sent.len() as u64);
    let one = from.len() == 1;
    let from = if one { from.first().map(|tag| (*tag).clone()) } else { None };
    let from = if sent.is_empty() || one { from } else { Some("several files".into()) };
    let source_lost = source.is_some_and(|source| before.contains_key(source) && !after.contains_key(source));
    // Its own words; what is longer is its code, shown where it broke.
    let is_word = |line: &&str| line.len() <= 300 && !line.trim().is_empty();
    let said = ran.stderr.lines().filter(is_word).take(3).map(str::to_owned).collect();
    Fate { word, from, turns, writes: Some(writes), source_lost, races: false, said }
}

/// The session id of the agent's own result.
pub(super) fn reported_session(stdout: &str) -> Option<String> {
    let result: serde_json::Value = serde_json::from_str(stdout.trim().lines().last()?).ok()?;
    result["session_id"].as_str().map(str::to_owned)
}

/// Whether files that were there are as they were, apart from what was appended; else which is not.
pub(super) fn harmed(
    before: &Files,
    after: &Files,
    read: impl Fn(&Path, u64) -> io::Result<blake3::Hash>,
) -> Vec<PathBuf> {
    let changed = before.iter().filter(|(path, then)| match after.get(*path) {
        None => false,
        Some(now) if now == *then => false,
        Some(now) => now.bytes < then.bytes || read(path, then.bytes).map_or(true, |digest| digest != then.digest),
    });
    changed.map(|(path, _)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn continues() -> Fate {
        Fate {
            from: Some("own".into()),
            turns: Some(4),
            writes: Some(Writes::To("/c/a.jsonl".into())),
            ..Fate::of(Word::Continues)
        }
    }

    #[test]
    fn every_part_of_an_outcome_has_to_be_what_was_foretold() {
        let foretold = continues();
        assert!(foretold.agrees(&continues(), false));
        for seen in [
            Fate::of(Word::Refused),
            Fate { from: Some("twin".into()), ..continues() },
            Fate { turns: Some(3), ..continues() },
            Fate { turns: None, ..continues() },
            Fate { writes: Some(Writes::To("/c/b.jsonl".into())), ..continues() },
            Fate { writes: Some(Writes::Nowhere), ..continues() },
            Fate { source_lost: true, ..continues() },
        ] {
            assert!(!foretold.agrees(&seen, false), "{}", seen.line());
        }
        // What the rules do not say is not compared.
        let vague = Fate { turns: None, writes: None, ..continues() };
        assert!(vague.agrees(&continues(), false));
    }

    #[test]
    fn of_a_fork_an_empty_history_and_a_fresh_start_are_one() {
        let (empty, fresh) = (Fate::of(Word::Empty), Fate::of(Word::Fresh));
        assert!(empty.agrees(&fresh, true) && fresh.agrees(&empty, true));
        assert!(!empty.agrees(&fresh, false) && !fresh.agrees(&empty, false));
        assert!(!empty.agrees(&Fate::of(Word::Refused), true));
    }

    #[test]
    fn a_source_that_is_deleted_at_the_start_may_be_missed_by_the_agent_itself() {
        let races = Fate { races: true, source_lost: true, ..continues() };
        let missed = Fate { source_lost: true, ..Fate::of(Word::Refused) };
        assert!(races.agrees(&missed, false));
        assert!(!races.agrees(&Fate::of(Word::Refused), false), "it is still there");
        assert!(!Fate { races: false, ..races }.agrees(&missed, false));
    }

    #[test]
    fn marks_are_told_apart_by_tag_and_turn() {
        let found = marks("x mark-own-u1 y mark-twin-a2. mark-bad mark-own-u1");
        let of = |tag: &str, turn: &str| (tag.to_owned(), turn.to_owned());
        assert_eq!(found, BTreeSet::from([of("own", "u1"), of("twin", "a2")]));
    }
}
