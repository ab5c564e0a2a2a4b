//! Files of records of one kind, and odd fields.

use serde_json::{Value, json};

use super::{Content, lines, spaced, timed};

pub(super) const CONTENTS: &[Content] = &[
    ("complete", |talk| lines(talk.records())),
    ("turns_only", |talk| lines(talk.turns())),
    ("tree_only", |talk| lines(talk.tree())),
    ("empty", |_| Vec::new()),
    ("newline", |_| b"\n".to_vec()),
    ("blanks", |_| b"  \n\t\n   ".to_vec()),
    ("one_byte", |_| b"{".to_vec()),
    ("metadata", |talk| lines([talk.notes(), talk.ending(6)].concat())),
    ("last_prompt", |talk| lines(talk.ending(6).into_iter().take(1))),
    ("attachments", |talk| lines([talk.attachment(1, None), talk.attachment(2, Some(1))])),
    ("one_attachment", |talk| lines([talk.attachment(1, None)])),
    ("system", |talk| lines([talk.system(1, None)])),
    ("system_and_metadata", |talk| lines([talk.notes(), vec![talk.system(1, None)], talk.ending(1)].concat())),
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
    ("summary_only", |_| {
        lines([json!({"type": "summary", "summary": "a talk", "leafUuid": "00000001-0000-4000-8000-000000000001"})])
    }),
    ("file_history_only", |_| {
        lines([json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": false})])
    }),
    ("user_only", |talk| lines([talk.user(1, None, "u1")])),
    ("assistant_only", |talk| lines([talk.assistant(1, None, "a1")])),
    ("assistants_only", |talk| lines(talk.records().into_iter().filter(|record| record["type"] == "assistant"))),
    ("meta_user", |talk| {
        let mut user = talk.user(1, None, "u1");
        user["isMeta"] = json!(true);
        lines([user])
    }),
    ("minimal_user", |talk| {
        lines([json!({"type": "user", "uuid": talk.uuid(1), "message": {"role": "user", "content": talk.mark("u1")}})])
    }),
    ("minimal_user_without_uuid", |talk| {
        lines([json!({"type": "user", "message": {"role": "user", "content": talk.mark("u1")}})])
    }),
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
    ("user_content_is_missing", |talk| {
        lines([talk.chained("user", 1, None, json!({"message": {"role": "user"}})), talk.assistant(2, Some(1), "a1")])
    }),
    ("sidechain", |talk| talk.with("isSidechain", Some(&json!(true)))),
    ("sidechain_spaced", |talk| {
        let mut records = timed(talk.records());
        records
            .iter_mut()
            .filter(|record| record.get("uuid").is_some())
            .for_each(|record| record["isSidechain"] = json!(true));
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
    ("other_session_in_the_records", |talk| {
        talk.with("sessionId", Some(&json!("99999999-9999-4999-8999-999999999999")))
    }),
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
];
