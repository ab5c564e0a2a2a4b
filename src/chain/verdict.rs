//! The answer of a preflight as a value, and the receipt that carries what it rests on.

use serde::{Deserialize, Serialize};

use crate::chain::request::Request;
use crate::event::{Means, Route, VerdictWord};
use crate::id::{Digest, Frontier};
use crate::provider::{Finding, Launch};
use crate::snapshot::Snapshot;

/// One check that was reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// A stable word: `provider`, `lease`, `session-id`, ...
    pub id: String,
    /// What was checked, for people.
    pub label: String,
    /// Whether it was found or held. `false` is an answer, not an error.
    pub ok: bool,
    /// What was found, for people.
    pub detail: String,
}

/// Where new turns go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WritesTo {
    /// The folder.
    pub dir: String,
    /// The file, or nothing where the provider names a new one.
    pub file: Option<String>,
}

/// What the provider will read, and where it will write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranscriptAt {
    /// The file that it will read.
    pub path: String,
    /// Where new turns go.
    pub writes_to: WritesTo,
}

/// Where the log last confirmed the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConversationAt {
    /// The session.
    pub session: String,
    /// The login's folder.
    pub config_dir: String,
    /// The working directory.
    pub cwd: String,
    /// The file, where it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// How sure an answer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// It rests on what the log confirmed, and the disk does not contradict it.
    Proven,
    /// It rests on the disk alone, on a scan, or on rules of another version.
    Inferred,
}

/// What the next spawn will do. Holds no time, no pid of its own, nothing random: equal inputs give equal verdicts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The answer.
    pub verdict: VerdictWord,
    /// The session that will be loaded; of a fork, its source.
    pub session_id: Option<String>,
    /// With `fresh`: a session on disk that the spawn will not use.
    pub recoverable_session_id: Option<String>,
    /// What will be read and written.
    pub transcript: Option<TranscriptAt>,
    /// Where the log last confirmed the conversation, where the spawn does not continue it.
    pub conversation_at: Option<ConversationAt>,
    /// Why that session.
    pub route: Route,
    /// Which way it is reached.
    pub means: Option<Means>,
    /// How sure.
    pub confidence: Confidence,
    /// What else was noticed.
    pub findings: Vec<Finding>,
    /// The checks that were reached, in order.
    pub steps: Vec<Step>,
    /// What to start; nothing with `busy` and `unknown`.
    pub launch: Option<Launch>,
}

impl Verdict {
    /// Whether two verdicts are the same plan: what is launched, on which session and files. Words for people, findings
    /// and evidence may differ.
    #[must_use]
    pub fn same_plan(&self, other: &Self) -> bool {
        self.verdict == other.verdict
            && self.session_id == other.session_id
            && self.transcript == other.transcript
            && self.route == other.route
            && self.means == other.means
            && self.launch == other.launch
    }
}

/// What a verdict rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// Every stream that was asked; `null` without a log.
    pub streams: Option<Vec<Frontier>>,
    /// The digest of every observation.
    pub snapshot: Digest,
    /// The digest of the observations that the provider's rule asked for about the session: what a rejection is
    /// remembered under.
    pub lookup: Option<Digest>,
}

/// A verdict with its basis: the key that a spawn takes. Only [`preflight`](crate::chain::preflight::preflight) makes one.
///
/// It can be looked at and compared with a later one; it cannot be put together by hand:
///
/// ```compile_fail
/// # use throughline::chain::Receipt;
/// fn forged(receipt: Receipt) -> Receipt {
///     Receipt { verdict: receipt.verdict().clone(), ..receipt }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    request: Request,
    verdict: Verdict,
    basis: Basis,
    snapshot: Snapshot,
}

/// What a spawn is held to: the plan of a receipt and where the log was, without the observations. It can be read back from
/// what `preflight --json` printed; one that was made up only ever leads to drift, since a spawn decides anew and compares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Where each stream was that was asked; nothing without a log.
    pub streams: Option<Vec<Frontier>>,
    /// The answer.
    pub verdict: Verdict,
}

/// Why a text is no printed receipt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpectedError {
    /// It is not what `preflight --json` prints.
    #[error("it is not what `preflight --json` prints")]
    Json(#[from] serde_json::Error),
    /// It was printed by a version that says more than this one understands.
    #[error("its schema is {found}; this version reads {SCHEMA}")]
    Schema {
        /// Its schema.
        found: u64,
    },
}

/// The version of the printed form.
const SCHEMA: u64 = 1;

/// What stands in the printed form beside the verdict and its basis.
const BESIDE: [&str; 4] = ["schema", "duration_us", "recorded", "observations"];

impl Expected {
    /// Reads what `preflight --json` printed.
    ///
    /// # Errors
    ///
    /// [`ExpectedError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, ExpectedError> {
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(bytes)?;
        let found = fields.get("schema").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if found != SCHEMA {
            return Err(ExpectedError::Schema { found });
        }
        for name in BESIDE {
            fields.remove(name);
        }
        let basis: Basis = serde_json::from_value(fields.remove("basis").unwrap_or_default())?;
        Ok(Self { streams: basis.streams, verdict: serde_json::from_value(fields.into())? })
    }
}

impl From<&Receipt> for Expected {
    fn from(receipt: &Receipt) -> Self {
        Self { streams: receipt.basis.streams.clone(), verdict: receipt.verdict.clone() }
    }
}

/// What `--json` prints of a receipt, minus the time it took.
#[derive(Serialize)]
struct Printed<'a> {
    schema: u64,
    #[serde(flatten)]
    verdict: &'a Verdict,
    basis: &'a Basis,
}

impl Receipt {
    pub(in crate::chain) fn new(request: Request, verdict: Verdict, basis: Basis, snapshot: Snapshot) -> Self {
        Self { request, verdict, basis, snapshot }
    }

    /// The answer.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What it rests on.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// The observations themselves; replaying them gives the same verdict.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What was asked.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Whether `now`, asked again, says the same: no frontier moved and the plan is equal. Observations that changed
    /// without changing the plan do not matter.
    #[must_use]
    pub fn is_current(&self, now: &Self) -> bool {
        self.request == now.request && self.basis.streams == now.basis.streams && self.verdict.same_plan(&now.verdict)
    }

    /// The stable JSON form, `"schema": 1`.
    ///
    /// # Errors
    ///
    /// Those of `serde_json`; a receipt holds only texts, integers and digests, so there are none in practice.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(Printed { schema: SCHEMA, verdict: &self.verdict, basis: &self.basis })
    }
}
