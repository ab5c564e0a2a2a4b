//! Which file Claude Code reads when it is told to resume an id, and what it makes of it.
//!
//! Observed on 2.1.332, in this order (the first that answers ends it):
//!
//! 1. The id: five groups of hex digits, else it is a title, which is refused here. A text that ends in `.jsonl` is a path.
//! 2. The own place, links followed. A directory there: an error, no further search. A FIFO: it hangs. A file that is
//!    accepted: that one, whatever lies elsewhere.
//! 3. The own places of the repository's other worktrees, one after another; the first accepted one.
//! 4. All real folders below `projects`, the own one included: real files whose bytes contain `"type":"user"` or
//!    `"type":"assistant"`. Exactly one, and accepted: that one. Two or more: refused, even if they are one file.
//!
//! 2.0.77 stops after step 2.
//!
//! **Where this is more careful than the CLI**: a file that could not be read in the own place, or in a worktree's, makes
//! the answer unknown. On 2.1.332 the CLI goes on as if it were absent, when the cause is permission; but what denied it to
//! us need not deny it to the CLI, and an error of the device is a different thing again. For the same reason a `projects`
//! that cannot be listed is unknown. A file of another folder that cannot be read does not count, as for the CLI, and is
//! reported.

use std::collections::BTreeSet;

use crate::provider::claude::about::{about, not_accepted, not_examined};
use crate::provider::claude::path;
use crate::provider::claude::table::{Table, Taken};
use crate::provider::finding::Finding;
use crate::provider::rule::{FoundBy, Lookup, Outcome, Place};
use crate::provider::source::NOT_EXAMINED;
use crate::snapshot::{Ask, Depth, Format, NodeKind, Seen, SnapshotError, Transcript, View};

/// What makes a file of another folder count: these bytes anywhere, without blanks.
const TURN_PATTERNS: [&str; 2] = [r#""type":"user""#, r#""type":"assistant""#];

/// What the CLI does with an id.
pub(super) fn by_id(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    id: &str,
    hidden: &BTreeSet<String>,
    depth: Depth,
) -> Result<Lookup, SnapshotError> {
    let mut search = Search { rules, view, depth, hidden, findings: Vec::new() };
    if path::is_path(id) {
        let finding = Finding::new("path_not_id", "the CLI takes a text that ends in .jsonl for a path, not for an id")
            .next("give the id, or fork the file by its absolute path");
        return Ok(search.refused(finding));
    }
    let Some(id) = path::session_id(id).filter(|taken| rules.trims_ids || *taken == id) else {
        let detail = "the CLI takes only ids of the form 8-4-4-4-12 hex digits; anything else is a title to it";
        return Ok(search.refused(Finding::new("malformed_id", detail)));
    };
    let own_dir = match rules.folder(search.view, place)? {
        Seen::Is(dir) => dir,
        Seen::Absent => {
            let why = format!("the working directory {} does not exist", place.cwd);
            let finding = Finding::new("cwd_missing", why.clone()).at(&place.cwd).next("create it");
            return Ok(search.unknown(why, finding));
        }
        Seen::Unreadable(why) => {
            let finding = Finding::new("cwd_unusable", why.clone()).at(&place.cwd);
            return Ok(search.unknown(why, finding));
        }
    };
    if !rules.takes_backslashes && matches!(search.view.real_path(&place.cwd)?, Seen::Is(real) if real.contains('\\')) {
        let detail = "this version of the CLI cannot work in a directory with a backslash in its path";
        return Ok(search.refused(Finding::new("cwd_unusable", detail).at(&place.cwd).next("rename the directory")));
    }
    search.id(place, &own_dir, id)
}

/// What the CLI does with a fork of the file at a path.
pub(super) fn by_path(rules: &Table, view: &mut dyn View, file: &str, depth: Depth) -> Result<Lookup, SnapshotError> {
    let hidden = BTreeSet::new();
    let mut search = Search { rules, view, depth, hidden: &hidden, findings: Vec::new() };
    if !path::is_path(file) || file.trim() != file || !(rules.trims_ids || file.ends_with(".jsonl")) {
        let detail = "the CLI takes only a text that ends in .jsonl, without blanks around it, for a path";
        return Ok(search.refused(Finding::new("not_a_session_path", detail).at(file)));
    }
    let outcome = if rules.path_starts_fresh { Outcome::StartsFresh } else { Outcome::Refused };
    let (finding, held) = match search.look(file)? {
        Found::Accepted(held) => return Ok(search.found(file, FoundBy::Path, held)),
        Found::Unknown(why, finding) => return Ok(search.unknown(why, finding)),
        Found::NotAccepted(held) if rules.path_starts_fresh && (held.sidechain > 0 || held.messageless > 0) => {
            let why =
                format!("{file}: what this version makes of such records by path was not observed to be one thing");
            let finding = not_accepted(file, &held);
            return Ok(search.unknown(why, finding));
        }
        Found::Absent => (Finding::new("not_found", "no file is there").at(file), None),
        Found::Directory => (in_place(file), None),
        Found::NotAccepted(held) => (not_accepted(file, &held), Some(held)),
    };
    let path = held.is_some().then(|| file.to_owned());
    let refused = search.refused(finding);
    Ok(Lookup { outcome, path, transcript: held, ..refused })
}

/// What lies at a place.
enum Found {
    Absent,
    Directory,
    NotAccepted(Transcript),
    Accepted(Transcript),
    Unknown(String, Finding),
}

struct Search<'a> {
    rules: &'a Table,
    view: &'a mut dyn View,
    depth: Depth,
    hidden: &'a BTreeSet<String>,
    findings: Vec<Finding>,
}

impl Search<'_> {
    fn id(&mut self, place: &Place, own_dir: &str, id: &str) -> Result<Lookup, SnapshotError> {
        let own = path::session(own_dir, id);
        if !self.rules.searches {
            // It lists the folders all the same, and fails where it cannot.
            let projects = self.rules.projects(place);
            if let Seen::Unreadable(why) = self.view.holders(&projects, &format!("{id}.jsonl"))? {
                let why = format!("{projects} cannot be listed: {why}");
                return Ok(self.unknown(why.clone(), Finding::new("projects_unreadable", why).at(&projects)));
            }
        }
        match self.look(&own)? {
            Found::Accepted(held) => return Ok(self.found(&own, FoundBy::Own, held)),
            Found::Directory => return Ok(self.refused(in_place(&own))),
            Found::Unknown(why, finding) => return Ok(self.unknown(why, finding)),
            Found::NotAccepted(held) => self.findings.push(not_accepted(&own, &held)),
            Found::Absent => {}
        }
        if !self.rules.searches {
            return Ok(self.nothing(&own));
        }
        if let Some(found) = self.worktrees(place, own_dir, id)? {
            return Ok(found);
        }
        self.unique(place, own_dir, id)
    }

    /// What lies at a path, links followed.
    fn look(&mut self, file: &str) -> Result<Found, SnapshotError> {
        if self.hidden.contains(file) {
            return Ok(Found::Absent);
        }
        let mut node = self.view.node(file, false)?;
        if matches!(&node, Seen::Is(node) if node.kind == NodeKind::Link) {
            node = self.view.node(file, true)?;
            let detail = match &node {
                Seen::Is(_) => "the session's file is a symbolic link; new turns go where it leads",
                Seen::Absent | Seen::Unreadable(_) => "the session's file is a symbolic link that leads nowhere",
            };
            self.findings.push(Finding::new("symlinked", detail).at(file));
        }
        match node {
            Seen::Absent => Ok(Found::Absent),
            Seen::Unreadable(why) => Ok(unreadable(file, &why)),
            Seen::Is(node) => match node.kind {
                NodeKind::File => self.judge(file),
                NodeKind::Dir => Ok(Found::Directory),
                NodeKind::Special => {
                    let why = format!("{file} is a FIFO, socket or device: the CLI would hang on it");
                    let finding = Finding::new("would_block", why.clone()).at(file).next("remove it");
                    Ok(Found::Unknown(why, finding))
                }
                NodeKind::Link => Ok(unreadable(file, "a link was not followed")),
            },
        }
    }

    /// What the CLI makes of a regular file.
    fn judge(&mut self, file: &str) -> Result<Found, SnapshotError> {
        Ok(match self.view.transcript(file, Format::Claude, self.depth)? {
            Seen::Absent => Found::Absent,
            Seen::Unreadable(why) => unreadable(file, &why),
            Seen::Is(held) => match self.rules.takes(&held) {
                Taken::Yes if self.rules.history(&held) > 0 || held.is_whole() => Found::Accepted(held),
                Taken::No if held.is_whole() => Found::NotAccepted(held),
                Taken::Yes | Taken::No => Found::Unknown(format!("{file}: {NOT_EXAMINED}"), not_examined(file)),
                Taken::Hangs => {
                    let why = format!("{file} has records that are each other's parents: the CLI would hang on them");
                    let finding =
                        Finding::new("would_hang", why.clone()).at(file).next("mend the file, or use a newer CLI");
                    Found::Unknown(why, finding)
                }
                Taken::Unsure(why) => {
                    let why = format!("{file}: {why}, and this version of the CLI goes by the times of records");
                    Found::Unknown(why.clone(), Finding::new("times_decide", why).at(file).next("use a newer CLI"))
                }
            },
        })
    }

    /// Step 3. What is not a file there was not observed, so it is unknown.
    fn worktrees(&mut self, place: &Place, own_dir: &str, id: &str) -> Result<Option<Lookup>, SnapshotError> {
        let roots = match self.view.worktrees(&place.cwd)? {
            Seen::Is(roots) => roots,
            Seen::Absent => return Ok(None),
            Seen::Unreadable(why) => {
                let why = format!("the repository's worktrees cannot be told: {why}");
                let finding = Finding::new("worktrees_unreadable", why.clone()).at(&place.cwd);
                return Ok(Some(self.unknown(why, finding)));
            }
        };
        let projects = self.rules.projects(place);
        let mut seen = BTreeSet::from([own_dir.to_owned()]);
        for root in roots {
            let dir = path::join(&projects, &self.rules.slug(&root));
            if !seen.insert(dir.clone()) {
                continue;
            }
            let file = path::session(&dir, id);
            match self.look(&file)? {
                Found::Absent => {}
                Found::NotAccepted(held) => self.findings.push(not_accepted(&file, &held)),
                Found::Accepted(held) => {
                    self.findings.push(foreign(&file, own_dir, "of another worktree"));
                    return Ok(Some(self.found(&file, FoundBy::Worktree, held)));
                }
                Found::Directory => return Ok(Some(self.refused(in_place(&file)))),
                Found::Unknown(why, finding) => return Ok(Some(self.unknown(why, finding))),
            }
        }
        Ok(None)
    }

    /// Step 4.
    fn unique(&mut self, place: &Place, own_dir: &str, id: &str) -> Result<Lookup, SnapshotError> {
        let own = path::session(own_dir, id);
        let candidates = match self.candidates(&self.rules.projects(place), id)? {
            Ok(candidates) => candidates,
            Err((why, finding)) => return Ok(self.unknown(why, finding)),
        };
        match candidates.as_slice() {
            [] => Ok(self.nothing(&own)),
            [one] => {
                let found = if *one == own { Found::Absent } else { self.judge(one)? };
                match found {
                    Found::Accepted(held) => {
                        self.findings.push(foreign(one, own_dir, "of another directory"));
                        Ok(self.found(one, FoundBy::Unique, held))
                    }
                    Found::NotAccepted(held) => Ok(self.refused(not_accepted(one, &held))),
                    Found::Unknown(why, finding) => Ok(self.unknown(why, finding)),
                    Found::Absent | Found::Directory => Ok(self.nothing(&own)),
                }
            }
            [_, _, ..] => {
                let detail = format!(
                    "{} files of this id are candidates, so the CLI finds none: {}",
                    candidates.len(),
                    candidates.join(", ")
                );
                let finding = Finding::new("ambiguous", detail)
                    .next("keep one of them below this config dir, or fork the right one by its path");
                let refused = self.refused(finding);
                Ok(Lookup { others: candidates, ..refused })
            }
        }
    }

    /// The files that count, by the name of their folder; or why that cannot be told.
    fn candidates(
        &mut self,
        projects: &str,
        id: &str,
    ) -> Result<Result<Vec<String>, (String, Finding)>, SnapshotError> {
        let name = format!("{id}.jsonl");
        let mut holders = match self.view.holders(projects, &name)? {
            Seen::Is(holders) => holders,
            Seen::Absent => return Ok(Ok(Vec::new())),
            Seen::Unreadable(why) => {
                let why = format!("{projects} cannot be listed: {why}");
                let finding = Finding::new("projects_unreadable", why.clone()).at(projects);
                return Ok(Err((why, finding)));
            }
        };
        holders.sort();
        let mut candidates = Vec::new();
        for holder in holders {
            let file = path::join(&path::join(projects, &holder.name), &name);
            if self.hidden.contains(&file) {
                continue;
            }
            if holder.kind != NodeKind::File {
                let detail = "a file of this id that is no regular file does not count in another folder";
                self.findings.push(Finding::new("ignored_candidate", detail).at(&file));
                continue;
            }
            match self.view.contains(&file, &TURN_PATTERNS, self.depth)? {
                Seen::Is(true) => candidates.push(file),
                Seen::Is(false) | Seen::Absent => {}
                Seen::Unreadable(why) if why == NOT_EXAMINED => {
                    return Ok(Err((format!("{file}: {why}"), not_examined(&file))));
                }
                Seen::Unreadable(why) => {
                    let detail = format!("a file of this id that cannot be read does not count: {why}");
                    self.findings.push(Finding::new("unreadable_candidate", detail).at(&file));
                }
            }
        }
        Ok(Ok(candidates))
    }

    /// Nothing counts: what lies in the own place explains it, if anything does.
    fn nothing(&mut self, own: &str) -> Lookup {
        let explained = |finding: &Finding| matches!(finding.code.as_str(), "not_accepted" | "empty_file");
        match self.findings.iter().position(explained) {
            Some(index) => {
                let finding = self.findings.remove(index);
                self.refused(finding)
            }
            None => self.refused(Finding::new("not_found", "no project folder has a session of this id").at(own)),
        }
    }

    fn found(&mut self, file: &str, found_by: FoundBy, mut held: Transcript) -> Lookup {
        held.reached = self.rules.history(&held);
        let outcome = if held.reached > 0 { Outcome::Continues } else { Outcome::Empty };
        if outcome == Outcome::Empty {
            let detail = "the CLI accepts this file and keeps its id, but it holds no turn: no history is sent";
            self.findings.insert(0, Finding::new("empty_history", detail).at(file));
        }
        self.findings.extend(about(file, &held));
        Lookup {
            outcome,
            path: Some(file.into()),
            found_by: Some(found_by),
            transcript: Some(held),
            others: Vec::new(),
            findings: std::mem::take(&mut self.findings),
        }
    }

    fn refused(&mut self, finding: Finding) -> Lookup {
        self.without_file(Outcome::Refused, finding)
    }

    fn unknown(&mut self, why: String, finding: Finding) -> Lookup {
        self.without_file(Outcome::Unknown { why }, finding)
    }

    fn without_file(&mut self, outcome: Outcome, finding: Finding) -> Lookup {
        self.findings.insert(0, finding);
        Lookup {
            outcome,
            path: None,
            found_by: None,
            transcript: None,
            others: Vec::new(),
            findings: std::mem::take(&mut self.findings),
        }
    }
}

fn in_place(file: &str) -> Finding {
    Finding::new("directory_in_place", "a directory has the name of the session's file; the CLI fails on it")
        .at(file)
        .next("move the directory away")
}

fn unreadable(file: &str, why: &str) -> Found {
    let why = format!("{file} cannot be read: {why}");
    let finding = Finding::new("unreadable", why.clone()).at(file).next("make it readable, or give another id");
    Found::Unknown(why, finding)
}

fn foreign(file: &str, own_dir: &str, whose: &str) -> Finding {
    let detail =
        format!("the session lies in the folder {whose}: a resume appends there, a fork writes into {own_dir}");
    Finding::new("foreign_bucket", detail).at(file)
}
