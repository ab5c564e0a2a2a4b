//! What an event changed: two states, field by field, as a person reads it. Pure.

use serde_json::{Value, json};

use crate::cli::line::{short, word};

/// A field that is not as it was.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// The way to it, name by name.
    field: Vec<String>,
    before: Value,
    after: Value,
}

/// The fields that differ, in the order of the states. Where a thing was there before and after it is looked into; where it
/// came or went it is one change.
pub(super) fn between(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(&mut Vec::new(), before, after, &mut changes);
    changes
}

fn walk(field: &mut Vec<String>, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        changes.push(Change { field: field.clone(), before: before.clone(), after: after.clone() });
        return;
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    for key in new.keys().chain(gone) {
        let of = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
        field.push(key.clone());
        walk(field, &of(old), &of(new), changes);
        field.pop();
    }
}

impl Change {
    /// `field: before → after`
    pub(super) fn line(&self) -> String {
        let key = self.field.last().map_or("", String::as_str);
        format!("{}: {} → {}", self.field.join("."), told(key, &self.before), told(key, &self.after))
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"field": self.field, "before": self.before, "after": self.after})
    }
}

fn told(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => short(key, text),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => format!("[{}]", items.iter().map(|item| told(key, item)).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let is_empty = |value: &Value| match value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            };
            let one = |(key, value): (&String, &Value)| format!("{}={}", word(key), told(key, value));
            let words: Vec<_> = fields.iter().filter(|(_, value)| !is_empty(value)).map(one).collect();
            if words.is_empty() { "none".into() } else { format!("{{{}}}", words.join(" ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_told_and_what_came_is_told_at_once() {
        for (before, after, expected) in [
            (json!({"a": 1, "b": null}), json!({"a": 1, "b": null}), vec![]),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), vec!["b: 2 → 3"]),
            (json!({"a": null}), json!({"a": {"x": "p q", "y": null, "z": []}}), vec![r#"a: none → {x="p q"}"#]),
            (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1, "y": "w"}}), vec!["a.y: 2 → w"]),
            (json!({"a": {"s1": {"x": 1}}}), json!({"a": {}}), vec!["a.s1: {x=1} → none"]),
            (json!({"a": []}), json!({"a": ["s", "t"]}), vec!["a: none → [s, t]"]),
            (json!({"a": true}), json!({"a": false}), vec!["a: true → false"]),
        ] {
            let lines: Vec<_> = between(&before, &after).iter().map(Change::line).collect();
            assert_eq!(lines, expected, "{before} {after}");
        }
    }
}
