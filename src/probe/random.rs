//! Worlds beyond the fixed cases: states of the own file × other folders × fork × worktrees × age, from a seed.

use super::cases::{Case, fork, plain};
use super::content::ID;
use super::world::{Ask, Piece, Thing, World};

/// What a file may hold; some appear more often.
const STATES: &[&str] = &[
    "complete",
    "complete",
    "complete",
    "turns_only",
    "empty",
    "newline",
    "metadata",
    "sidechain",
    "sidechain_spaced",
    "one_attachment",
    "attachments",
    "system",
    "user_only",
    "assistant_only",
    "messageless_tree",
    "text",
    "garbage_that_names_a_user",
    "cut_in_the_first_prompt",
    "cut_in_the_last_reply",
    "spaced",
    "nuls",
    "no_last_newline",
    "second_root",
    "glued_last",
    "parents_null",
];

/// The other folders, in no order that a listing would have.
const FOLDERS: &[&str] = &["zzz", "-w-p2", "aaa"];

const GROUP: &str = "random.";

/// Whether a case is one of these.
pub(super) fn is_random(name: &str) -> bool {
    name.starts_with(GROUP)
}

/// So many worlds from a seed: always the same ones.
pub(super) fn cases(count: usize, seed: u64) -> Vec<Case> {
    (0..count).map(|index| case(seed, index)).collect()
}

fn case(seed: u64, index: usize) -> Case {
    let mut random = fastrand::Rng::with_seed(seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let ask = if random.bool() { fork() } else { plain() };
    let mut world = World::new(ask);
    let has_worktrees = random.u8(..4) == 0;
    if has_worktrees {
        world.worktrees = ["{room}/w/main", "{room}/w/wt", "{room}/w/wt2"].map(str::to_owned).into();
        world = world.at("{room}/w/main");
    }
    let state = |random: &mut fastrand::Rng| STATES[random.usize(..STATES.len())];
    let aged = |random: &mut fastrand::Rng, world: World| {
        if random.u8(..6) == 0 { world.aged(random.u64(20..60)) } else { world }
    };
    if random.u8(..4) > 0 {
        let content = state(&mut random);
        world = world.session("own", content);
        world = aged(&mut random, world);
    }
    for folder in FOLDERS {
        match random.u8(..12) {
            0..=3 => {
                let content = state(&mut random);
                world = world.session(folder, content);
                world = aged(&mut random, world);
            }
            4 => world = world.piece(format!("{{cfg}}/projects/{folder}"), Thing::Dir),
            5 => world = world.piece(format!("{{cfg}}/projects/{folder}/{}.jsonl", ID), Thing::Dir),
            _ => {}
        }
    }
    if has_worktrees {
        for path in ["wt", "wt2"] {
            if random.bool() {
                let content = state(&mut random);
                let at = format!("{{cfg}}/projects/{{slug:{{room}}/w/{path}:slug}}/{}.jsonl", ID);
                world = world.held(at, content, path);
            }
        }
    }
    Case { name: format!("{GROUP}{seed}.{index}"), world, ordinary_user: false }
}

/// Worlds that are one step simpler.
pub(super) fn smaller(world: &World) -> Vec<World> {
    let mut smaller = Vec::new();
    for index in 0..world.pieces.len() {
        let mut less = world.clone();
        less.pieces.remove(index);
        smaller.push(less);
    }
    if let Ask::Resume { id, fork: true, chosen } = &world.ask {
        smaller
            .push(World { ask: Ask::Resume { id: id.clone(), fork: false, chosen: chosen.clone() }, ..world.clone() });
    }
    let in_worktree = world.pieces.iter().any(|piece| piece.at.contains("{slug:"));
    if !world.worktrees.is_empty() && !in_worktree {
        smaller.push(World { worktrees: Vec::new(), ..world.clone() });
    }
    for (index, piece) in world.pieces.iter().enumerate() {
        let mut with = |piece: Piece| {
            let mut other = world.clone();
            other.pieces[index] = piece;
            smaller.push(other);
        };
        if piece.age_days.is_some() {
            with(Piece { age_days: None, ..piece.clone() });
        }
        if let Thing::Session { content, tag, id } = &piece.thing
            && content != "complete"
        {
            with(Piece {
                thing: Thing::Session { content: "complete".into(), tag: tag.clone(), id: id.clone() },
                ..piece.clone()
            });
        }
    }
    smaller
}
