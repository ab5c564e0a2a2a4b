//! What lies in a session's file: invented conversations, whole, damaged and odd.
//!
//! Every turn carries a mark of its file and its place (`mark-TAG-u1`, `mark-TAG-a1`, …), so that a request tells which
//! file's turns it holds.

use serde_json::{Value, json};

/// The id of the session that every case asks for.
pub(in crate::probe) const ID: &str = "11111111-1111-4111-8111-111111111111";

/// One conversation of two turns, as records.
struct Talk {
    tag: String,
    id: String,
}

/// A content: its name, and what makes its bytes.
type Content = (&'static str, fn(&Talk) -> Vec<u8>);

/// The bytes of a content by its name, marked with a tag, for the session `id`.
pub(in crate::probe) fn content(name: &str, tag: &str, id: &str) -> Option<Vec<u8>> {
    let talk = Talk { tag: tag.to_owned(), id: id.to_owned() };
    CONTENTS.iter().find(|(known, _)| *known == name).map(|(_, make)| make(&talk))
}

/// The names of all contents.
pub(in crate::probe) fn names() -> impl Iterator<Item = &'static str> {
    CONTENTS.iter().map(|(name, _)| *name)
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
        self.chained("system", number, parent, json!({"subtype": "informational", "content": "a note", "level": "info"}))
    }

    /// Metadata around a turn: records without a place in the tree.
    fn metadata(&self) -> Vec<Value> {
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
        [self.metadata(), first.to_vec(), self.ending(3), self.metadata(), second.to_vec(), self.ending(6)].concat()
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
        record["timestamp"] = json!(format!("2026-11-30T{:02}:{:02}:{:02}.000Z", index / 3_600, index / 60 % 60, index % 60));
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

const CONTENTS: &[Content] = &[
    ("complete", |talk| lines(talk.records())),
    ("turns_only", |talk| lines(talk.turns())),
    ("tree_only", |talk| lines(talk.tree())),
    ("empty", |_| Vec::new()),
    ("newline", |_| b"\n".to_vec()),
    ("blanks", |_| b"  \n\t\n   ".to_vec()),
    ("one_byte", |_| b"{".to_vec()),
    ("metadata", |talk| lines([talk.metadata(), talk.ending(6)].concat())),
    ("last_prompt", |talk| lines(talk.ending(6).into_iter().take(1))),
    ("attachments", |talk| lines([talk.attachment(1, None), talk.attachment(2, Some(1))])),
    ("one_attachment", |talk| lines([talk.attachment(1, None)])),
    ("system", |talk| lines([talk.system(1, None)])),
    ("system_and_metadata", |talk| lines([talk.metadata(), vec![talk.system(1, None)], talk.ending(1)].concat())),
    ("system_without_a_time", |talk| {
        let mut system = talk.system(1, None);
        system.as_object_mut().map(|record| record.remove("timestamp"));
        lines([system])
    }),
    ("attachment_without_a_time", |talk| {
        let mut attachment = talk.attachment(1, None);
        attachment.as_object_mut().map(|record| record.remove("timestamp"));
        lines([attachment])
    }),
    ("progress", |talk| lines([talk.chained("progress", 1, None, json!({"data": {"type": "hook_progress"}}))])),
    ("unknown_type", |talk| lines([talk.chained("novelty", 1, None, json!({"content": "x"}))])),
    ("summary_only", |_| lines([json!({"type": "summary", "summary": "a talk", "leafUuid": "00000001-0000-4000-8000-000000000001"})])),
    ("file_history_only", |_| lines([json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": false})])),
    ("user_only", |talk| lines([talk.user(1, None, "u1")])),
    ("assistant_only", |talk| lines([talk.assistant(1, None, "a1")])),
    ("assistants_only", |talk| lines(talk.records().into_iter().filter(|record| record["type"] == "assistant"))),
    ("meta_user", |talk| {
        let mut user = talk.user(1, None, "u1");
        user["isMeta"] = json!(true);
        lines([user])
    }),
    ("minimal_user", |talk| lines([json!({"type": "user", "uuid": talk.uuid(1), "message": {"role": "user", "content": talk.mark("u1")}})])),
    ("minimal_user_without_uuid", |talk| lines([json!({"type": "user", "message": {"role": "user", "content": talk.mark("u1")}})])),
    ("messageless_user", |talk| lines([talk.chained("user", 1, None, json!({}))])),
    ("messageless_tree", |talk| {
        lines(talk.records().into_iter().map(|mut record| {
            if let Some(record) = record.as_object_mut() {
                record.remove("message");
            }
            record
        }))
    }),
    ("message_is_null", |talk| lines([talk.chained("user", 1, None, json!({"message": null}))])),
    ("message_is_text", |talk| lines([talk.chained("user", 1, None, json!({"message": talk.mark("u1")}))])),
    ("user_content_is_a_list", |talk| {
        let message = json!({"role": "user", "content": [{"type": "text", "text": talk.mark("u1")}]});
        lines([talk.chained("user", 1, None, json!({ "message": message })), talk.assistant(2, Some(1), "a1")])
    }),
    ("user_content_is_missing", |talk| lines([talk.chained("user", 1, None, json!({"message": {"role": "user"}})), talk.assistant(2, Some(1), "a1")])),
    ("sidechain", |talk| talk.with("isSidechain", Some(&json!(true)))),
    ("sidechain_spaced", |talk| {
        let mut records = timed(talk.records());
        records.iter_mut().filter(|record| record.get("uuid").is_some()).for_each(|record| record["isSidechain"] = json!(true));
        records.iter().flat_map(|record| format!("{}\n", spaced(record)).into_bytes()).collect()
    }),
    ("sidechain_is_a_text", |talk| talk.with("isSidechain", Some(&json!("true")))),
    ("sidechain_is_zero", |talk| talk.with("isSidechain", Some(&json!(0)))),
    ("sidechain_is_missing", |talk| talk.with("isSidechain", None)),
    ("sidechain_of_an_agent", |talk| {
        let mut records = talk.records();
        for record in records.iter_mut().filter(|record| record.get("uuid").is_some()) {
            record["isSidechain"] = json!(true);
            record["agentId"] = json!("a1b2c3");
        }
        lines(records)
    }),
    ("first_turn_sidechain", |talk| {
        let mut turns = talk.turns();
        turns[..2].iter_mut().for_each(|record| record["isSidechain"] = json!(true));
        lines(turns)
    }),
    ("no_last_newline", |talk| lines(talk.records()).strip_suffix(b"\n").unwrap_or_default().to_vec()),
    ("crlf", |talk| replaced(&lines(talk.records()), "\n", b"\r\n")),
    ("byte_order_mark", |talk| [b"\xef\xbb\xbf", &lines(talk.records())[..]].concat()),
    ("spaced", |talk| timed(talk.records()).iter().flat_map(|record| format!("{}\n", spaced(record)).into_bytes()).collect()),
    ("pretty", |talk| {
        let pretty = |record: &Value| serde_json::to_string_pretty(record).unwrap_or_default() + "\n";
        timed(talk.records()).iter().map(pretty).collect::<String>().into_bytes()
    }),
    ("one_array", |talk| Value::Array(timed(talk.records())).to_string().into_bytes()),
    ("blank_line_inside", |talk| talk.between(5, b"\n\n")),
    ("garbage_first", |talk| [b"not a record\n", &lines(talk.records())[..]].concat()),
    ("garbage_inside", |talk| talk.between(4, b"{\"type\":\"user\",\"mess\n")),
    ("garbage_last", |talk| [&lines(talk.records())[..], b"not a record\n"].concat()),
    ("garbage_that_names_a_user", |_| b"garbage \"type\":\"user\" garbage\n".to_vec()),
    ("text", |_| b"just some text\nof two lines\n".to_vec()),
    ("nested_user", |_| lines([json!({"type": "note", "inside": {"type": "user"}})])),
    ("nuls", |_| vec![0; 4_096]),
    ("nuls_last", |talk| [&lines(talk.records())[..], &[0; 64]].concat()),
    ("nuls_inside", |talk| talk.between(4, &[&[0; 64][..], b"\n"].concat())),
    ("nuls_for_the_last_turn", |talk| {
        let whole = lines(talk.turns());
        let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        [&whole[..last], &vec![0; whole.len() - last]].concat()
    }),
    ("invalid_utf8", |talk| replaced(&lines(talk.records()), "-u1\"", b"-u1 \xff\xfe\"")),
    ("cut_in_metadata", |talk| talk.cut("\"cost-state\"", 4)),
    ("cut_in_the_last_reply", |talk| talk.cut("-a2\"", 1)),
    ("cut_behind_the_last_reply", |talk| lines(talk.turns()).strip_suffix(b"\n").unwrap_or_default().to_vec()),
    ("cut_behind_the_last_prompt", |talk| lines(talk.turns().into_iter().take(3)).strip_suffix(b"\n").unwrap_or_default().to_vec()),
    ("cut_in_the_first_prompt", |talk| {
        let whole = lines(talk.records());
        let found = memchr::memmem::find(&whole, b"-u1\"").unwrap_or(0);
        whole[..found].to_vec()
    }),
    ("cut_behind_a_key", |talk| talk.cut("\"message\":", 10)),
    ("glued_records", |talk| replaced(&lines(talk.turns()), "\n", b"")),
    ("glued_last", |talk| {
        let turns = timed(talk.turns());
        [lines(turns[..2].iter().cloned()), format!("{}{}\n", turns[2], turns[3]).into_bytes()].concat()
    }),
    ("half_a_line_before_the_last", |talk| {
        let turns = timed(talk.turns());
        [lines(turns[..3].iter().cloned()), format!("{{\"type\":\"assis{}\n", turns[3]).into_bytes()].concat()
    }),
    ("other_session_in_the_records", |talk| talk.with("sessionId", Some(&json!("99999999-9999-4999-8999-999999999999")))),
    ("no_session_in_the_records", |talk| talk.with("sessionId", None)),
    ("other_cwd_in_the_records", |talk| talk.with("cwd", Some(&json!("/no/such/place")))),
    ("no_cwd_in_the_records", |talk| talk.with("cwd", None)),
    ("no_version_in_the_records", |talk| talk.with("version", None)),
    ("newer_version_in_the_records", |talk| talk.with("version", Some(&json!("99.0.0")))),
    ("no_times_in_the_records", |talk| talk.with("timestamp", None)),
    ("no_time_in_the_first_turn", |talk| talk.untimed(0..2)),
    ("no_time_in_the_last_turn", |talk| talk.untimed(2..4)),
    ("no_time_in_the_last_reply", |talk| talk.untimed(3..4)),
    ("no_time_in_the_attachments", |talk| {
        let mut tree = talk.tree();
        for record in tree.iter_mut().filter(|record| record["type"] == "attachment").filter_map(Value::as_object_mut) {
            record.remove("timestamp");
        }
        lines(tree)
    }),
    ("times_that_are_none", |talk| talk.with("timestamp", Some(&json!("some time")))),
    ("times_that_are_numbers", |talk| talk.with("timestamp", Some(&json!(1_796_072_072)))),
    ("no_branch_in_the_records", |talk| talk.with("gitBranch", None)),
    ("interactive_records", |talk| talk.with("entrypoint", Some(&json!("cli")))),
    ("parents_missing", |talk| talk.with("parentUuid", None)),
    ("parents_null", |talk| talk.with("parentUuid", Some(&Value::Null))),
    ("parent_unknown", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = json!(talk.uuid(99));
        lines(turns)
    }),
    ("parent_unknown_2_seconds_later", |talk| talk.later(2_000, 99)),
    ("parent_unknown_4_seconds_later", |talk| talk.later(4_000, 99)),
    ("parent_unknown_5_seconds_later", |talk| talk.later(5_000, 99)),
    ("parent_unknown_6_seconds_later", |talk| talk.later(6_000, 99)),
    ("parent_unknown_a_minute_later", |talk| talk.later(60_000, 99)),
    ("parent_unknown_a_day_later", |talk| talk.later(86_400_000, 99)),
    ("own_parent_a_minute_later", |talk| talk.later(60_000, 3)),
    ("in_a_circle_a_minute_later", |talk| talk.later(60_000, 4)),
    ("known_parent_a_day_later", |talk| talk.later(86_400_000, 2)),
    ("parent_unknown_and_no_times", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = json!(talk.uuid(99));
        turns.iter_mut().filter_map(Value::as_object_mut).for_each(|record| drop(record.remove("timestamp")));
        lines(turns)
    }),
    ("first_parent_unknown", |talk| {
        let mut turns = talk.turns();
        turns[0]["parentUuid"] = json!(talk.uuid(98));
        lines(turns)
    }),
    ("second_root", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = Value::Null;
        lines(turns)
    }),
    ("parents_in_a_circle", |talk| {
        let mut turns = talk.turns();
        turns[0]["parentUuid"] = json!(talk.uuid(4));
        lines(turns)
    }),
    ("own_parent", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = json!(talk.uuid(3));
        lines(turns)
    }),
    ("second_prompt_and_reply_in_a_circle", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = json!(talk.uuid(4));
        lines(turns)
    }),
    ("first_reply_is_its_own_parent", |talk| {
        let mut turns = talk.turns();
        turns[1]["parentUuid"] = json!(talk.uuid(2));
        lines(turns)
    }),
    ("last_reply_is_its_own_parent", |talk| {
        let mut turns = talk.turns();
        turns[3]["parentUuid"] = json!(talk.uuid(4));
        lines(turns)
    }),
    ("last_turn_sidechain", |talk| {
        let mut turns = talk.turns();
        turns[2..].iter_mut().for_each(|record| record["isSidechain"] = json!(true));
        lines(turns)
    }),
    ("first_reply_sidechain", |talk| {
        let mut turns = talk.turns();
        turns[1]["isSidechain"] = json!(true);
        lines(turns)
    }),
    ("sidechain_beside", |talk| {
        let mut turns = talk.turns();
        for (number, turn) in [(11, "x1"), (12, "x2")] {
            let mut record = talk.user(number, (number > 11).then_some(11), turn);
            record["isSidechain"] = json!(true);
            turns.insert(2, record);
        }
        lines(turns)
    }),
    ("sidechain_last_beside", |talk| {
        let mut turns = talk.turns();
        let mut record = talk.user(11, None, "x1");
        record["isSidechain"] = json!(true);
        turns.push(record);
        lines(turns)
    }),
    ("turns_reversed", |talk| lines(talk.turns().into_iter().rev())),
    ("last_two_swapped", |talk| {
        let mut turns = talk.turns();
        turns.swap(2, 3);
        lines(turns)
    }),
    ("first_two_swapped", |talk| {
        let mut turns = talk.turns();
        turns.swap(0, 1);
        lines(turns)
    }),
    ("first_turn_written_last", |talk| {
        let mut turns = talk.turns();
        turns.rotate_left(2);
        lines(turns)
    }),
    ("last_uuid_missing", |talk| {
        let mut turns = talk.turns();
        turns[3].as_object_mut().map(|record| record.remove("uuid"));
        lines(turns)
    }),
    ("first_uuids_missing", |talk| {
        let mut turns = talk.turns();
        turns[..2].iter_mut().for_each(|turn| drop(turn.as_object_mut().map(|record| record.remove("uuid"))));
        lines(turns)
    }),
    ("turns_without_uuids", |talk| {
        let mut turns = talk.turns();
        turns.iter_mut().for_each(|turn| drop(turn.as_object_mut().map(|record| record.remove("uuid"))));
        lines(turns)
    }),
    ("turns_without_uuids_and_parents", |talk| {
        let mut turns = talk.turns();
        turns.iter_mut().filter_map(Value::as_object_mut).for_each(|record| {
            record.remove("uuid");
            record.remove("parentUuid");
        });
        lines(turns)
    }),
    ("uuid_is_a_number", |talk| {
        let mut turns = talk.turns();
        turns[3]["uuid"] = json!(4);
        lines(turns)
    }),
    ("first_reply_missing", |talk| lines(talk.records().into_iter().filter(|record| record["uuid"] != json!(talk.uuid(3))))),
    ("two_branches", |talk| {
        lines(talk.branches())
    }),
    ("two_branches_older_by_time", |talk| {
        let mut branches = talk.branches();
        branches[4]["timestamp"] = json!("2026-11-29T19:00:00.000Z");
        branches[5]["timestamp"] = json!("2026-11-29T19:00:01.000Z");
        lines(branches)
    }),
    ("two_branches_and_the_leaf_of_the_first", |talk| lines([talk.branches(), talk.ending(4)].concat())),
    ("two_branches_and_the_leaf_of_the_second", |talk| lines([talk.branches(), talk.ending(6)].concat())),
    ("two_branches_and_the_leaf_between", |talk| {
        let branches = talk.branches();
        lines([branches[..4].to_vec(), talk.ending(4), branches[4..].to_vec()].concat())
    }),
    ("two_branches_and_a_leaf_inside", |talk| lines([talk.branches(), talk.ending(2)].concat())),
    ("first_branch_goes_on", |talk| {
        let mut branches = talk.branches();
        branches.push(talk.user(7, Some(4), "u4"));
        lines(branches)
    }),
    ("second_branch_has_no_reply", |talk| lines(talk.branches().into_iter().take(5))),
    ("second_branch_is_an_attachment", |talk| {
        let mut turns = talk.turns();
        turns.push(talk.attachment(9, Some(2)));
        lines(turns)
    }),
    ("second_branch_is_a_system_record", |talk| {
        let mut turns = talk.turns();
        turns.push(talk.system(9, Some(2)));
        lines(turns)
    }),
    ("two_trees_and_a_root_last", |talk| lines([talk.assistant(2, Some(1), "a1"), talk.user(3, None, "u2"), talk.user(1, None, "u1")])),
    ("attachment_of_its_own_last", |talk| lines(talk.turns().into_iter().chain([talk.attachment(9, None)]))),
    ("system_of_its_own_last", |talk| lines(talk.turns().into_iter().chain([talk.system(9, None)]))),
    ("attachment_of_its_own_and_the_last_leaf", |talk| lines(talk.turns().into_iter().chain([talk.attachment(9, None)]).chain(talk.ending(4)))),
    ("second_branch_is_a_progress_record", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained("progress", 9, Some(2), json!({"data": {"type": "hook_progress"}}))]))
    }),
    ("second_branch_is_of_an_unknown_type", |talk| lines(talk.turns().into_iter().chain([talk.chained("novelty", 9, Some(2), json!({}))]))),
    ("second_branch_has_no_message", |talk| lines(talk.turns().into_iter().chain([talk.chained("user", 9, Some(2), json!({}))]))),
    ("messageless_of_its_own_last", |talk| lines(talk.turns().into_iter().chain([talk.chained("user", 9, None, json!({}))]))),
    ("uuid_used_again", |talk| {
        let again = [talk.user(1, Some(2), "u3"), talk.assistant(5, Some(1), "a3")];
        lines(talk.turns().into_iter().take(2).chain(again))
    }),
    ("attachment_branch_and_the_leaf_of_the_turns", |talk| lines(talk.turns().into_iter().chain([talk.attachment(9, Some(2))]).chain(talk.ending(4)))),
    ("sidechain_before_an_unknown_parent", |talk| {
        let mut turns = talk.turns();
        turns[2]["parentUuid"] = json!(talk.uuid(99));
        let mut record = talk.user(11, None, "x1");
        record["isSidechain"] = json!(true);
        turns.insert(2, record);
        lines(turns)
    }),
    ("leaf_of_a_sidechain", |talk| {
        let mut record = talk.user(11, Some(2), "x1");
        record["isSidechain"] = json!(true);
        lines(talk.turns().into_iter().chain([record]).chain(talk.ending(11)))
    }),
    ("leaf_before_an_unlinked_turn", |talk| {
        let later = [talk.user(5, None, "u3"), talk.assistant(6, Some(5), "a3")];
        lines(talk.turns().into_iter().chain(talk.ending(4)).chain(later))
    }),
    ("two_leaves_named", |talk| lines(talk.branches().into_iter().chain(talk.ending(6)).chain(talk.ending(4)))),
    ("leaf_inside_of_two_branches_below", |talk| {
        let more = [talk.user(7, Some(4), "u4"), talk.user(8, Some(4), "u5")];
        lines(talk.branches().into_iter().chain(more).chain(talk.ending(4)))
    }),
    ("leaf_inside", |talk| lines([talk.turns(), talk.ending(2)].concat())),
    ("tree_reversed", |talk| lines(talk.tree().into_iter().rev())),
    ("turns_reversed_and_a_leaf_inside", |talk| lines(talk.turns().into_iter().rev().chain(talk.ending(2)))),
    ("turns_reversed_and_the_last_leaf", |talk| lines(talk.turns().into_iter().rev().chain(talk.ending(4)))),
    ("attachment_last", |talk| lines(talk.turns().into_iter().chain([talk.attachment(9, Some(4))]))),
    ("system_last", |talk| lines(talk.turns().into_iter().chain([talk.system(9, Some(4))]))),
    ("progress_last", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained("progress", 9, Some(4), json!({"data": {"type": "hook_progress"}}))]))
    }),
    ("reversed", |talk| lines(talk.records().into_iter().rev())),
    ("uuids_missing", |talk| talk.with("uuid", None)),
    ("uuids_twice", |talk| {
        let turns = talk.turns();
        lines([turns.clone(), turns].concat())
    }),
    ("leaf_unknown", |talk| replaced(&lines(talk.records()), &format!("\"leafUuid\":\"{}\"", talk.uuid(6)), format!("\"leafUuid\":\"{}\"", talk.uuid(77)).as_bytes())),
    ("leaf_of_the_first_turn", |talk| replaced(&lines(talk.records()), &format!("\"leafUuid\":\"{}\"", talk.uuid(6)), format!("\"leafUuid\":\"{}\"", talk.uuid(3)).as_bytes())),
    ("system_between", |talk| {
        let mut turns = talk.turns();
        turns.insert(2, talk.system(9, Some(2)));
        turns[3]["parentUuid"] = json!(talk.uuid(9));
        lines(turns)
    }),
    ("progress_between", |talk| {
        let mut turns = talk.turns();
        turns.insert(2, talk.chained("progress", 9, Some(2), json!({"data": {"type": "hook_progress"}})));
        turns[3]["parentUuid"] = json!(talk.uuid(9));
        lines(turns)
    }),
    ("compacted", |talk| {
        let boundary = talk.chained("system", 10, None, json!({
            "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info", "logicalParentUuid": talk.uuid(4),
            "compactMetadata": {"trigger": "manual", "preTokens": 100},
        }));
        let mut summary = talk.user(11, Some(10), "s1");
        summary["isCompactSummary"] = json!(true);
        let after = [boundary, summary, talk.assistant(12, Some(11), "a3")];
        lines(talk.turns().into_iter().chain(after))
    }),
    ("compact_boundary_last", |talk| {
        let boundary = talk.chained("system", 10, None, json!({
            "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info", "logicalParentUuid": talk.uuid(4),
            "compactMetadata": {"trigger": "manual", "preTokens": 100},
        }));
        lines(talk.turns().into_iter().chain([boundary]))
    }),
    ("error_reply_last", |talk| {
        let mut turns = talk.turns();
        turns[3]["isApiErrorMessage"] = json!(true);
        lines(turns)
    }),
    ("tool_call_unanswered", |talk| {
        let mut turns = talk.turns();
        turns[3]["message"]["content"] = json!([{"type": "text", "text": talk.mark("a2")}, {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "true"}}]);
        lines(turns)
    }),
    ("tool_result_without_call", |talk| {
        let mut turns = talk.turns();
        turns[2]["message"]["content"] = json!([{"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}, {"type": "text", "text": talk.mark("u2")}]);
        lines(turns)
    }),
    ("megabytes_of_metadata_before", |talk| [filler(3 << 20), lines(talk.turns())].concat()),
    ("megabytes_of_metadata_behind", |talk| [lines(talk.turns()), filler(3 << 20)].concat()),
    ("a_turn_of_megabytes", |talk| {
        let mut turns = talk.turns();
        turns[0]["message"]["content"] = json!(format!("{} {}", talk.mark("u1"), "x".repeat(3 << 20)));
        lines(turns)
    }),
    ("a_turn_between_megabytes", |talk| [filler(3 << 20), lines([talk.user(1, None, "u1")]), filler(3 << 20)].concat()),
    ("hundred_turns", |talk| {
        let mut records = Vec::new();
        for turn in 0..100u32 {
            let parent = (turn > 0).then_some(turn * 2);
            records.push(talk.user(turn * 2 + 1, parent, &format!("u{}", turn + 1)));
            records.push(talk.assistant(turn * 2 + 2, Some(turn * 2 + 1), &format!("a{}", turn + 1)));
        }
        lines(records)
    }),
];
