//! The stated scopes: which actors meet, in which world, and what may go wrong.

use crate::event::Means;
use crate::sim::actors::{cleaner, keeper, late, spawner, twin, writer};
use crate::sim::ask::Ask;
use crate::sim::canary::Canary;
use crate::sim::run::{Body, Budget, Part, Scope};
use crate::sim::setting::{FOREIGN, LOGIN, OTHER, file_in, one_conversation, original};
use crate::sim::stage::Hub;

/// What somebody who interferes can bring about, and no protocol can prevent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allowed {
    /// Something is where a copy would have to be: foreseen and said, and nothing is started.
    pub taken: bool,
    /// The original was deleted by somebody else.
    pub deleted: bool,
    /// A file of the same id, which somebody else made or continued, stays.
    pub twin: bool,
}

/// A scope with the questions that are asked at its end.
#[derive(Clone, Debug)]
pub struct Stated {
    /// What is explored.
    pub scope: Scope,
    /// The questions.
    pub asks: Vec<Ask>,
    /// What is no violation here.
    pub allowed: Allowed,
}

/// What each actor is called in a story, what it does, whether it can die.
fn part(name: &'static str, body: Body, is_mortal: bool) -> Part {
    Part { name, body, is_mortal }
}

fn stated(name: &'static str, story: &'static str, asks: &[Ask], budget: Budget) -> Stated {
    let parts = asks.iter().map(|ask| part("spawn", spawner(*ask), true)).collect();
    let scope = Scope { name, story, setup: one_conversation, parts, budget, canary: None };
    Stated { scope, asks: asks.to_vec(), allowed: Allowed::default() }
}

impl Stated {
    fn with(mut self, name: &'static str, body: Body) -> Self {
        self.scope.parts.push(part(name, body, false));
        self
    }

    fn beside(mut self, name: &'static str, body: Body) -> Self {
        self.scope.parts.push(part(name, body, true));
        self
    }

    fn allowing(self, allowed: Allowed) -> Self {
        Self { allowed, ..self }
    }

    fn in_world(mut self, setup: fn(&mut Hub) -> Result<(), String>) -> Self {
        self.scope.setup = setup;
        self
    }
}

/// Every scope, in the order in which they are explored.
#[must_use]
pub fn all() -> Vec<Stated> {
    let every = Budget { crashes: 1, faults: 1, cuts: 1 };
    let deaths = Budget { crashes: 1, faults: 0, cuts: 0 };
    let none = Budget::default();
    let here = Ask::new("a", LOGIN);
    let fresh = Ask { session: None, ..Ask::new("c", LOGIN) };
    let quiet = Ask { tells: false, ..here };
    let path = Ask::new("a", OTHER).by(Means::ByPath);
    let copy = Ask::new("a", OTHER).by(Means::ByCopy);
    let other_copy = Ask::new("b", OTHER).by(Means::ByCopy);
    let copied = file_in(OTHER);
    let foreign = Ask { is_foreign: true, ..Ask::new("a", FOREIGN) };
    let interfered = Allowed { taken: true, twin: true, deleted: false };
    vec![
        stated("in_place", "one spawn that resumes in place; anything breaks anywhere", &[here], every),
        stated("in_place_quiet", "the same, of an agent that says nothing on stdout", &[quiet], deaths),
        stated("fresh", "one spawn of a new conversation under an id of our choice", &[fresh], every),
        stated("by_path", "one spawn that forks a file of another login", &[path], every),
        stated("by_copy", "one spawn that forks a copy", &[copy], every),
        stated("other_identity", "a spawn where somebody else is signed in", &[foreign], deaths),
        stated("two_spawns", "two spawns of one agent", &[here, here], deaths),
        stated("two_copies", "two spawns of one agent by a copy", &[copy, copy], deaths),
        stated("spawn_and_sweep", "a spawn by a copy, and a sweep of the same agent", &[copy], deaths)
            .beside("sweep", keeper(copy)),
        stated(
            "late_settle",
            "a driver that lost its lease settles its copy while the next one makes another",
            &[copy],
            none,
        )
        .in_world(superseded)
        .beside("late settle", late("a", TOKEN, 1)),
        stated("two_agents", "two agents, one source, one destination", &[copy, other_copy], none),
        stated("outside_writer", "a copy is made while somebody writes into its source", &[copy], none)
            .with("outside", writer(original())),
        stated("append_to_copy", "somebody continues the copy while it is settled", &[copy], none)
            .with("outside", writer(copied.clone()))
            .allowing(interfered),
        stated("second_copy", "a file of the same id appears where the copy goes", &[copy], none)
            .with("outside", twin(copied))
            .allowing(interfered),
        stated("clean_up", "the agent's own clean-up deletes the source during a fork", &[path], none)
            .with("clean-up", cleaner(original()))
            .allowing(Allowed { deleted: true, ..Allowed::default() }),
    ]
}

/// The scope in which a canary must be found.
#[must_use]
pub fn of(canary: Canary) -> Option<Stated> {
    let mut stated = all().into_iter().find(|it| it.scope.name == canary.scope())?;
    stated.scope.canary = Some(canary);
    if canary == Canary::LivingAreDead {
        // Nobody has to die for two to drive at once.
        stated.scope.budget = Budget::default();
    }
    Some(stated)
}

/// The token of a copy whose driver lost its lease.
const TOKEN: &str = "token-old";

/// The copy of a driver that has lost its lease and was about to remove it.
fn superseded(hub: &mut Hub) -> Result<(), String> {
    one_conversation(hub)?;
    crate::sim::setting::settling_copy(hub, "a", TOKEN)
}
