//! The gate: which session a spawn may use, given what the log knows. Pure, lazy, first match wins.
//!
//! The rows are those of the published truth table (named in [`Row`]), with two deviations that have tests of their own:
//! identity comes before rejection (a refused head is no reason to cross to another login), and "here" is what the
//! provider's own lookup reaches, not whether a file exists.

use serde::{Deserialize, Serialize};

/// What the gate says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Use the candidate as it is.
    Allow,
    /// Fork the head: somebody else continued its file.
    Fork,
    /// Use the head instead of the candidate.
    Redirect,
    /// Fork the head from where it lies.
    Relocate,
    /// Fork the parent agent's head.
    ForkFrom,
    /// Use nothing.
    Refuse,
}

/// Which row of the table decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// 1: no head, no fork source.
    NoChain,
    /// 1′: no head, a usable fork source.
    ForkSource,
    /// 1″: no head, a fork source that cannot be used.
    ForkSourceUnusable,
    /// 2: the provider refused the head under these observations.
    HeadRejected,
    /// 3: both identities are known and differ.
    IdentityDiffers,
    /// 4: the head is here and changed since it was confirmed.
    HeadChanged,
    /// 5: the head is here and is the candidate.
    HeadHeld,
    /// 6: the head is here and is not the candidate.
    HeadNotHeld,
    /// 7: the head is elsewhere and can be forked from there.
    HeadElsewhere,
    /// 8: the head is out of reach and is the candidate.
    OutOfReachHeld,
    /// 9: the head is out of reach and is not the candidate.
    OutOfReach,
}

/// How two identities compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identities {
    /// Both known and equal.
    Equal,
    /// Both known and different.
    Differ,
    /// At least one unknown: no information.
    Unknown,
}

/// Where the head is, as seen from the spawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Here {
    /// The provider's lookup does not reach it.
    No,
    /// It does, and the file is as it was confirmed, or what it was is not known.
    AsConfirmed,
    /// It does, and the file changed since.
    Changed,
}

/// The facts that the gate asks for, each only when a row needs it.
///
/// # Errors
///
/// Each passes on what stops the caller from knowing.
#[expect(clippy::missing_errors_doc, reason = "stated once, above")]
pub trait Facts {
    /// What stops an answer.
    type Stop;
    /// Whether the chain has a head.
    fn has_head(&self) -> bool;
    /// Whether the candidate is the head.
    fn candidate_is_head(&self) -> bool;
    /// Whether the parent agent's head can be forked; nothing where no parent was named.
    fn fork_source(&mut self) -> Result<Option<bool>, Self::Stop>;
    /// How the head's identity compares with the spawn's.
    fn identities(&mut self) -> Result<Identities, Self::Stop>;
    /// Whether the provider refused the head under equal observations.
    fn head_rejected(&mut self) -> Result<bool, Self::Stop>;
    /// Whether the head is here.
    fn here(&mut self) -> Result<Here, Self::Stop>;
    /// Whether the head can be forked from where it lies.
    fn relocatable(&mut self) -> Result<bool, Self::Stop>;
}

/// Decides. Asks no more than the rows above the answer need.
///
/// # Errors
///
/// What a fact could not be told for.
pub fn decide<F: Facts>(facts: &mut F) -> Result<(Decision, Row), F::Stop> {
    if !facts.has_head() {
        return Ok(match facts.fork_source()? {
            None => (Decision::Allow, Row::NoChain),
            Some(true) => (Decision::ForkFrom, Row::ForkSource),
            Some(false) => (Decision::Allow, Row::ForkSourceUnusable),
        });
    }
    if facts.identities()? == Identities::Differ {
        return Ok((Decision::Refuse, Row::IdentityDiffers));
    }
    if facts.head_rejected()? {
        return Ok((Decision::Allow, Row::HeadRejected));
    }
    match facts.here()? {
        Here::Changed => return Ok((Decision::Fork, Row::HeadChanged)),
        Here::AsConfirmed if facts.candidate_is_head() => return Ok((Decision::Allow, Row::HeadHeld)),
        Here::AsConfirmed => return Ok((Decision::Redirect, Row::HeadNotHeld)),
        Here::No => {}
    }
    if facts.relocatable()? {
        return Ok((Decision::Relocate, Row::HeadElsewhere));
    }
    Ok(if facts.candidate_is_head() {
        (Decision::Allow, Row::OutOfReachHeld)
    } else {
        (Decision::Refuse, Row::OutOfReach)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts of one row, and what was asked of them.
    struct Table {
        head: bool,
        source: Option<bool>,
        identities: Identities,
        rejected: bool,
        here: Here,
        relocatable: bool,
        candidate_is_head: bool,
        asked: Vec<&'static str>,
    }

    impl Facts for Table {
        type Stop = std::convert::Infallible;
        fn has_head(&self) -> bool {
            self.head
        }
        fn candidate_is_head(&self) -> bool {
            self.candidate_is_head
        }
        fn fork_source(&mut self) -> Result<Option<bool>, Self::Stop> {
            self.asked.push("source");
            Ok(self.source)
        }
        fn identities(&mut self) -> Result<Identities, Self::Stop> {
            self.asked.push("identities");
            Ok(self.identities)
        }
        fn head_rejected(&mut self) -> Result<bool, Self::Stop> {
            self.asked.push("rejected");
            Ok(self.rejected)
        }
        fn here(&mut self) -> Result<Here, Self::Stop> {
            self.asked.push("here");
            Ok(self.here)
        }
        fn relocatable(&mut self) -> Result<bool, Self::Stop> {
            self.asked.push("relocatable");
            Ok(self.relocatable)
        }
    }

    /// Every combination of the facts that a row leaves open.
    fn every(mut visit: impl FnMut(Table)) {
        for bits in 0..8 {
            for identities in [Identities::Equal, Identities::Differ, Identities::Unknown] {
                for here in [Here::No, Here::AsConfirmed, Here::Changed] {
                    visit(Table {
                        head: true,
                        source: None,
                        identities,
                        rejected: bits & 1 != 0,
                        here,
                        relocatable: bits & 2 != 0,
                        candidate_is_head: bits & 4 != 0,
                        asked: Vec::new(),
                    });
                }
            }
        }
    }

    fn of(mut table: Table) -> (Decision, Row, Vec<&'static str>) {
        let Ok((decision, row)) = decide(&mut table);
        (decision, row, table.asked)
    }

    /// The expanded table, read top down; the second row of the published one stands behind identity on purpose.
    fn expected(table: &Table) -> Decision {
        use Identities::{Differ, Equal};
        match (table.identities, table.rejected, table.here, table.relocatable, table.candidate_is_head) {
            (Differ, ..) => Decision::Refuse,
            (_, true, ..) => Decision::Allow,
            (_, _, Here::Changed, ..) => Decision::Fork,
            (_, _, Here::AsConfirmed, _, true) => Decision::Allow,
            (_, _, Here::AsConfirmed, _, false) => Decision::Redirect,
            (Equal, _, Here::No, true, _) => Decision::Relocate,
            (_, _, Here::No, true, _) => Decision::Relocate,
            (_, _, Here::No, false, true) => Decision::Allow,
            (_, _, Here::No, false, false) => Decision::Refuse,
        }
    }

    #[test]
    fn every_combination_decides_as_the_expanded_table_says() {
        let mut reached = std::collections::BTreeSet::new();
        every(|table| {
            let wanted = expected(&table);
            let (decision, row, _) = of(table);
            assert_eq!(decision, wanted, "{row:?}");
            reached.insert(row);
        });
        assert_eq!(reached.len(), 8, "every row with a head is reached: {reached:?}");
    }

    #[test]
    fn without_a_head_only_the_fork_source_counts() {
        for (source, decision, row) in [
            (None, Decision::Allow, Row::NoChain),
            (Some(true), Decision::ForkFrom, Row::ForkSource),
            (Some(false), Decision::Allow, Row::ForkSourceUnusable),
        ] {
            every(|table| {
                let (found, by, asked) = of(Table { head: false, source, ..table });
                assert_eq!((found, by), (decision, row));
                assert_eq!(asked, ["source"]);
            });
        }
    }

    #[test]
    fn deviation_identity_comes_before_a_rejected_head() {
        every(|table| {
            let (decision, row, asked) = of(Table { identities: Identities::Differ, rejected: true, ..table });
            assert_eq!((decision, row), (Decision::Refuse, Row::IdentityDiffers));
            assert_eq!(asked, ["identities"], "nothing else is looked at");
        });
    }

    #[test]
    fn a_row_asks_no_more_than_it_needs() {
        every(|table| {
            let (_, row, asked) = of(table);
            let most = match row {
                Row::IdentityDiffers => 1,
                Row::HeadRejected => 2,
                Row::HeadChanged | Row::HeadHeld | Row::HeadNotHeld => 3,
                Row::HeadElsewhere | Row::OutOfReachHeld | Row::OutOfReach => 4,
                Row::NoChain | Row::ForkSource | Row::ForkSourceUnusable => unreachable!("there is a head"),
            };
            assert!(asked.len() <= most, "{row:?} asked {asked:?}");
        });
    }
}
