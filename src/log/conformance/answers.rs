//! What an append answers.

use super::breach::{Breach, Make, Rule, rule, same};
use super::say::{Desk, all, blank, entry, last_of, stream};
use crate::id::Anchor;

pub(super) const RULES: &[Rule] = &[
    rule!(an_answer_names_its_first_place, "An append of several events answers the place of the first one."),
    rule!(an_answer_is_of_the_log_after_it, "An append over several streams answers the anchor after all of them."),
    rule!(an_answer_is_of_the_streams_after_it, "An append answers each stream's frontier as it is after it."),
    rule!(an_answer_names_streams_as_they_came, "The frontiers of an answer come in the order of first entries."),
    rule!(nothing_to_append_is_no_error, "An append without entries is answered: no first place, no frontier."),
    rule!(a_check_appends_nothing, "An append whose entries have no events answers no first place and adds nothing."),
];

fn an_answer_names_its_first_place(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let appended = desk.put("agent/a", vec![blank(), blank()])?;
    same("the first place", &appended.first.map(|seq| seq.0), &Some(2))
}

fn an_answer_is_of_the_log_after_it(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let appended = desk.append(&[entry("agent/a", vec![blank()]), entry("agent/b", vec![blank(), blank()])])?;
    let last = all(desk.records())?.pop().map(|last| Anchor { seq: last.seq, chain: last.chain });
    same("the anchor of the answer", &Some(appended.anchor), &last)
}

fn an_answer_is_of_the_streams_after_it(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let appended = desk.append(&[entry("agent/a", vec![blank()]), entry("agent/b", vec![blank()])])?;
    let events = all(desk.records())?;
    let last: Vec<_> = ["agent/a", "agent/b"].iter().filter_map(|name| last_of(&events, name)).collect();
    same("the frontiers of the answer", &appended.frontiers, &last)
}

fn an_answer_names_streams_as_they_came(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    let entries = ["agent/b", "agent/a", "agent/b"].map(|name| entry(name, vec![blank()]));
    let names: Vec<_> = desk.append(&entries)?.frontiers.into_iter().map(|frontier| frontier.stream).collect();
    same("the streams of the answer", &names, &vec![stream("agent/b"), stream("agent/a")])
}

fn nothing_to_append_is_no_error(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let appended = desk.append(&[])?;
    same("the first place", &appended.first, &None)?;
    same("the frontiers", &appended.frontiers, &Vec::new())
}

fn a_check_appends_nothing(make: &Make<'_>) -> Result<(), Breach> {
    let desk = Desk::new(make)?;
    desk.put("agent/a", vec![blank()])?;
    let checked = desk.append(&[entry("agent/a", Vec::new()), entry("agent/b", Vec::new())])?;
    same("the first place", &checked.first, &None)?;
    same("how many events there are", &all(desk.records())?.len(), &1)
}
