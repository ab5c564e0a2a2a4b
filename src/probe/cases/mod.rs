//! The fixed cases: what Claude Code is asked, in which worlds.

mod keeping;
mod places;
mod several;

use super::content::{ID, names};
use crate::probe::world::{Ask, Thing, World};

/// The id that a fork or a new session is to get.
const CHOSEN: &str = "33333333-3333-4333-8333-333333333333";
/// An id beside the one that is asked for.
const OTHER: &str = "22222222-2222-4222-8222-222222222222";

/// As long as a slow start of the agent takes, and some more.
const MAY_HANG_MS: u64 = 20_000;

/// A world with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Case {
    /// Its group, a dot, and what is special in it.
    pub(super) name: String,
    pub(super) world: World,
    /// It is about rights: a superuser has them all, so somebody else has to run it.
    pub(super) ordinary_user: bool,
}

/// All of them, in order.
pub(super) fn all() -> Vec<Case> {
    let groups: [(&str, Vec<(String, World)>); 14] = [
        ("content", contents()),
        ("place", places::places()),
        ("id", places::ids()),
        ("slug", places::slugs()),
        ("twin", several::twins()),
        ("worktree", several::worktrees()),
        ("fork", several::forks()),
        ("path", several::paths()),
        ("continue", several::continues()),
        ("new", several::news()),
        ("retention", keeping::retentions()),
        ("config", places::configs()),
        ("writer", keeping::writers()),
        ("rights", keeping::rights()),
    ];
    let cases = groups.into_iter().flat_map(|(group, cases)| {
        cases.into_iter().map(move |(name, world)| Case {
            name: format!("{group}.{name}"),
            world,
            ordinary_user: group == "rights",
        })
    });
    cases.collect()
}

type Named = Vec<(String, World)>;

pub(super) fn plain() -> Ask {
    Ask::Resume { id: ID.into(), fork: false, chosen: None }
}

pub(super) fn fork() -> Ask {
    Ask::Resume { id: ID.into(), fork: true, chosen: None }
}

fn named(name: impl Into<String>, world: World) -> (String, World) {
    (name.into(), world)
}

impl World {
    /// A session's file in a project folder: `own`, or a folder's name. The tag is the folder's, without what a mark
    /// cannot hold.
    pub(super) fn session(self, folder: &str, content: &str) -> Self {
        let at = if folder == "own" { "{own}".to_owned() } else { format!("{{cfg}}/projects/{folder}") };
        let tag: String = folder.chars().filter(char::is_ascii_alphanumeric).collect();
        self.held(format!("{at}/{ID}.jsonl"), content, &tag)
    }

    /// A session's file anywhere.
    pub(super) fn held(self, at: impl Into<String>, content: &str, tag: &str) -> Self {
        self.piece(at, Thing::Session { content: content.into(), tag: tag.into(), id: ID.into() })
    }

    pub(super) fn own(self, thing: Thing) -> Self {
        self.piece(format!("{{own}}/{ID}.jsonl"), thing)
    }

    pub(super) fn at(self, cwd: &str) -> Self {
        Self { cwd: cwd.into(), ..self }
    }

    pub(super) fn holding(self, holds_ms: u64) -> Self {
        Self { holds_ms, ..self }
    }

    pub(super) fn with_config(self, config: Option<&str>) -> Self {
        Self { config: config.map(str::to_owned), ..self }
    }
}

fn contents() -> Named {
    let each = names().flat_map(|name| {
        [("", plain()), (".fork", fork())].map(|(suffix, ask)| {
            // Some versions do not come to an end with such a file; nobody has to wait for the usual end.
            let may_hang = ["circle", "own_parent", "used_again"].iter().any(|part| name.contains(part));
            let most_ms = may_hang.then_some(MAY_HANG_MS);
            let world = World { uncounted: name.starts_with("tool_"), most_ms, ..World::new(ask) };
            named(format!("{name}{suffix}"), world.session("own", name))
        })
    });
    std::iter::once(named("absent", World::new(plain()))).chain(each).collect()
}
