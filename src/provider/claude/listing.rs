//! What else lies in the working directory's own folder: the largest real conversation, and what `--continue` takes.

use std::collections::BTreeSet;

use crate::provider::claude::path;
use crate::provider::claude::table::{Table, Taken};
use crate::provider::rule::{Place, Scanned};
use crate::provider::source::NOT_EXAMINED;
use crate::snapshot::{Ask, Depth, Entry, Format, NodeKind, Order, Seen, SnapshotError, Transcript, View};

/// How many transcripts one question opens; what lies behind them is not examined.
const OPENED_MAX: usize = 64;

/// The largest file with at least one turn: never an excepted id, a subagent's file, a link, or one without history.
///
/// A larger one that cannot be judged makes the answer unreadable: a smaller one would be a guess.
pub(super) fn largest(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    except: &BTreeSet<String>,
    hidden: &BTreeSet<String>,
    depth: Depth,
) -> Result<Seen<Scanned>, SnapshotError> {
    let wanted = |entry: &Entry, id: &str| entry.bytes > 0 && !except.contains(id);
    first(rules, view, place, hidden, depth, Order::Largest, wanted, |held| {
        rules.takes(held) == Taken::Yes && rules.history(held) > 0
    })
}

/// What `--continue` takes (observed on 2.1.332): the file that was changed last, but none that holds only metadata or only
/// a subagent's records, and none whose name is not an id. A file of 0 bytes it does take, and starts afresh in it.
pub(super) fn newest(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    hidden: &BTreeSet<String>,
    depth: Depth,
) -> Result<Seen<Scanned>, SnapshotError> {
    if !rules.continues_by_change {
        return only(rules, view, place, hidden, depth);
    }
    let main = |held: &Transcript| held.turns + held.messageless + held.attachments + held.systems;
    first(rules, view, place, hidden, depth, Order::Newest, |_, _| true, |held| held.bytes == 0 || main(held) > 0)
}

/// For versions that go by the times in the files: the session that is the only one. Of several, the latest cannot be told.
fn only(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    hidden: &BTreeSet<String>,
    depth: Depth,
) -> Result<Seen<Scanned>, SnapshotError> {
    let (mut count, mut fit) = (0, 0);
    let counts = |held: &Transcript| {
        count += usize::from(rules.takes(held) != Taken::No || held.messageless > 0);
        fit += usize::from(rules.takes(held) == Taken::Yes);
        false
    };
    let wanted = |entry: &Entry, _: &str| entry.bytes > 0;
    if let Seen::Unreadable(why) = first(rules, view, place, hidden, depth, Order::Newest, wanted, counts)? {
        return Ok(Seen::Unreadable(why));
    }
    match (count, fit) {
        (0, _) => Ok(Seen::Absent),
        (1, 1) => {
            first(rules, view, place, hidden, depth, Order::Newest, wanted, |held| rules.takes(held) == Taken::Yes)
        }
        _ => Ok(Seen::Unreadable("this version of the CLI goes by the times in the files".into())),
    }
}

#[expect(clippy::too_many_arguments, reason = "the two questions above differ in the last three")]
fn first(
    rules: &Table,
    view: &mut dyn View,
    place: &Place,
    hidden: &BTreeSet<String>,
    depth: Depth,
    order: Order,
    wanted: impl Fn(&Entry, &str) -> bool,
    mut takes: impl FnMut(&Transcript) -> bool,
) -> Result<Seen<Scanned>, SnapshotError> {
    let dir = match rules.folder(view, place)? {
        Seen::Is(dir) => dir,
        Seen::Absent => return Ok(Seen::Absent),
        Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
    };
    let entries = match view.names(&dir, "", ".jsonl", order)? {
        Seen::Is(entries) => entries,
        Seen::Absent => return Ok(Seen::Absent),
        Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
    };
    let mut opened = 0;
    for entry in entries {
        let Some(id) = entry.name.strip_suffix(".jsonl").filter(|id| path::session_id(id) == Some(*id)) else {
            continue;
        };
        let file = path::join(&dir, &entry.name);
        if entry.kind != NodeKind::File || hidden.contains(&file) || !wanted(&entry, id) {
            continue;
        }
        if opened == OPENED_MAX {
            return Ok(Seen::Unreadable(format!(
                "{dir}: none of {OPENED_MAX} sessions fits, the others were not opened"
            )));
        }
        opened += 1;
        match view.transcript(&file, Format::Claude, depth)? {
            Seen::Is(held) if takes(&held) => return Ok(Seen::Is(Scanned { session: id.into(), path: file })),
            Seen::Is(held) if !held.is_whole() => return Ok(Seen::Unreadable(format!("{file}: {NOT_EXAMINED}"))),
            Seen::Is(_) | Seen::Absent => {}
            Seen::Unreadable(why) => return Ok(Seen::Unreadable(why)),
        }
    }
    Ok(Seen::Absent)
}
