//! One run on the simulated machine: its actors, what can happen next, and what happens.
//!
//! An actor is a coroutine that stops at each door. Nothing here decides what happens: it is told.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::sim::canary::Canary;
use crate::sim::disk::Cut;
use crate::sim::doors::cli;
use crate::sim::stage::{Go, Hub, Process, Stand, Step};
use crate::world::doors::DoorKind;

/// How many bytes the stack of an actor has.
const STACK_BYTES: usize = 256 * 1024;

/// How many steps a run may have: more is going round in a circle.
pub(super) const STEPS_MAX: usize = 4_000;

/// How many unsynced names a power cut tells apart.
const CUT_NAMES_MAX: u32 = 5;

/// What an actor does. Gives its exit code.
pub type Body = Rc<dyn Fn(&mut Stand<'_>) -> i32>;

/// One actor of a scope.
#[derive(Clone)]
pub struct Part {
    /// Its name, for the story of a schedule.
    pub name: &'static str,
    /// What it does.
    pub body: Body,
    /// Whether it can die on the way.
    pub is_mortal: bool,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Part").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What may go wrong in one run, at most so often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Deaths of a process.
    pub crashes: u8,
    /// Doors that fail.
    pub faults: u8,
    /// Power cuts; each ends all actors.
    pub cuts: u8,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub story: &'static str,
    /// The world before.
    pub setup: fn(&mut Hub) -> Result<(), String>,
    /// The actors, in order.
    pub parts: Vec<Part>,
    /// What may go wrong.
    pub budget: Budget,
    /// What is wrong with the machine itself.
    pub canary: Option<Canary>,
}

/// One choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This actor goes on.
    On(usize),
    /// Its door fails.
    Fail(usize, DoorKind),
    /// It dies.
    Die(usize),
    /// The power is cut.
    Cut(Cut),
}

struct Slot {
    coroutine: Option<Coroutine<Go, Step, i32, DefaultStack>>,
    step: Option<Step>,
    name: String,
    is_mortal: bool,
}

/// One run: the stage with its actors.
pub struct Run {
    /// What they share.
    pub hub: Rc<RefCell<Hub>>,
    slots: Vec<Slot>,
    budget: Budget,
    stacks: Vec<DefaultStack>,
    pub(super) story: Option<Vec<String>>,
    current: usize,
    steps: usize,
    /// Why the world could not be made.
    pub(super) broken: Option<String>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl Run {
    pub(super) fn new(scope: &Scope, stacks: Vec<DefaultStack>, tells: bool) -> Self {
        let hub = Rc::new(RefCell::new(Hub::default()));
        let broken = (scope.setup)(&mut hub.borrow_mut()).err();
        hub.borrow_mut().canary = scope.canary;
        let story = tells.then(Vec::new);
        let mut run =
            Self { hub, slots: Vec::new(), budget: scope.budget, stacks, story, current: 0, steps: 0, broken };
        for part in &scope.parts {
            run.enter(part);
        }
        run
    }

    /// A new process of the machine.
    pub fn enter(&mut self, part: &Part) -> usize {
        let process = Process { alive: true, ..Process::default() };
        let me = self.hub.borrow_mut().add(process);
        self.start(me, part.name.to_owned(), Rc::clone(&part.body), part.is_mortal);
        me
    }

    fn start(&mut self, me: usize, name: String, body: Body, is_mortal: bool) {
        let hub = Rc::clone(&self.hub);
        let stack = self.stacks.pop().or_else(|| DefaultStack::new(STACK_BYTES).ok());
        let Some(stack) = stack else { return };
        let coroutine =
            Coroutine::with_stack(
                stack,
                move |yielder, go: Go| {
                    if go == Go::Die { 137 } else { body(&mut Stand::new(hub, me, yielder)) }
                },
            );
        self.slots.push(Slot { coroutine: Some(coroutine), step: None, name, is_mortal });
        self.resume(me, Go::On);
    }

    fn resume(&mut self, actor: usize, go: Go) {
        let Some(coroutine) = self.slots[actor].coroutine.as_mut() else { return };
        match coroutine.resume(go) {
            CoroutineResult::Yield(step) => self.slots[actor].step = Some(step),
            CoroutineResult::Return(code) => {
                self.slots[actor].step = None;
                if let Some(coroutine) = self.slots[actor].coroutine.take() {
                    self.stacks.push(coroutine.into_stack());
                }
                let mut hub = self.hub.borrow_mut();
                hub.end(actor, code);
                // What it was told decides nothing any more.
                hub.replies[actor] = u64::MAX;
            }
        }
        self.admit();
    }

    /// Children that were launched, and those that ended with who held them.
    fn admit(&mut self) {
        while self.slots.len() < self.hub.borrow().processes.len() {
            let me = self.slots.len();
            self.start(me, format!("agent {me}"), Rc::new(cli), true);
        }
        let ended: Vec<usize> = (0..self.slots.len())
            .filter(|&actor| self.slots[actor].coroutine.is_some() && !self.hub.borrow().processes[actor].alive)
            .collect();
        for actor in ended {
            let code = self.hub.borrow().processes[actor].code.unwrap_or(125);
            self.kill(actor, code);
        }
    }

    fn kill(&mut self, actor: usize, code: i32) {
        while self.slots[actor].coroutine.is_some() {
            self.resume(actor, Go::Die);
        }
        self.hub.borrow_mut().end(actor, code);
    }

    fn is_ready(&self, actor: usize) -> bool {
        let hub = self.hub.borrow();
        let slot = &self.slots[actor];
        let Some(step) = &slot.step else { return false };
        if slot.coroutine.is_none() || hub.processes[actor].held {
            return false;
        }
        step.waits_for.is_none_or(|child| {
            let process = &hub.processes[child];
            let tells = process.command.as_ref().is_some_and(|command| command.tells);
            !process.said.is_empty() || process.code.is_some() || !tells && process.moved
        })
    }

    /// What can happen now, the present actor's going on first.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut ready: Vec<usize> = (0..self.slots.len()).filter(|&actor| self.is_ready(actor)).collect();
        if ready.is_empty() {
            return Vec::new();
        }
        ready.sort_by_key(|&actor| actor != self.current);
        let mut choices: Vec<Choice> = ready.iter().map(|&actor| Choice::On(actor)).collect();
        if self.budget.faults > 0 {
            choices.extend(ready.iter().filter_map(|&actor| {
                let step = self.slots[actor].step.as_ref().filter(|step| step.can_fail)?;
                let kind = if is_look(step.door) { DoorKind::Failed } else { DoorKind::Full };
                Some(Choice::Fail(actor, kind))
            }));
        }
        if self.budget.crashes > 0 {
            let mortal = |actor: &usize| self.slots[*actor].is_mortal && self.slots[*actor].coroutine.is_some();
            choices.extend((0..self.slots.len()).filter(mortal).map(Choice::Die));
        }
        if self.budget.cuts > 0 {
            choices.extend(self.hub.borrow().disk.cuts(CUT_NAMES_MAX).into_iter().map(Choice::Cut));
        }
        choices
    }

    pub(super) fn take(&mut self, choice: Choice) {
        self.steps += 1;
        self.tell(choice);
        match choice {
            Choice::On(actor) => {
                self.current = actor;
                self.resume(actor, Go::On);
            }
            Choice::Fail(actor, kind) => {
                self.budget.faults -= 1;
                self.current = actor;
                self.resume(actor, Go::Fail(kind));
            }
            Choice::Die(actor) => {
                self.budget.crashes -= 1;
                self.kill(actor, 137);
            }
            Choice::Cut(cut) => {
                self.budget = Budget::default();
                for actor in 0..self.slots.len() {
                    self.kill(actor, 137);
                }
                let mut hub = self.hub.borrow_mut();
                hub.disk.cut(cut);
                hub.boot += 1;
            }
        }
    }

    fn tell(&mut self, choice: Choice) {
        if self.story.is_none() {
            return;
        }
        let doing = |actor: usize| {
            let slot = &self.slots[actor];
            let step = slot.step.as_ref().map(|step| format!("{} {}", step.door, step.path)).unwrap_or_default();
            (slot.name.clone(), step)
        };
        let line = match choice {
            Choice::On(actor) => {
                let (name, step) = doing(actor);
                format!("{name}: {step}")
            }
            Choice::Fail(actor, kind) => {
                let (name, step) = doing(actor);
                format!("{name}: {step} FAILS ({kind:?})")
            }
            Choice::Die(actor) => {
                let (name, step) = doing(actor);
                format!("{name} DIES before {step}")
            }
            Choice::Cut(cut) => format!("POWER CUT {cut:?}"),
        };
        if let Some(story) = &mut self.story {
            story.push(line);
        }
    }

    pub(super) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hub.borrow().key().hash(&mut hasher);
        self.budget.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether an actor waits for what never comes.
    pub(super) fn is_stuck(&self) -> bool {
        self.slots.iter().any(|slot| slot.coroutine.is_some())
    }

    /// Lets everybody go on, one after another, until all have ended: no choice is explored.
    ///
    /// # Errors
    ///
    /// Where they go round in a circle, or wait for each other.
    pub fn finish(&mut self) -> Result<(), String> {
        self.budget = Budget::default();
        let mut steps = 0;
        while let Some(&choice) = self.choices().first() {
            self.take(choice);
            steps += 1;
            if steps > STEPS_MAX {
                return Err(format!("more than {STEPS_MAX} steps and no end"));
            }
        }
        match self.slots.iter().find(|slot| slot.coroutine.is_some()) {
            Some(slot) => Err(format!("{} waits for ever", slot.name)),
            None => Ok(()),
        }
    }

    pub(super) fn end(mut self) -> Vec<DefaultStack> {
        for actor in 0..self.slots.len() {
            while self.slots[actor].coroutine.is_some() {
                self.resume(actor, Go::Die);
            }
        }
        self.stacks
    }
}

fn is_look(door: &str) -> bool {
    !matches!(
        door,
        "make_dir"
            | "copy_new"
            | "write_new"
            | "sync"
            | "sync_dir"
            | "link_new"
            | "rename_new"
            | "remove"
            | "append"
            | "touch"
            | "lock"
            | "launch"
    )
}
