//! What the edits of settings promise: our entries and nothing else, and the way back.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the arm that it is about")]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const COMMAND: &str = "/opt/throughline hook claude --agent marks";

fn both() -> Vec<String> {
    EVENTS.iter().map(|event| (*event).to_owned()).collect()
}

fn installed(text: &str) -> String {
    match install(Some(text), &both(), COMMAND).unwrap().after {
        After::Text(new) => new,
        other => panic!("{text}: {other:?}"),
    }
}

fn uninstalled(text: &str) -> String {
    match uninstall(text).unwrap().after {
        After::Text(new) => new,
        other => panic!("{text}: {other:?}"),
    }
}

fn array(indent: &str, end: &str) -> String {
    let command = format!("\"command\": \"{COMMAND}\"");
    let lines = ["[", "  {", "    \"hooks\": [", "      {", "        \"type\": \"command\","];
    let rest = [&format!("        {command}"), "      }", "    ]", "  }", "]"];
    lines.into_iter().chain(rest).collect::<Vec<_>>().join(&format!("{end}{indent}"))
}

#[test]
fn entries_are_laid_out_as_what_stands_beside_them() {
    let own = array("    ", "\n");
    let hooks = format!("\"hooks\": {{\n    \"SessionStart\": {own},\n    \"SessionEnd\": {own}\n  }}");
    let short = format!("[{{\"hooks\":[{{\"type\":\"command\",\"command\":\"{COMMAND}\"}}]}}]");
    let spaced = short.replace(":[", ": [").replace("\":\"", "\": \"").replace(",\"", ", \"");
    for (old, new) in [
        ("{\n  \"a\": 1\n}\n".to_owned(), format!("{{\n  \"a\": 1,\n  {hooks}\n}}\n")),
        ("{}".to_owned(), format!("{{\n  {hooks} \n}}")),
        (
            "{\r\n\t\"a\": 1\r\n}".to_owned(),
            format!("{{\n  \"a\": 1,\n  {hooks}\n}}").replace("  ", "\t").replace('\n', "\r\n"),
        ),
        ("{\"a\":1}".to_owned(), format!("{{\"a\":1,\"hooks\":{{\"SessionStart\":{short},\"SessionEnd\":{short}}}}}")),
        (
            "{\"a\": 1}".to_owned(),
            format!("{{\"a\": 1, \"hooks\": {{\"SessionStart\": {spaced}, \"SessionEnd\": {spaced}}}}}"),
        ),
        (
            "{\n  \"hooks\": {}\n}".to_owned(),
            format!("{{\n  \"hooks\": {{\n    \"SessionStart\": {own},\n    \"SessionEnd\": {own} \n  }}\n}}"),
        ),
        (
            "{\n  \"hooks\": {\n    \"Stop\": [],\n    \"SessionEnd\": [\n      7\n    ]\n  }, \"z\": 0}".to_owned(),
            format!(
                "{{\n  \"hooks\": {{\n    \"Stop\": [],\n    \"SessionEnd\": [\n      7,{}\n    ],\n    \"SessionStart\": {own}\n  }}, \"z\": 0}}",
                own.trim_start_matches('[').trim_end_matches("\n    ]")
            ),
        ),
    ] {
        assert_eq!(installed(&old), new, "{old}");
        assert_eq!(uninstalled(&new), old);
    }
}

#[test]
fn every_shape_of_what_was_there_comes_back() {
    for old in [
        "{}",
        "{ }",
        "{\n}",
        "{\n\n  }",
        " {} ",
        "\u{feff}{}\r\n",
        "{}\n",
        "{\r\n}",
        "\n{ \"a\":{}}",
        "{\"hooks\":{}}",
        "{ \"hooks\" : { } }",
        "{\n  \"hooks\": {\n  }\n}",
        "{\n  \"hooks\": {\n\n\n}\n}\n",
        "{\n\"hooks\": {}\n}",
        "{\n\"hooks\":\n{\n}\n}",
        "{\n    \"hooks\": {\"SessionStart\": []}\n}",
        "{\"hooks\":{\"SessionStart\":[ ],\"SessionEnd\":[]}}",
        "{\n\t\"hooks\": {\n\t\t\"SessionEnd\": [\n\t\t]\n\t}\n}",
        "{\n  \"hooks\": {\n    \"SessionStart\": [{\n      \"matcher\": \"clear\",\n      \"hooks\": []\n    }]\n  }\n}\n",
        "{ \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"throughline log\"}]}]} }",
        "{\"b\": 1e3, \"a\": \"\\u00e9\\/\", \"a\": 2}",
    ] {
        let new = installed(old);
        assert_eq!(uninstalled(&new), old, "{new}");
        let again = install(Some(&new), &both(), COMMAND).unwrap();
        assert_eq!((again.after, again.pieces), (After::Same, Vec::new()), "{new}");
        assert_eq!(uninstall(old).unwrap().after, After::Same);
    }
}

#[test]
fn what_was_made_from_nothing_goes_as_a_whole_and_only_that() {
    let Edit { after: After::Text(made), pieces } = install(None, &both(), COMMAND).unwrap() else { panic!("a text") };
    assert_eq!(pieces, [made.as_str()]);
    assert!(made.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n") && made.ends_with("\n  }\n}\n"), "{made}");
    assert_eq!(uninstall(&made).unwrap().after, After::Gone);
    for other in [made.trim_end().to_owned(), made.replace("  ", "\t"), made.replace('\n', "\r\n"), format!("{made}\n")]
    {
        assert_eq!(uninstalled(&other).trim(), "{}", "{other}");
    }
    assert_eq!(uninstalled(&installed("{}\n")), "{}\n");
}

#[test]
fn another_layout_of_what_was_installed_is_taken_out_too() {
    for old in ["{}", "{\"a\": [1], \"hooks\": {\"Stop\": [{\"hooks\": []}]}}", "{\"a\": {}}"] {
        let value: Value = serde_json::from_str(&installed(old)).unwrap();
        for new in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let left: Value = serde_json::from_str(&uninstalled(&new)).unwrap();
            assert_eq!(left, serde_json::from_str::<Value>(old).unwrap(), "{new}");
        }
    }
}

#[test]
fn only_our_entries_are_taken_out_of_groups_that_others_share() {
    let ours = format!("{{\"type\": \"command\", \"command\": \"{COMMAND}\"}}");
    let other = "{\"type\": \"command\", \"command\": \"throughline hook claude | tee x\"}";
    let prompt = format!("{{\"type\": \"prompt\", \"command\": \"{COMMAND}\"}}");
    for (groups, left) in [
        (format!("[{{\"hooks\": [{ours}, {other}]}}]"), format!("[{{\"hooks\": [{other}]}}]")),
        (format!("[{{\"hooks\": [{other}, {ours}, {prompt}]}}]"), format!("[{{\"hooks\": [{other}, {prompt}]}}]")),
        (
            format!("[{{\"matcher\": \"clear\", \"hooks\": [ {ours} ]}}]"),
            "[{\"matcher\": \"clear\", \"hooks\": []}]".into(),
        ),
        (format!("[{{\"hooks\": [{ours}]}}, null, 7]"), "[null, 7]".into()),
        (format!("[null, {{\"hooks\": [{ours}]}}]"), "[null]".into()),
    ] {
        let text = |groups: &str| format!("{{\"hooks\": {{\"A\": {groups}, \"B\": 5}}}}");
        assert_eq!(uninstalled(&text(&groups)), text(&left));
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    for (text, words) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("{} {}", "not JSON"),
        ("// x\n{}", "not JSON"),
        ("{\"a\": 1,}", "not JSON"),
        ("[]", "is not an object"),
        ("null", "is not an object"),
        ("{\"hooks\": []}", "\"hooks\" is not an object"),
        ("{\"hooks\": null}", "\"hooks\" is not an object"),
        ("{\"hooks\": {\"SessionEnd\": {}}}", "\"hooks\".\"SessionEnd\" is not an array"),
        ("{\"hooks\": {}, \"hooks\": {}}", "\"hooks\" is given twice"),
        ("{\"hooks\": {\"SessionEnd\": [], \"\\u0053essionEnd\": []}}", "\"SessionEnd\" is given twice"),
    ] {
        let said = install(Some(text), &both(), COMMAND).unwrap_err().to_string();
        assert!(said.contains(words), "{text}: {said}");
    }
    let said = install(Some(&installed("{}")), &both(), "throughline hook claude").unwrap_err().to_string();
    assert!(said.contains("SessionStart runs \"/opt/throughline hook claude --agent marks\" already"), "{said}");
}

#[test]
fn an_edit_that_took_more_is_noticed() {
    let ours = json!({"type": "command", "command": COMMAND});
    let other = json!({"type": "command", "command": "x"});
    let group = |entries: &[&Value]| json!({"hooks": entries});
    let old = json!({"a": 1, "hooks": {"A": [group(&[&ours])], "B": [], "C": [group(&[&other, &ours])], "D": 4}});
    let right = json!({"a": 1, "hooks": {"B": [], "C": [group(&[&other])], "D": 4}});
    let mut empty = right.clone();
    empty["hooks"]["A"] = json!([]);
    assert!(only_ours_are_gone(&old, &right) && only_ours_are_gone(&old, &empty));
    for (pointer, wrong) in [
        ("/a", json!(2)),
        ("/hooks", json!({})),
        ("/hooks/B", json!([1])),
        ("/hooks/B", Value::Null),
        ("/hooks/C", json!([])),
        ("/hooks/C/0", group(&[&other, &ours])),
        ("/hooks/C/0", json!({"hooks": [other], "matcher": ""})),
        ("/hooks/D", json!(5)),
    ] {
        let mut new = right.clone();
        *new.pointer_mut(pointer).unwrap() = wrong;
        assert!(!only_ours_are_gone(&old, &new), "{new}");
    }
    for gone in ["B", "C", "D"] {
        let mut new = right.clone();
        new["hooks"].as_object_mut().unwrap().remove(gone);
        assert!(!only_ours_are_gone(&old, &new), "{new}");
    }
    assert!(!only_ours_are_gone(&right, &old));
}

#[test]
fn one_event_that_is_there_already_is_not_added_again() {
    let first = install(Some("{}"), &both()[..1], COMMAND).unwrap().after;
    let After::Text(first) = first else { panic!("a text") };
    let second = install(Some(&first), &both(), COMMAND).unwrap();
    let After::Text(text) = second.after else { panic!("a text") };
    assert_eq!((text.matches(COMMAND).count(), second.pieces.len()), (2, 1));
    assert_eq!(uninstalled(&text), "{}");
}

/// A value with the layout still open.
#[derive(Clone, Debug)]
enum Doc {
    Plain(&'static str),
    List(Vec<Doc>),
    Map(Vec<(String, Doc)>),
}

fn doc() -> impl Strategy<Value = Doc> {
    let plain = prop::sample::select(vec![
        "null",
        "1.50",
        "-0",
        "\"a \\\" \\u00e9 }\"",
        "\"\"",
        "true",
        "\"ü\\n\"",
        "[]",
        "{}",
    ]);
    plain.prop_map(Doc::Plain).prop_recursive(3, 12, 4, |inner| {
        let key = prop::sample::select(vec!["a", "b", "hook", "c d", "SessionStart", "é", ""]).prop_map(str::to_owned);
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Doc::List), vec((key, inner), 0..4).prop_map(Doc::Map)]
    })
}

/// Settings: anything, and perhaps hooks of every shape that they may have.
fn settings() -> impl Strategy<Value = Doc> {
    let own = vec![("hooks".to_owned(), Doc::List(vec![Doc::Map(vec![("type".into(), Doc::Plain("\"command\""))])]))];
    let group = prop_oneof![Just(Doc::Map(own)), doc()];
    let event = vec(group, 0..3).prop_map(Doc::List);
    let events = prop::sample::subsequence(vec!["SessionStart", "Stop", "SessionEnd", "Other"], 0..4).prop_shuffle();
    let hooks = (events, vec(event, 4))
        .prop_map(|(names, arrays)| Doc::Map(names.into_iter().map(str::to_owned).zip(arrays).collect()));
    let others = vec(("[a-z]{1,4}", doc()), 0..4);
    (others, prop::option::of(hooks), any::<prop::sample::Index>()).prop_map(|(mut others, hooks, at)| {
        others.retain(|(key, _)| key != HOOKS);
        if let Some(hooks) = hooks {
            let at = at.index(others.len() + 1);
            others.insert(at, (HOOKS.into(), hooks));
        }
        Doc::Map(others)
    })
}

/// Where blanks go: by level on lines of their own, on one line, or anywhere.
#[derive(Clone, Debug)]
enum Blanks {
    Lines { unit: &'static str, end: &'static str, tight: bool },
    Short(&'static str),
    Wild(Vec<&'static str>),
}

fn blanks() -> impl Strategy<Value = Blanks> {
    let units = prop::sample::select(vec!["  ", "    ", "\t", " ", ""]);
    let wild = prop::sample::select(vec!["", " ", "\n", "\r\n", "\n  ", "\n    ", "\t", "  ", "\n\n "]);
    prop_oneof![
        (units, prop::sample::select(vec!["\n", "\r\n"]), any::<bool>()).prop_map(|(unit, end, tight)| Blanks::Lines {
            unit,
            end,
            tight
        }),
        prop::sample::select(vec!["", " "]).prop_map(Blanks::Short),
        vec(wild, 1..40).prop_map(Blanks::Wild),
    ]
}

struct Printer {
    blanks: Blanks,
    out: String,
    asked: usize,
}

impl Printer {
    /// The blanks of a place: `level` where a line may begin, else behind a colon or anywhere.
    fn blank(&mut self, level: Option<usize>, after_word: bool) {
        let text = match (&self.blanks, level) {
            (Blanks::Lines { unit, end, .. }, Some(level)) => format!("{end}{}", unit.repeat(level)),
            (Blanks::Lines { .. }, None) => if after_word { " " } else { "" }.to_owned(),
            (Blanks::Short(gap), _) => if after_word { gap } else { "" }.to_string(),
            (Blanks::Wild(all), _) => all[self.asked % all.len()].to_owned(),
        };
        self.asked += 1;
        self.out.push_str(&text);
    }

    fn print(&mut self, doc: &Doc, level: usize) {
        let (open, close, items): (_, _, Vec<(Option<&String>, &Doc)>) = match doc {
            Doc::Plain(text) => return self.out.push_str(text),
            Doc::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
            Doc::Map(items) => ('{', '}', items.iter().map(|(key, item)| (Some(key), item)).collect()),
        };
        let tight = items.is_empty() && matches!(self.blanks, Blanks::Lines { tight: true, .. });
        self.out.push(open);
        for (number, (key, item)) in items.iter().enumerate() {
            if number > 0 {
                self.blank(None, false);
                self.out.push(',');
            }
            self.blank(Some(level + 1), number > 0);
            if let Some(key) = key {
                self.out.push_str(&Value::from(key.as_str()).to_string());
                self.blank(None, false);
                self.out.push(':');
                self.blank(None, true);
            }
            self.print(item, level + 1);
        }
        if !tight {
            self.blank(Some(level), false);
        }
        self.out.push(close);
    }
}

fn text() -> impl Strategy<Value = String> {
    let ends = prop::sample::select(vec!["", "\n", "\r\n", " \n\n"]);
    (settings(), blanks(), any::<bool>(), ends).prop_map(|(doc, blanks, has_mark, end)| {
        let mut printer = Printer { blanks, out: if has_mark { "\u{feff}".into() } else { String::new() }, asked: 0 };
        printer.print(&doc, 0);
        printer.out + end
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_installed_comes_out_again_and_nothing_else_changes(old in text()) {
        let edit = install(Some(&old), &both(), COMMAND).unwrap();
        let After::Text(new) = edit.after else { panic!("{old}: nothing to do") };
        // Every byte of the old text is there, in order, beside the pieces.
        let mut rest = new.as_str();
        let mut kept = String::new();
        for piece in &edit.pieces {
            let (before, after) = rest.split_once(piece.as_str()).unwrap();
            kept.push_str(before);
            rest = after;
        }
        prop_assert_eq!(kept + rest, old.as_str());
        let value: Value = serde_json::from_str(without_mark(&new)).unwrap();
        for event in EVENTS {
            let last = value[HOOKS][*event].as_array().unwrap().last().unwrap();
            prop_assert_eq!(&last["hooks"][0]["command"], COMMAND);
        }
        prop_assert_eq!(&install(Some(&new), &both(), COMMAND).unwrap().after, &After::Same);
        match uninstall(&new).unwrap().after {
            After::Text(back) => prop_assert_eq!(back, old),
            other => prop_assert!(false, "{:?}: {}", other, new),
        }
    }

    #[test]
    fn any_text_is_edited_or_refused(text in ".{0,40}|[\\[\\]{}:,\" a\\\\0\n]{0,60}") {
        drop(install(Some(&text), &both(), COMMAND));
        drop(uninstall(&text));
    }
}
