//! Claude Code's hooks: what they are told, and the entries in `settings.json` that make it run one. Text in, text out.
//!
//! A person's settings are edited as text: what is added is put in at a place, in the layout of what stands beside it, and
//! every other byte stays. Each edit is then read as JSON and compared with the old text; one that did more than was meant
//! is an error. Taking out what was put in gives back the very text that was there before.
//!
//! Nothing here touches a disk. [`announced`] reads what a hook is told.

mod announced;
mod command;
mod layout;
mod text;

use std::ops::Range;

use serde_json::{Value, json};

pub use self::announced::{InputError, announced};
pub use self::command::{PROGRAM, command, is_ours};
use self::layout::{Insertion, Item, Piece, Style, cut};
use self::text::{Node, parse, without_mark};

/// The file below a login's folder that holds the hooks.
pub const SETTINGS: &str = "settings.json";

/// The hooks that tell when a session begins and when it ends.
pub const EVENTS: &[&str] = &["SessionStart", "SessionEnd"];

const HOOKS: &str = "hooks";

/// Why settings are not edited. Nothing of them was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// They are not JSON.
    #[error("the settings are not JSON; mend them first, nothing was changed")]
    NotJson(#[source] serde_json::Error),
    /// They hold something else than Claude Code's settings do.
    #[error("in the settings, {place} is not {expected}; mend it first, nothing was changed")]
    Shape {
        /// Where.
        place: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A key stands there twice, and only one of them counts.
    #[error("in the settings, {place} is given twice; remove one of them first, nothing was changed")]
    Twice {
        /// Which.
        place: String,
    },
    /// A hook of ours that does something else.
    #[error("{event} runs {command:?} already; take that out first with `throughline hook uninstall`")]
    Other {
        /// For which event.
        event: String,
        /// What it runs.
        command: String,
    },
    /// The edit would change more than it is meant to.
    #[error("the edit would change more of the settings than its own entries; edit them by hand, nothing was changed")]
    Differs,
}

/// What an edit makes of the settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum After {
    /// They are as they should be.
    Same,
    /// This text.
    Text(String),
    /// No file: it holds only what was made from nothing.
    Gone,
}

/// An edit: what it makes, and what it puts in or takes out, piece by piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What it makes.
    pub after: After,
    /// What is put in or taken out, in the order of the text.
    pub pieces: Vec<String>,
}

/// The settings with `command` run for each of these events; without a text, settings that are made from nothing.
///
/// # Errors
///
/// [`EditError`].
pub fn install(text: Option<&str>, events: &[String], command: &str) -> Result<Edit, EditError> {
    let Some(text) = text else {
        let whole = from_nothing(events, command);
        return Ok(Edit { after: After::Text(whole.clone()), pieces: vec![whole] });
    };
    let (old, top) = read(text)?;
    let hooks = hooks_of(&top)?;
    let mut missing = Vec::new();
    for event in events {
        let found = hooks.map_or(Ok(None), |hooks| array_of(hooks, event))?;
        let ours: Vec<&str> = found.into_iter().flat_map(ours_in).map(|(_, _, command)| command).collect();
        if let Some(other) = ours.iter().find(|ours| **ours != command) {
            return Err(EditError::Other { event: event.clone(), command: (*other).to_owned() });
        }
        if ours.is_empty() {
            missing.push(event.as_str());
        }
    }
    if missing.is_empty() {
        return Ok(Edit { after: After::Same, pieces: Vec::new() });
    }
    let insertions = insertions(text, &top, &missing, command);
    let mut new = text.to_owned();
    for insertion in insertions.iter().rev() {
        new.insert_str(insertion.at, &insertion.text);
    }
    if read(&new)?.0 != with_ours(old, &missing, command) {
        return Err(EditError::Differs);
    }
    Ok(Edit { after: After::Text(new), pieces: insertions.into_iter().map(|insertion| insertion.text).collect() })
}

/// The settings without any entry of ours, and without what would be left empty where those were; what was there empty
/// before [`install`] stays.
///
/// # Errors
///
/// [`EditError`].
pub fn uninstall(text: &str) -> Result<Edit, EditError> {
    let (old, top) = read(text)?;
    if is_from_nothing(text, &top) {
        return Ok(Edit { after: After::Gone, pieces: vec![text.to_owned()] });
    }
    let (mut new, mut top, mut pieces) = (text.to_owned(), top, Vec::new());
    while let Some(range) = last_of_ours(&new, &top)? {
        pieces.push(new[range.clone()].to_owned());
        new.replace_range(range, "");
        top = read(&new)?.1;
    }
    if pieces.is_empty() {
        return Ok(Edit { after: After::Same, pieces });
    }
    if !only_ours_are_gone(&old, &read(&new)?.0) {
        return Err(EditError::Differs);
    }
    pieces.reverse();
    Ok(Edit { after: After::Text(new), pieces })
}

fn read(text: &str) -> Result<(Value, Node), EditError> {
    let value: Value = serde_json::from_str(without_mark(text)).map_err(EditError::NotJson)?;
    let top = parse(text).filter(|top| top.members().is_some());
    let top = top.ok_or_else(|| shape("the outermost value", "an object"))?;
    Ok((value, top))
}

fn shape(place: &str, expected: &'static str) -> EditError {
    EditError::Shape { place: place.to_owned(), expected }
}

/// The value of a key that may stand there once.
fn once<'n>(of: &'n Node, key: &str) -> Result<Option<&'n Node>, EditError> {
    match of.members().unwrap_or_default().iter().filter(|member| member.key == key).count() {
        0 | 1 => Ok(of.member(key)),
        _ => Err(EditError::Twice { place: format!("{key:?}") }),
    }
}

fn hooks_of(top: &Node) -> Result<Option<&Node>, EditError> {
    let hooks = once(top, HOOKS)?;
    if hooks.is_some_and(|hooks| hooks.members().is_none()) {
        return Err(shape("\"hooks\"", "an object"));
    }
    Ok(hooks)
}

fn array_of<'n>(hooks: &'n Node, event: &str) -> Result<Option<&'n Node>, EditError> {
    let array = once(hooks, event)?;
    if array.is_some_and(|array| array.elements().is_none()) {
        return Err(shape(&format!("\"hooks\".{event:?}"), "an array"));
    }
    Ok(array)
}

/// The entries of ours in an event's array: number of the group, number in the group, command.
fn ours_in(array: &Node) -> Vec<(usize, usize, &str)> {
    let groups = array.elements().unwrap_or_default().iter().enumerate();
    groups
        .flat_map(|(group, node)| {
            let entries = node.member(HOOKS).and_then(Node::elements).unwrap_or_default().iter().enumerate();
            entries.filter_map(move |(entry, node)| {
                let is_command = node.member("type").and_then(Node::text) == Some("command");
                let command = node.member("command").and_then(Node::text)?;
                (is_command && is_ours(command)).then_some((group, entry, command))
            })
        })
        .collect()
}

/// What is put in for one event: a group of one command, for whatever is the cause of the event.
fn group(command: &str) -> Piece<'_> {
    let entry = Piece::Object(vec![("type", Piece::Text("command")), ("command", Piece::Text(command))]);
    Piece::Object(vec![(HOOKS, Piece::Array(vec![entry]))])
}

fn all<'a>(events: impl IntoIterator<Item = &'a str>, command: &'a str) -> Piece<'a> {
    Piece::Object(events.into_iter().map(|event| (event, Piece::Array(vec![group(command)]))).collect())
}

fn from_nothing(events: &[String], command: &str) -> String {
    let hooks = all(events.iter().map(String::as_str), command);
    Style::new().whole(&Piece::Object(vec![(HOOKS, hooks)]))
}

fn is_from_nothing(text: &str, top: &Node) -> bool {
    let Some(events) = top.member(HOOKS).and_then(Node::members) else { return false };
    let Some((_, _, command)) = events.first().and_then(|event| ours_in(&event.value).pop()) else { return false };
    let names: Vec<String> = events.iter().map(|event| event.key.clone()).collect();
    text == from_nothing(&names, command)
}

/// Where what goes in, in the order of the text.
fn insertions(text: &str, top: &Node, missing: &[&str], command: &str) -> Vec<Insertion> {
    let style = Style::of(text, top);
    let key_of = |node: &Node, key: &str| {
        node.members().unwrap_or_default().iter().find(|member| member.key == key).map(|member| member.start)
    };
    let Some(hooks) = top.member(HOOKS) else {
        let piece = all(missing.iter().copied(), command);
        return vec![style.insert(text, top, None, &[(Some(HOOKS), &piece)])];
    };
    let one = group(command);
    let new = Piece::Array(vec![group(command)]);
    let (there, absent): (Vec<&str>, Vec<&str>) = missing.iter().partition(|event| hooks.member(event).is_some());
    let mut insertions: Vec<Insertion> = there
        .iter()
        .filter_map(|event| Some(style.insert(text, hooks.member(event)?, key_of(hooks, event), &[(None, &one)])))
        .collect();
    if !absent.is_empty() {
        let items: Vec<Item<'_>> = absent.iter().map(|event| (Some(*event), &new)).collect();
        insertions.push(style.insert(text, hooks, key_of(top, HOOKS), &items));
    }
    insertions.sort_by_key(|insertion| insertion.at);
    insertions
}

/// The settings as a value, with our entries.
fn with_ours(mut settings: Value, events: &[&str], command: &str) -> Value {
    for event in events {
        let array = &mut settings[HOOKS][*event];
        let group = json!({HOOKS: [{"type": "command", "command": command}]});
        match array.as_array_mut() {
            Some(groups) => groups.push(group),
            None => *array = json!([group]),
        }
    }
    settings
}

/// What has to be cut out for the last entry of ours, with the containers that came with it.
fn last_of_ours(text: &str, top: &Node) -> Result<Option<Range<usize>>, EditError> {
    let Some(hooks) = hooks_of(top)? else { return Ok(None) };
    for (number, event) in hooks.members().unwrap_or_default().iter().enumerate().rev() {
        let Some((group, entry, _)) = ours_in(&event.value).pop() else { continue };
        once(hooks, &event.key)?;
        // From the inside out: the first container that stays is what is cut from.
        let range = cut_entry(text, &event.value, group, entry)
            .or_else(|| cut(text, &event.value, group))
            .or_else(|| cut(text, hooks, number))
            .or_else(|| cut(text, top, top.members()?.iter().position(|member| member.key == HOOKS)?));
        return Ok(Some(range.unwrap_or_else(|| top.inside())));
    }
    Ok(None)
}

/// An entry inside its group; nothing where the group holds nothing else. One with a matcher is somebody's own, and stays.
fn cut_entry(text: &str, groups: &Node, group: usize, entry: usize) -> Option<Range<usize>> {
    let group = groups.elements()?.get(group)?;
    let entries = group.member(HOOKS)?;
    if entries.elements()?.len() > 1 {
        return cut(text, entries, entry);
    }
    (group.members()?.len() > 1).then(|| entries.inside())
}

/// Whether the new settings are the old ones without our entries, and without such groups, arrays and hooks as are empty
/// for want of them.
fn only_ours_are_gone(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let others = |settings: &serde_json::Map<String, Value>| {
        let mut others = settings.clone();
        others.remove(HOOKS);
        others
    };
    let empty = json!({});
    let (hooks, left) = (old.get(HOOKS).unwrap_or(&empty), new.get(HOOKS).unwrap_or(&empty));
    let (Some(hooks), Some(left)) = (hooks.as_object(), left.as_object()) else { return false };
    let is_right = |(event, before): (&String, &Value)| {
        let (kept, lost) = without_ours(before);
        match left.get(event) {
            Some(after) => *after == kept,
            None => lost && kept.as_array().is_some_and(Vec::is_empty),
        }
    };
    others(old) == others(new) && left.keys().all(|event| hooks.contains_key(event)) && hooks.iter().all(is_right)
}

/// An event's array without our entries and the groups that they were alone in; whether there were any.
fn without_ours(array: &Value) -> (Value, bool) {
    let is_ours = |entry: &Value| entry["type"] == "command" && entry["command"].as_str().is_some_and(is_ours);
    let mut lost = false;
    let mut array = array.clone();
    if let Some(groups) = array.as_array_mut() {
        groups.retain_mut(|group| {
            let is_plain = group.as_object().is_some_and(|group| group.len() == 1);
            let Some(entries) = group.get_mut(HOOKS).and_then(Value::as_array_mut) else { return true };
            let count = entries.len();
            entries.retain(|entry| !is_ours(entry));
            lost |= entries.len() < count;
            !(is_plain && entries.is_empty() && count > 0)
        });
    }
    (array, lost)
}

#[cfg(test)]
mod tests;
