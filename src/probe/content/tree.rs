//! Files as trees: parents, branches, order, leaves, compaction, tool calls.

use serde_json::{Value, json};

use super::{Content, lines, replaced};

pub(super) const CONTENTS: &[Content] = &[
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
    ("first_reply_missing", |talk| {
        lines(talk.records().into_iter().filter(|record| record["uuid"] != json!(talk.uuid(3))))
    }),
    ("two_branches", |talk| lines(talk.branches())),
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
    ("two_trees_and_a_root_last", |talk| {
        lines([talk.assistant(2, Some(1), "a1"), talk.user(3, None, "u2"), talk.user(1, None, "u1")])
    }),
    ("attachment_of_its_own_last", |talk| lines(talk.turns().into_iter().chain([talk.attachment(9, None)]))),
    ("system_of_its_own_last", |talk| lines(talk.turns().into_iter().chain([talk.system(9, None)]))),
    ("attachment_of_its_own_and_the_last_leaf", |talk| {
        lines(talk.turns().into_iter().chain([talk.attachment(9, None)]).chain(talk.ending(4)))
    }),
    ("second_branch_is_a_progress_record", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained(
            "progress",
            9,
            Some(2),
            json!({"data": {"type": "hook_progress"}}),
        )]))
    }),
    ("second_branch_is_of_an_unknown_type", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained("novelty", 9, Some(2), json!({}))]))
    }),
    ("second_branch_has_no_message", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained("user", 9, Some(2), json!({}))]))
    }),
    ("messageless_of_its_own_last", |talk| {
        lines(talk.turns().into_iter().chain([talk.chained("user", 9, None, json!({}))]))
    }),
    ("uuid_used_again", |talk| {
        let again = [talk.user(1, Some(2), "u3"), talk.assistant(5, Some(1), "a3")];
        lines(talk.turns().into_iter().take(2).chain(again))
    }),
    ("attachment_branch_and_the_leaf_of_the_turns", |talk| {
        lines(talk.turns().into_iter().chain([talk.attachment(9, Some(2))]).chain(talk.ending(4)))
    }),
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
        lines(talk.turns().into_iter().chain([talk.chained(
            "progress",
            9,
            Some(4),
            json!({"data": {"type": "hook_progress"}}),
        )]))
    }),
    ("reversed", |talk| lines(talk.records().into_iter().rev())),
    ("uuids_missing", |talk| talk.with("uuid", None)),
    ("uuids_twice", |talk| {
        let turns = talk.turns();
        lines([turns.clone(), turns].concat())
    }),
    ("leaf_unknown", |talk| {
        replaced(
            &lines(talk.records()),
            &format!("\"leafUuid\":\"{}\"", talk.uuid(6)),
            format!("\"leafUuid\":\"{}\"", talk.uuid(77)).as_bytes(),
        )
    }),
    ("leaf_of_the_first_turn", |talk| {
        replaced(
            &lines(talk.records()),
            &format!("\"leafUuid\":\"{}\"", talk.uuid(6)),
            format!("\"leafUuid\":\"{}\"", talk.uuid(3)).as_bytes(),
        )
    }),
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
];
