//! Files as bytes: cut, glued, spread, filled with what is no record, large.

use serde_json::{Value, json};

use super::{Content, filler, lines, replaced, spaced, timed};

pub(super) const CONTENTS: &[Content] = &[
    ("no_last_newline", |talk| lines(talk.records()).strip_suffix(b"\n").unwrap_or_default().to_vec()),
    ("crlf", |talk| replaced(&lines(talk.records()), "\n", b"\r\n")),
    ("byte_order_mark", |talk| [b"\xef\xbb\xbf", &lines(talk.records())[..]].concat()),
    ("spaced", |talk| {
        timed(talk.records()).iter().flat_map(|record| format!("{}\n", spaced(record)).into_bytes()).collect()
    }),
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
    ("cut_behind_the_last_prompt", |talk| {
        lines(talk.turns().into_iter().take(3)).strip_suffix(b"\n").unwrap_or_default().to_vec()
    }),
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
    ("megabytes_of_metadata_before", |talk| [filler(3 << 20), lines(talk.turns())].concat()),
    ("megabytes_of_metadata_behind", |talk| [lines(talk.turns()), filler(3 << 20)].concat()),
    ("a_turn_of_megabytes", |talk| {
        let mut turns = talk.turns();
        turns[0]["message"]["content"] = json!(format!("{} {}", talk.mark("u1"), "x".repeat(3 << 20)));
        lines(turns)
    }),
    ("a_turn_between_megabytes", |talk| [filler(3 << 20), lines([talk.user(1, None, "u1")]), filler(3 << 20)].concat()),
    ("a_conversation_of_megabytes", |talk| {
        let mut records = Vec::new();
        for turn in 0..100u32 {
            let parent = (turn > 0).then_some(turn * 2);
            let mut user = talk.user(turn * 2 + 1, parent, &format!("u{}", turn + 1));
            user["message"]["content"] =
                json!(format!("{} {}", talk.mark(&format!("u{}", turn + 1)), "x".repeat(100_000)));
            records.push(user);
            records.push(talk.assistant(turn * 2 + 2, Some(turn * 2 + 1), &format!("a{}", turn + 1)));
        }
        lines(records)
    }),
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
