//! What a transcript's counts say to people: findings, in a fixed order. They decide nothing.

use crate::provider::finding::Finding;
use crate::snapshot::Transcript;

/// What should be known of a file that the CLI would read.
pub(super) fn about(path: &str, held: &Transcript) -> Vec<Finding> {
    [torn(held), nuls(held), unparsable(held), history(held), gaps(held), unanswered(held), unexamined(held)]
        .into_iter()
        .flatten()
        .map(|finding| finding.at(path))
        .collect()
}

/// Why a file is not taken for a session.
pub(super) fn not_accepted(path: &str, held: &Transcript) -> Finding {
    if held.bytes == 0 {
        return Finding::new("empty_file", "the session's file is empty; the CLI does not take it for a session")
            .at(path);
    }
    let what = if held.misled {
        "metadata that names a subagent's record as its end"
    } else if held.turns > 0 {
        "turns that this version does not take: without times, several on a line, or over several lines"
    } else if held.messageless > 0 {
        "turns without messages"
    } else if held.sidechain > 0 {
        "records of subagents only"
    } else if held.systems > 0 {
        "system records only"
    } else if held.others > 0 {
        "metadata only"
    } else {
        "no record that can be read"
    };
    Finding::new("not_accepted", format!("the CLI does not take this file for a session: it holds {what}"))
        .at(path)
        .offset(held.unparsable_at)
}

/// That what decides lies beyond the bound of the look.
pub(super) fn not_examined(path: &str) -> Finding {
    Finding::new("not_examined", "the file is too large to be read whole, and the windows at its ends do not tell")
        .at(path)
        .next("look again with --deep")
}

fn torn(held: &Transcript) -> Option<Finding> {
    held.torn_tail.then(|| {
        Finding::new("torn_tail", "the last line is cut off; the CLI drops it and goes on behind it")
            .offset(held.torn_at)
    })
}

fn nuls(held: &Transcript) -> Option<Finding> {
    held.nul_at.map(|at| {
        Finding::new("nul_run", "NUL bytes stand where a record should be, as after a power cut").offset(Some(at))
    })
}

fn unparsable(held: &Transcript) -> Option<Finding> {
    let lines = held.unparsable - u64::from(held.torn_tail).min(held.unparsable);
    (lines > 0).then(|| {
        Finding::new("unparsable_lines", format!("{lines} lines are not records; the CLI skips them"))
            .offset(held.unparsable_at)
    })
}

fn history(held: &Transcript) -> Option<Finding> {
    if held.compacted {
        let detail = "the conversation was compacted: a summary and the turns after it are sent";
        return Some(Finding::new("compacted", detail));
    }
    // Of windows, only the turns inside them were counted: less is no loss there.
    (held.is_whole() && held.reached < held.turns).then(|| {
        let detail =
            format!("{} of {} turns are sent; the others are on no path to the last one", held.reached, held.turns);
        Finding::new("partial_history", detail)
    })
}

fn gaps(held: &Transcript) -> Option<Finding> {
    (held.bridged > 0).then(|| {
        let detail =
            format!("{} records follow ones that are not in the file; what was lost is not sent", held.bridged);
        Finding::new("missing_parents", detail)
    })
}

fn unanswered(held: &Transcript) -> Option<Finding> {
    held.unanswered.then(|| Finding::new("unanswered_turn", "the last turn has no reply in the file"))
}

fn unexamined(held: &Transcript) -> Option<Finding> {
    (!held.is_whole()).then(|| {
        let detail = format!("{} of {} bytes were examined, at both ends", held.examined, held.bytes);
        Finding::new("not_examined", detail).next("look again with --deep")
    })
}
