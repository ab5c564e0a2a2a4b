//! What a rule is, what it is tried on, and how it says that it does not hold.

use std::fmt::Debug;

use super::tally::Tally;
use crate::id::StoreId;
use crate::log::{AppendError, Cause, ExportError, ImportError, Log, LogError, Records};

/// One log on the bench: it is there as long as this is, and is opened as often as a rule wants.
pub trait Bench {
    /// Opens the log for writing, once more: what another process would hold.
    ///
    /// # Errors
    ///
    /// Why the log cannot be opened; the rule that asked is broken then.
    fn writer(&self) -> Result<Box<dyn Log<Tally>>, Cause>;

    /// Opens the log for reading alone. Asked only after a writer was opened.
    ///
    /// # Errors
    ///
    /// As [`Bench::writer`].
    fn reader(&self) -> Result<Box<dyn Records<Tally>>, Cause>;
}

/// Makes an empty log of an id.
pub type Make<'m> = dyn Fn(StoreId) -> Result<Box<dyn Bench>, Cause> + 'm;

/// One promise that every store keeps.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, for reports and for a store that has to name an exception.
    pub name: &'static str,
    /// What it promises, as a sentence.
    pub says: &'static str,
    check: fn(&Make<'_>) -> Result<(), Breach>,
}

impl Rule {
    pub(super) const fn new(
        name: &'static str,
        says: &'static str,
        check: fn(&Make<'_>) -> Result<(), Breach>,
    ) -> Self {
        Self { name, says, check }
    }

    /// Tries it on logs of its own.
    ///
    /// # Errors
    ///
    /// [`Breach`] when it does not hold.
    pub fn check(&self, make: &Make<'_>) -> Result<(), Breach> {
        (self.check)(make)
    }
}

/// How a rule does not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: expected {expected}, found {found}")]
#[non_exhaustive]
pub struct Breach {
    /// What was looked at.
    pub what: String,
    /// What the rule says that it is.
    pub expected: String,
    /// What it was.
    pub found: String,
}

impl Breach {
    pub(super) fn new(what: &str, expected: &str, found: &dyn Debug) -> Self {
        Self { what: what.to_owned(), expected: expected.to_owned(), found: format!("{found:?}") }
    }
}

/// Two values are one, or it is a breach.
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), Breach> {
    if found == expected { Ok(()) } else { Err(Breach::new(what, &format!("{expected:?}"), found)) }
}

/// A call that has to succeed did not.
macro_rules! fails {
    ($($error:ty = $call:literal,)*) => {
        $(impl From<$error> for Breach {
            fn from(error: $error) -> Self {
                Self::new($call, "an answer", &error)
            }
        })*
    };
}

fails! {
    AppendError = "an append",
    LogError = "a read",
    ImportError = "an import",
    ExportError = "an export",
    Cause = "the bench",
}

/// A rule by the name of its check.
macro_rules! rule {
    ($check:ident, $says:literal) => {
        $crate::log::conformance::Rule::new(stringify!($check), $says, $check)
    };
}
pub(super) use rule;

/// A result is a refusal of a kind, or it is a breach.
macro_rules! refused {
    ($what:expr, $result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => Ok(()),
            found => Err($crate::log::conformance::Breach::new($what, stringify!($pattern), &found)),
        }
    };
}
pub(super) use refused;
