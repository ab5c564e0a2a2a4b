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
    /// Somebody else wrote into the session at the same time: what they wrote hides a turn, which is said.
    pub branch: bool,
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
    /// Whether it takes seconds, not minutes.
    pub is_quick: bool,
}

/// What each actor is called in a story, what it does, whether it can die.
fn part(name: &'static str, body: Body, is_mortal: bool) -> Part {
    Part { name, body, is_mortal }
}

fn stated(name: &'static str, story: &'static str, asks: &[Ask], budget: Budget) -> Stated {
    let parts = asks.iter().map(|ask| part("spawn", spawner(*ask), true)).collect();
    let scope = Scope { name, story, setup: one_conversation, parts, budget, canary: None };
    Stated { scope, asks: asks.to_vec(), allowed: Allowed::default(), is_quick: true }
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

    fn slow(self) -> Self {
        Self { is_quick: false, ..self }
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
    let interfered = Allowed { taken: true, twin: true, ..Allowed::default() };
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
        .beside("late settle", late("a", TOKEN, 1))
        .slow(),
        stated("two_agents", "two agents, one source, one destination", &[copy, other_copy], none).slow(),
        stated("outside_writer", "a copy is made while somebody writes into its source", &[copy], none)
            .with("outside", writer(original(), 1)),
        stated("append_to_copy", "somebody continues the copy while it is settled", &[copy], none)
            .with("outside", writer(copied.clone(), 1))
            .allowing(interfered),
        stated("second_copy", "a file of the same id appears where the copy goes", &[copy], none)
            .with("outside", twin(copied))
            .allowing(interfered),
        stated("clean_up", "the agent's own clean-up deletes the source during a fork", &[path], none)
            .with("clean-up", cleaner(original()))
            .allowing(Allowed { deleted: true, ..Allowed::default() }),
    ]
}

/// An actor of a random world: what it does, what it asks, what it can bring about.
#[derive(Clone, Debug)]
pub struct Member {
    part: Part,
    ask: Option<Ask>,
    allowed: Allowed,
}

/// The actors that random worlds are drawn from.
#[must_use]
pub fn pool() -> Vec<Member> {
    let here = Ask::new("a", LOGIN);
    let quiet = Ask { tells: false, ..here };
    let fresh = Ask { session: None, ..Ask::new("c", LOGIN) };
    let path = Ask::new("a", OTHER).by(Means::ByPath);
    let copy = Ask::new("a", OTHER).by(Means::ByCopy);
    let quiet_copy = Ask { tells: false, ..copy };
    let other_copy = Ask::new("b", OTHER).by(Means::ByCopy);
    let foreign = Ask { is_foreign: true, ..Ask::new("d", FOREIGN) };
    let asks = [here, quiet, fresh, path, copy, quiet_copy, other_copy, foreign];
    let none = Allowed::default();
    let spawns = asks.map(|ask| Member { part: part("spawn", spawner(ask), true), ask: Some(ask), allowed: none });
    let copied = file_in(OTHER);
    let interfered = Allowed { taken: true, twin: true, ..Allowed::default() };
    let outside = |name, body, allowed| Member { part: part(name, body, false), ask: None, allowed };
    let others = [
        Member { part: part("sweep", keeper(copy), true), ask: None, allowed: none },
        outside("outside", writer(original(), 1), Allowed { branch: true, ..none }),
        outside("outside", writer(copied.clone(), 40), interfered),
        outside("outside", twin(copied), interfered),
        outside("clean-up", cleaner(original()), Allowed { deleted: true, ..none }),
    ];
    spawns.into_iter().chain(others).collect()
}

/// The world of these members, in which two processes, two doors and the power can break.
#[must_use]
pub fn of_parts(members: &[Member], chosen: &[usize]) -> Stated {
    let chosen: Vec<&Member> = chosen.iter().filter_map(|&at| members.get(at)).collect();
    let mut allowed = Allowed::default();
    for member in &chosen {
        allowed.taken |= member.allowed.taken;
        allowed.deleted |= member.allowed.deleted;
        allowed.twin |= member.allowed.twin;
        allowed.branch |= member.allowed.branch;
    }
    let parts = chosen.iter().map(|member| member.part.clone()).collect();
    let budget = Budget { crashes: 2, faults: 2, cuts: 1 };
    let story = "a world from a seed";
    let scope = Scope { name: "random", story, setup: one_conversation, parts, budget, canary: None };
    Stated { scope, asks: chosen.iter().filter_map(|member| member.ask).collect(), allowed, is_quick: true }
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
