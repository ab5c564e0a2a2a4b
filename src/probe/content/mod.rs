//! What lies in a session's file: invented conversations, whole, damaged and odd.
//!
//! Every turn carries a mark of its file and its place (`mark-TAG-u1`, `mark-TAG-a1`, …), so that a request tells which
//! file's turns it holds.

mod bytes;
mod kinds;
mod tree;

use serde_json::{Value, json};

/// The id of the session that every case asks for.
pub(super) const ID: &str = "11111111-1111-4111-8111-111111111111";

/// One conversation of two turns, as records.
struct Talk {
    tag: String,
    id: String,
}

/// A content: its name, and what makes its bytes.
type Content = (&'static str, fn(&Talk) -> Vec<u8>);

/// The bytes of a content by its name, marked with a tag, for the session `id`.
pub(super) fn content(name: &str, tag: &str, id: &str) -> Option<Vec<u8>> {
    let talk = Talk { tag: tag.to_owned(), id: id.to_owned() };
    all().find(|(known, _)| *known == name).map(|(_, make)| make(&talk))
}

/// The names of all contents.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| *name)
}

fn all() -> impl Iterator<Item = &'static Content> {
    kinds::CONTENTS.iter().chain(bytes::CONTENTS).chain(tree::CONTENTS)
}

impl Talk {
    fn mark(&self, turn: &str) -> String {
        format!("mark-{}-{turn}", self.tag)
    }

    fn uuid(&self, number: u32) -> String {
        format!("{number:08}-0000-4000-8000-{number:012}")
    }

    fn chained(&self, kind: &str, number: u32, parent: Option<u32>, more: Value) -> Value {
        let mut record = json!({
            "parentUuid": parent.map(|parent| self.uuid(parent)), "isSidechain": false, "type": kind,
            "uuid": self.uuid(number), "timestamp": UNTIMED,
            "userType": "external", "entrypoint": "sdk-cli", "cwd": "/w/p1", "sessionId": self.id,
            "version": "2.1.0", "gitBranch": "main",
        });
        if let (Some(record), Value::Object(more)) = (record.as_object_mut(), more) {
            record.extend(more);
        }
        record
    }

    fn user(&self, number: u32, parent: Option<u32>, turn: &str) -> Value {
        let message = json!({"role": "user", "content": self.mark(turn)});
        self.chained("user", number, parent, json!({ "message": message }))
    }

    fn assistant(&self, number: u32, parent: Option<u32>, turn: &str) -> Value {
        let message = json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "model-x",
            "content": [{"type": "text", "text": self.mark(turn)}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        });
        self.chained("assistant", number, parent, json!({ "message": message }))
    }

    fn attachment(&self, number: u32, parent: Option<u32>) -> Value {
        let attachment = json!({"type": "date", "date": "2026-11-30", "note": format!("attachment {number}")});
        self.chained("attachment", number, parent, json!({ "attachment": attachment }))
    }

    fn system(&self, number: u32, parent: Option<u32>) -> Value {
        self.chained(
            "system",
            number,
            parent,
            json!({"subtype": "informational", "content": "a note", "level": "info"}),
        )
    }

    /// Metadata around a turn: records without a place in the tree.
    fn notes(&self) -> Vec<Value> {
        vec![
            json!({"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-30T20:00:01.000Z", "sessionId": self.id, "content": "a prompt"}),
            json!({"type": "queue-operation", "operation": "dequeue", "timestamp": "2026-11-30T20:00:01.000Z", "sessionId": self.id}),
        ]
    }

    fn ending(&self, leaf: u32) -> Vec<Value> {
        vec![
            json!({"type": "last-prompt", "lastPrompt": "a prompt", "leafUuid": self.uuid(leaf), "sessionId": self.id}),
            json!({"type": "mode", "mode": "normal", "sessionId": self.id}),
            json!({"type": "cost-state", "sessionId": self.id, "totalCostUSD": 0, "totalDuration": 1000, "note": "x".repeat(200)}),
        ]
    }

    /// Two turns with what the CLI writes around them: 14 records.
    fn records(&self) -> Vec<Value> {
        let first = [self.user(1, None, "u1"), self.attachment(2, Some(1)), self.assistant(3, Some(2), "a1")];
        let second = [self.user(4, Some(3), "u2"), self.attachment(5, Some(4)), self.assistant(6, Some(5), "a2")];
        [self.notes(), first.to_vec(), self.ending(3), self.notes(), second.to_vec(), self.ending(6)].concat()
    }

    /// The records of the tree alone.
    fn tree(&self) -> Vec<Value> {
        self.records().into_iter().filter(|record| record.get("uuid").is_some()).collect()
    }

    /// The turns alone, without attachments between them.
    fn turns(&self) -> Vec<Value> {
        vec![
            self.user(1, None, "u1"),
            self.assistant(2, Some(1), "a1"),
            self.user(3, Some(2), "u2"),
            self.assistant(4, Some(3), "a2"),
        ]
    }

    /// The turns, some of them without a time.
    fn untimed(&self, which: std::ops::Range<usize>) -> Vec<u8> {
        let mut turns = self.turns();
        for record in turns[which].iter_mut().filter_map(Value::as_object_mut) {
            record.remove("timestamp");
        }
        lines(turns)
    }

    /// The turns, the second one so much later and with another parent.
    fn later(&self, ms: i64, parent: u32) -> Vec<u8> {
        let mut turns = self.turns();
        turns[2]["parentUuid"] = json!(self.uuid(parent));
        let start = jiff::Timestamp::UNIX_EPOCH;
        for (record, at) in turns.iter_mut().zip([0, 1_000, 1_000 + ms, 2_000 + ms]) {
            let time = start + jiff::SignedDuration::from_millis(1_796_072_072_000 + at);
            record["timestamp"] = json!(format!("{time:.3}"));
        }
        lines(turns)
    }

    /// Two turns, and another second turn after them.
    fn branches(&self) -> Vec<Value> {
        let second = [self.user(5, Some(2), "u3"), self.assistant(6, Some(5), "a3")];
        [self.turns(), second.to_vec()].concat()
    }

    /// The tree with one field of every record set, or taken away.
    fn with(&self, field: &str, value: Option<&Value>) -> Vec<u8> {
        lines(self.records().into_iter().map(|mut record| {
            if let Some(record) = record.as_object_mut().filter(|record| record.contains_key("uuid")) {
                match value {
                    Some(value) => drop(record.insert(field.to_owned(), value.clone())),
                    None => drop(record.remove(field)),
                }
            }
            record
        }))
    }

    /// The whole file up to where a text last stands in it, and so many bytes on.
    fn cut(&self, at: &str, further: usize) -> Vec<u8> {
        let whole = lines(self.records());
        let found = memchr::memmem::rfind(&whole, at.as_bytes()).unwrap_or(0);
        whole[..(found + further).min(whole.len())].to_vec()
    }

    /// The whole file with something between two of its lines.
    fn between(&self, line: usize, what: &[u8]) -> Vec<u8> {
        let records = timed(self.records());
        [&lines(records[..line].iter().cloned())[..], what, &lines(records[line..].iter().cloned())[..]].concat()
    }
}

/// The time of a record before it has its place.
const UNTIMED: &str = "untimed";

/// The records with times in their order, where they have none of their own.
fn timed(records: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut records: Vec<Value> = records.into_iter().collect();
    for (index, record) in records.iter_mut().enumerate().filter(|(_, record)| record["timestamp"] == UNTIMED) {
        record["timestamp"] =
            json!(format!("2026-11-30T{:02}:{:02}:{:02}.000Z", index / 3_600, index / 60 % 60, index % 60));
    }
    records
}

fn lines(records: impl IntoIterator<Item = Value>) -> Vec<u8> {
    timed(records).into_iter().flat_map(|record| format!("{record}\n").into_bytes()).collect()
}

fn replaced(bytes: &[u8], from: &str, to: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(at) = memchr::memmem::find(rest, from.as_bytes()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// JSON with blanks behind its colons and commas, as other programs write it.
fn spaced(record: &Value) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut escaped = false;
    for c in record.to_string().chars() {
        text.push(c);
        match c {
            '"' if !escaped => quoted = !quoted,
            ':' | ',' if !quoted => text.push(' '),
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    text
}

fn filler(bytes: usize) -> Vec<u8> {
    let line = format!("{}\n", json!({"type": "cost-state", "note": "x".repeat(1_000)}));
    line.repeat(bytes / line.len() + 1).into_bytes()
}
