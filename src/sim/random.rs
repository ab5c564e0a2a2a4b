//! Beyond the stated scopes: worlds with more actors and more that breaks, drawn from a seed. One seed is one run, always the
//! same; what it reached is counted, so that a search that never comes near what it is for is seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{AgentEvent, Event};
use crate::log::Records as _;
use crate::sim::check;
use crate::sim::explore::Violation;
use crate::sim::run::{Choice, Run, STEPS_MAX};
use crate::sim::scopes::{self, Stated};
use crate::sim::stage::{Ending, Hub};

/// What a run can reach, each by a name.
pub const INTERESTING: [&str; 20] = [
    "resumed in place",
    "forked",
    "new conversation",
    "refused by the agent",
    "copied",
    "copy failed",
    "copy removed",
    "copy kept as a session",
    "swept",
    "continued outside",
    "lease reclaimed",
    "segment without an end",
    "proved by its file",
    "launch failed",
    "busy",
    "cannot be told",
    "failed, typed",
    "a process died",
    "a door failed",
    "the power was cut",
];

/// What the next spawn brings to light.
const AFTERWARDS: [&str; 5] =
    ["copy kept as a session", "swept", "lease reclaimed", "segment without an end", "proved by its file"];

/// What one run reached.
pub type Reached = BTreeSet<&'static str>;

/// Numbers to choose by.
enum Dice {
    /// From a seed: the same everywhere.
    Seed(u64),
    /// Those that somebody else chose, and then always the first.
    Given(VecDeque<u8>),
}

impl Dice {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        match self {
            Self::Given(bytes) => bytes.pop_front().map_or(0, usize::from) % bound.max(1),
            Self::Seed(state) => {
                // Splitmix64: every seed gives another sequence, also small ones.
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^= mixed >> 31;
                usize::try_from(mixed % (bound.max(1) as u64)).unwrap_or(0)
            }
        }
    }
}

/// Runs the world of a seed.
///
/// # Errors
///
/// What broke; the same seed breaks again.
pub fn one(seed: u64) -> Result<Reached, Box<Violation>> {
    run(Dice::Seed(seed), format!("--seeds 1 --seed {seed}"))
}

/// Runs the world and the schedule that these bytes say, for a fuzzer.
///
/// # Panics
///
/// Where a property is broken, with the story.
#[doc(hidden)]
#[expect(clippy::panic, reason = "a fuzzer knows by it that it has found something")]
pub fn check_world(bytes: &[u8]) {
    if let Err(violation) = run(Dice::Given(bytes.iter().copied().collect()), format!("{bytes:?}")) {
        panic!("{violation:#?}");
    }
}

fn run(mut dice: Dice, schedule: String) -> Result<Reached, Box<Violation>> {
    let stated = world(&mut dice);
    let mut run = Run::new(&stated.scope, Vec::new(), true);
    let mut reached = Reached::new();
    let broken = run.broken.take().map(|why| format!("the world could not be made: {why}"));
    let result = match broken {
        Some(what) => Err(what),
        None => play(&mut run, &mut dice, &mut reached).and_then(|()| {
            note(&run.hub.borrow(), &mut reached);
            check::of(&stated)(&mut run)?;
            // What became of it only shows at the next spawn.
            let mut after = Reached::new();
            note(&run.hub.borrow(), &mut after);
            reached.extend(after.into_iter().filter(|name| AFTERWARDS.contains(name)));
            Ok(())
        }),
    };
    let story = run.story.take().unwrap_or_default();
    run.end();
    match result {
        Ok(()) => Ok(reached),
        Err(what) => Err(Box::new(Violation { scope: "random", what, schedule, story })),
    }
}

fn world(dice: &mut Dice) -> Stated {
    let parts = scopes::pool();
    let count = 2 + dice.below(2);
    let chosen: Vec<usize> = (0..count).map(|_| dice.below(parts.len())).collect();
    scopes::of_parts(&parts, &chosen)
}

fn play(run: &mut Run, dice: &mut Dice, reached: &mut Reached) -> Result<(), String> {
    for _ in 0..STEPS_MAX {
        let choices = run.choices();
        if choices.is_empty() {
            return if run.is_stuck() { Err("an actor waits for ever".into()) } else { Ok(()) };
        }
        let of = |kind: fn(&Choice) -> bool| choices.iter().copied().filter(kind).collect::<Vec<Choice>>();
        let goes_on = of(|choice| matches!(choice, Choice::On(_)));
        let breaks = [
            of(|choice| matches!(choice, Choice::Fail(..))),
            of(|choice| matches!(choice, Choice::Die(_))),
            of(|choice| matches!(choice, Choice::Cut(_))),
        ];
        let broken = &breaks[dice.below(breaks.len())];
        let choice = if broken.is_empty() || dice.below(40) > 0 {
            // Mostly the one that is under way: else no protocol ever comes to its end before another begins.
            if dice.below(4) > 0 { goes_on[0] } else { goes_on[dice.below(goes_on.len())] }
        } else {
            broken[dice.below(broken.len())]
        };
        match choice {
            Choice::On(_) => {}
            Choice::Fail(..) => drop(reached.insert("a door failed")),
            Choice::Die(_) => drop(reached.insert("a process died")),
            Choice::Cut(_) => drop(reached.insert("the power was cut")),
        }
        run.take(choice);
    }
    Err(format!("more than {STEPS_MAX} steps and no end"))
}

/// What the log and the endings tell of a run.
fn note(hub: &Hub, reached: &mut Reached) {
    let told = hub.log.events(crate::id::Seq(1), &mut |recorded| {
        if let Event::Agent(event) = recorded.event {
            reached.extend(named(&event));
        }
        std::ops::ControlFlow::Continue(())
    });
    // A log in memory can be read.
    debug_assert!(told.is_ok());
    for ending in hub.endings.values() {
        reached.extend(match ending {
            Ending::Spawned { .. } => None,
            Ending::Busy(_) => Some("busy"),
            Ending::Unknown(_) => Some("cannot be told"),
            Ending::Drift(_) | Ending::Failed(_) => Some("failed, typed"),
        });
    }
}

fn named(event: &AgentEvent) -> Option<&'static str> {
    let name = match event {
        AgentEvent::ResumeConfirmed(_) => "resumed in place",
        AgentEvent::ForkReported(_) => "forked",
        AgentEvent::Spawned(body) if body.session.is_none() && body.minted.is_some() => "new conversation",
        AgentEvent::ResumeRejected(_) => "refused by the agent",
        AgentEvent::Relocated(_) => "copied",
        AgentEvent::RelocationFailed(_) => "copy failed",
        AgentEvent::CopyRemoved(_) => "copy removed",
        AgentEvent::CopyUnmarked(_) => "copy kept as a session",
        AgentEvent::Swept(body) if !body.tokens.is_empty() => "swept",
        AgentEvent::GrowthSeen(_) => "continued outside",
        AgentEvent::LeaseEnded(body) if body.how.starts_with("reclaimed") => "lease reclaimed",
        AgentEvent::SegmentEnded(body) if body.reason == "lost" && body.file.is_some() => "proved by its file",
        AgentEvent::SegmentEnded(body) if body.reason == "lost" => "segment without an end",
        AgentEvent::LaunchFailed(_) => "launch failed",
        AgentEvent::AgentDeclared(_)
        | AgentEvent::LeaseTaken(_)
        | AgentEvent::LeaseEnded(_)
        | AgentEvent::Spawned(_)
        | AgentEvent::Launched(_)
        | AgentEvent::SessionReported(_)
        | AgentEvent::TurnConfirmed(_)
        | AgentEvent::ChainHeadMoved(_)
        | AgentEvent::SegmentEnded(_)
        | AgentEvent::SessionBound(_)
        | AgentEvent::RelocationIntended(_)
        | AgentEvent::SettleIntended(_)
        | AgentEvent::SweepIntended(_)
        | AgentEvent::Swept(_)
        | AgentEvent::RetentionExtended(_)
        | AgentEvent::FreshIntended(_) => return None,
    };
    Some(name)
}

/// How many of so many runs reached what.
#[must_use]
pub fn shares(runs: &[Reached]) -> BTreeMap<&'static str, usize> {
    INTERESTING.iter().map(|&name| (name, runs.iter().filter(|reached| reached.contains(name)).count())).collect()
}
