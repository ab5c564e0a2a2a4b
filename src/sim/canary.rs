//! Wrong machines, wrong agents, wrong logs: each breaks one thing that the protocols rest on or promise, and exploring it
//! must find a violation. A search that passes a canary would pass everything.
//!
//! The protocols themselves stay as they are; what is wrong is what they stand on, as it would be if they did not ask for
//! it: a proof that is not made durable, a name that is replaced, a child that nobody holds.

/// Declares the canaries.
macro_rules! canaries {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $property:literal, $scope:literal;)*) => {
        /// One thing that is wrong.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Canary { $($(#[doc = $doc])* $variant,)* }

        impl Canary {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The property that it breaks.
            #[must_use]
            pub fn property(self) -> &'static str {
                match self { $(Self::$variant => $property,)* }
            }

            /// The scope in which it is found.
            #[must_use]
            pub fn scope(self) -> &'static str {
                match self { $(Self::$variant => $scope,)* }
            }

            /// What is wrong, for people.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii(),)* }
            }
        }
    };
}

canaries! {
    /// the agent forks without taking the history along
    AgentForgets = "agent-forgets", "agreement", "by_path";
    /// the agent finds no session in its own folder
    AgentIsBlind = "agent-is-blind", "agreement", "in_place";
    /// what an agent wrote is not made durable before the log calls it proved
    ProofsUnsynced = "proofs-unsynced", "nothing lost", "in_place";
    /// the log takes the proof and forgets that the head moved
    HeadsForgotten = "heads-forgotten", "nothing lost", "by_path";
    /// a process that lives is taken for dead, and its lock is given away
    LivingAreDead = "living-are-dead", "nothing lost", "two_spawns";
    /// a launched process is not held until the log knows it
    Unheld = "unheld", "nothing lost", "two_spawns";
    /// what has a name already is replaced by a rename
    RenameReplaces = "rename-replaces", "originals untouched", "second_copy";
    /// a fork by its path is written into its source
    ForkIntoSource = "fork-into-source", "originals untouched", "by_path";
    /// nothing is really removed
    RemovesNothing = "removes-nothing", "no second file", "by_copy";
    /// the content of a copy is not made durable before it is shown
    CopyUnsynced = "copy-unsynced", "no second file", "by_copy";
    /// what was continued is taken for what was logged
    FactsLie = "facts-lie", "nobody else's file", "append_to_copy";
    /// everybody is signed in as the same one
    IdentityBlind = "identity-blind", "never across identities", "other_identity";
    /// the log notes another place than the one that was proved
    HeadsAstray = "heads-astray", "only confirmed heads", "by_path";
    /// names in folders are never made durable
    NamesUnsynced = "names-unsynced", "convergence", "by_copy";
    /// a marker is never seen
    MarkersUnseen = "markers-unseen", "convergence", "by_copy";
    /// the lock of a dead process is never free again
    LocksForEver = "locks-for-ever", "nobody starves", "in_place";
}

impl Canary {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|canary| canary.name() == name)
    }
}
