//! Every order in which a few actors can go on, every place at which one can die, a door can fail, the power can be cut.
//!
//! A schedule is a list of choices; a run replays one and then takes the first choice at each new moment. The next schedule
//! changes the last choice that has another way, so that all are tried, depth first. A moment that was met before is not gone
//! on from again: what can come depends only on the world, on what each living actor was told, and on what may still happen.
//! A short text of the choices replays a run exactly.

use std::collections::HashSet;
use std::fmt::Write as _;

use corosensei::stack::DefaultStack;

use crate::sim::run::{Choice, Run, STEPS_MAX, Scope};

/// What was explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Runs.
    pub schedules: u64,
    /// Different moments.
    pub states: u64,
    /// Runs that came to an end that none before had.
    pub ends: u64,
    /// Deaths that were tried.
    pub crashes: u64,
    /// Faults that were tried.
    pub faults: u64,
    /// Power cuts that were tried.
    pub cuts: u64,
}

/// A schedule that broke a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// In which scope.
    pub scope: &'static str,
    /// What broke.
    pub what: String,
    /// The choices; [`replay`] takes them.
    pub schedule: String,
    /// What happened, step by step.
    pub story: Vec<String>,
}

/// How to explore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Moments that were met before are not gone on from.
    pub prunes: bool,
    /// At most so many runs.
    pub schedules_max: u64,
    /// End at the first violation.
    pub stops: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { prunes: true, schedules_max: u64::MAX, stops: true }
    }
}

/// Checks an end: all actors of the run are gone. May run more actors.
pub type Check = dyn Fn(&mut Run) -> Result<(), String>;

/// A search that can be asked for its counts at any time.
#[derive(Debug)]
pub struct Explorer<'s> {
    scope: &'s Scope,
    options: Options,
    seen: HashSet<u64>,
    ends: HashSet<u64>,
    /// What was tried so far.
    pub counts: Counts,
    /// What broke.
    pub violations: Vec<Violation>,
}

/// A choice that was made, and how many there were.
#[derive(Clone, Copy)]
struct Made {
    at: usize,
    of: usize,
}

impl<'s> Explorer<'s> {
    /// A search of a scope.
    #[must_use]
    pub fn new(scope: &'s Scope, options: Options) -> Self {
        let (seen, ends) = (HashSet::new(), HashSet::new());
        Self { scope, options, seen, ends, counts: Counts::default(), violations: Vec::new() }
    }

    /// Tries all schedules. `progress` is told the counts now and then, and says whether to go on.
    pub fn all(&mut self, check: &Check, progress: &mut dyn FnMut(&Counts) -> bool) {
        let mut schedule: Vec<Made> = Vec::new();
        let mut stacks = Vec::new();
        loop {
            stacks = self.one(&mut schedule, check, stacks);
            self.counts.schedules += 1;
            let is_over = self.options.stops && !self.violations.is_empty()
                || self.counts.schedules >= self.options.schedules_max
                || self.counts.schedules.is_multiple_of(256) && !progress(&self.counts);
            if is_over {
                return;
            }
            // The last choice that has another way; all after it is made anew.
            while schedule.last().is_some_and(|made| made.at + 1 >= made.of) {
                schedule.pop();
            }
            match schedule.last_mut() {
                Some(made) => made.at += 1,
                None => return,
            }
        }
    }

    /// Replays the schedule and goes on from its end with first choices, which are added to it.
    fn one(&mut self, schedule: &mut Vec<Made>, check: &Check, stacks: Vec<DefaultStack>) -> Vec<DefaultStack> {
        let mut run = Run::new(self.scope, stacks, false);
        if let Some(why) = run.broken.take() {
            self.broken(schedule, format!("the world could not be made: {why}"));
            return run.end();
        }
        let known = schedule.len();
        for place in 0..STEPS_MAX {
            let choices = run.choices();
            if choices.is_empty() {
                self.at_the_end(&mut run, schedule, check);
                return run.end();
            }
            if place >= known {
                schedule.push(Made { at: 0, of: choices.len() });
            }
            let choice = choices[schedule[place].at];
            run.take(choice);
            if place + 1 >= known {
                self.count(choice);
                if !self.seen.insert(run.key()) && self.options.prunes {
                    return run.end();
                }
                self.counts.states = self.seen.len() as u64;
            }
        }
        self.broken(schedule, format!("more than {STEPS_MAX} steps and no end"));
        run.end()
    }

    fn count(&mut self, choice: Choice) {
        match choice {
            Choice::On(_) => {}
            Choice::Fail(..) => self.counts.faults += 1,
            Choice::Die(_) => self.counts.crashes += 1,
            Choice::Cut(_) => self.counts.cuts += 1,
        }
    }

    fn at_the_end(&mut self, run: &mut Run, schedule: &[Made], check: &Check) {
        if run.is_stuck() {
            self.broken(schedule, "an actor waits for ever".into());
            return;
        }
        if !self.ends.insert(run.hub.borrow().key()) {
            return;
        }
        self.counts.ends += 1;
        if let Err(what) = check(run) {
            self.broken(schedule, what);
        }
    }

    fn broken(&mut self, schedule: &[Made], what: String) {
        let schedule = text_of(schedule);
        let story = story(self.scope, &schedule);
        self.violations.push(Violation { scope: self.scope.name, what, schedule, story });
    }

    /// The different ends that were met, for a comparison of two searches.
    #[must_use]
    pub fn ends(&self) -> &HashSet<u64> {
        &self.ends
    }
}

/// A schedule as text: the number of each choice in base 36, and a run of first choices as `.` with its length.
fn text_of(schedule: &[Made]) -> String {
    let mut text = String::new();
    let mut firsts = 0;
    let flush = |firsts: &mut usize, text: &mut String| {
        if *firsts > 0 {
            // Writing into a text cannot fail.
            let _ = write!(text, "{firsts}.");
            *firsts = 0;
        }
    };
    let last = schedule.iter().rposition(|made| made.at > 0).map_or(0, |place| place + 1);
    for made in &schedule[..last] {
        if made.at == 0 {
            firsts += 1;
        } else {
            flush(&mut firsts, &mut text);
            let _ = write!(text, "{}!", made.at);
        }
    }
    flush(&mut firsts, &mut text);
    if text.is_empty() { "0.".into() } else { text }
}

/// The choices of a text: `12.` is twelve first choices, `3!` is choice number three.
fn choices_of(text: &str) -> Option<Vec<usize>> {
    let mut choices = Vec::new();
    let mut number = 0_usize;
    for letter in text.chars() {
        match letter {
            '0'..='9' => number = number.checked_mul(10)?.checked_add(usize::try_from(letter.to_digit(10)?).ok()?)?,
            '.' => {
                choices.extend(std::iter::repeat_n(0, number.min(STEPS_MAX)));
                number = 0;
            }
            '!' => choices.push(std::mem::take(&mut number)),
            _ => return None,
        }
    }
    Some(choices)
}

/// What happens under a schedule, step by step; first choices after its end.
#[must_use]
pub fn story(scope: &Scope, schedule: &str) -> Vec<String> {
    let mut run = Run::new(scope, Vec::new(), true);
    play(&mut run, schedule);
    let story = run.story.take().unwrap_or_default();
    run.end();
    story
}

fn play(run: &mut Run, schedule: &str) {
    let wanted = choices_of(schedule).unwrap_or_default();
    for place in 0..STEPS_MAX {
        let choices = run.choices();
        let Some(first) = choices.first() else { return };
        let at = wanted.get(place).copied().unwrap_or(0);
        run.take(choices.get(at).copied().unwrap_or(*first));
    }
}

/// Replays a schedule and checks its end.
///
/// # Errors
///
/// What broke.
pub fn replay(scope: &Scope, schedule: &str, check: &Check) -> Result<(), String> {
    if choices_of(schedule).is_none() {
        return Err(format!("{schedule:?} is no schedule"));
    }
    let mut run = Run::new(scope, Vec::new(), false);
    play(&mut run, schedule);
    let result = check(&mut run);
    run.end();
    result
}
