//! Everything that can happen to a conversation, in the past tense, and the bytes that say so.
//!
//! An [`Event`] is one of three families, by the stream it belongs to: [`AgentEvent`] (what an agent's conversation went
//! through; decisions fold it), [`AuditEvent`] (what was said and what came of it; no decision reads it) and
//! [`HookEvent`] (what a provider's own hooks announced).
//!
//! [`Event::encode`] gives a kind, a schema number and **canonical bytes** (see [`canonical`]); [`Event::decode`] takes them
//! back. Digests are over those stored bytes, never over a value that was parsed and printed again. An old schema is
//! *lifted*, value by value, to the present one before it is read; a newer one, or a kind that this build does not know,
//! is a typed stop that names it: nothing is skipped.
//!
//! No conversation text and no secret is ever in an event: ids, paths, sizes, digests.

mod body;
pub mod canonical;
mod typed;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::body::*;
use crate::id::StreamName;

/// Why bytes are not an event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The kind is not one that this build knows for that family of streams.
    #[error(
        "event kind {kind:?} is unknown to this version for {family}/ streams; a newer throughline may have written it"
    )]
    UnknownKind {
        /// The kind as stored.
        kind: String,
        /// The stream's family.
        family: &'static str,
    },
    /// The body was written under a schema that is newer than this build's.
    #[error("event kind {kind:?} has schema {schema}, this version reads up to {known}; use a newer throughline")]
    NewerSchema {
        /// The kind as stored.
        kind: String,
        /// The schema as stored.
        schema: u32,
        /// The newest schema that this build reads.
        known: u32,
    },
    /// The bytes are not canonical JSON.
    #[error("the body of a {kind:?} event is not canonical JSON")]
    Json {
        /// The kind as stored.
        kind: String,
        /// What is wrong with the bytes.
        source: canonical::CanonicalError,
    },
    /// The JSON does not have the fields of its kind.
    #[error("the body of a {kind:?} event does not have the fields of its kind")]
    Fields {
        /// The kind as stored.
        kind: String,
        /// Which field.
        source: serde_json::Error,
    },
}

/// An event as it is stored: kind, schema and canonical bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// The kind, for example `spawned`.
    pub kind: &'static str,
    /// The schema number of the body.
    pub schema: u32,
    /// The canonical bytes of the body.
    pub body: Vec<u8>,
}

/// One step that lifts a body of a kind from `from` to `from + 1`.
#[derive(Clone, Copy)]
pub struct Lift {
    /// The kind.
    pub kind: &'static str,
    /// The schema that the step reads.
    pub from: u32,
    /// The step: fills in, renames or drops fields.
    pub step: fn(Value) -> Value,
}

/// The steps of this build. A schema is never changed in place: a change adds a number and a step here.
pub const LIFTS: &[Lift] = &[];

/// The newest schema of `kind` under a table of lifts: one more than the last step's source.
#[must_use]
pub fn schema_of(kind: &str, lifts: &[Lift]) -> u32 {
    lifts.iter().filter(|lift| lift.kind == kind).map(|lift| lift.from + 1).max().unwrap_or(1)
}

fn lift(kind: &str, schema: u32, mut value: Value, lifts: &[Lift]) -> Value {
    for version in schema..schema_of(kind, lifts) {
        if let Some(lift) = lifts.iter().find(|lift| lift.kind == kind && lift.from == version) {
            value = (lift.step)(value);
        }
    }
    value
}

fn typed<T: DeserializeOwned>(kind: &str, schema: u32, body: &[u8], lifts: &[Lift]) -> Result<T, DecodeError> {
    let known = schema_of(kind, lifts);
    if schema > known || schema == 0 {
        return Err(DecodeError::NewerSchema { kind: kind.into(), schema, known });
    }
    let fields = |source| DecodeError::Fields { kind: kind.into(), source };
    // Serde would also take a list for a struct.
    if body.first() != Some(&b'{') {
        return Err(fields(serde::de::Error::custom("a body is an object")));
    }
    if schema == known {
        // Looked at once as a whole: the reader would look at every text in it.
        let text = std::str::from_utf8(body).map_err(|error| fields(serde::de::Error::custom(error)))?;
        return serde_json::from_str(text).map_err(fields);
    }
    let value = canonical::parse(body).map_err(|source| DecodeError::Json { kind: kind.into(), source })?;
    serde_json::from_value(lift(kind, schema, value, lifts)).map_err(fields)
}

/// Declares a family of events: the enum, its kinds, and both directions of the encoding.
macro_rules! family {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $kind:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum $name { $($(#[$vdoc])* $variant($variant),)* }

        impl $name {
            /// Every kind of this family, in the order of its declaration.
            pub const KINDS: &[&str] = &[$($kind,)*];

            /// The kind as it is stored.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            fn bytes(&self) -> Result<Vec<u8>, canonical::CanonicalError> {
                match self { $(Self::$variant(body) => typed::to_bytes(body),)* }
            }

            fn decode(family: &'static str, kind: &str, schema: u32, body: &[u8], lifts: &[Lift]) -> Result<Self, DecodeError> {
                match kind {
                    $($kind => typed(kind, schema, body, lifts).map(Self::$variant),)*
                    _ => Err(DecodeError::UnknownKind { kind: kind.into(), family }),
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(body: $variant) -> Self {
                Self::from($name::$variant(body))
            }
        })*
    };
}

family! {
    /// What an agent's conversation went through (`agent/<uid>`).
    AgentEvent {
        /// The agent exists.
        AgentDeclared = "agent_declared",
        /// A driver took the lease.
        LeaseTaken = "lease_taken",
        /// A lease was given back or found dead.
        LeaseEnded = "lease_ended",
        /// A provider process is about to be started. Never moves the head.
        Spawned = "spawned",
        /// It runs.
        Launched = "launched",
        /// It could not be started.
        LaunchFailed = "launch_failed",
        /// The provider named its session: an id, not yet a head.
        SessionReported = "session_reported",
        /// The provider named the session it forked to.
        ForkReported = "fork_reported",
        /// A successful result that proves the resume.
        ResumeConfirmed = "resume_confirmed",
        /// A successful result of a turn.
        TurnConfirmed = "turn_confirmed",
        /// The provider refused the session.
        ResumeRejected = "resume_rejected",
        /// The conversation is here now. The only event that moves the head.
        ChainHeadMoved = "chain_head_moved",
        /// The process is gone.
        SegmentEnded = "segment_ended",
        /// A person said that this existing session is the agent's conversation.
        SessionBound = "session_bound",
        /// The file was continued by somebody else.
        GrowthSeen = "growth_seen",
        /// A copy is about to be made.
        RelocationIntended = "relocation_intended",
        /// It is visible and owned.
        Relocated = "relocated",
        /// It could not be made.
        RelocationFailed = "relocation_failed",
        /// What becomes of the copy is decided.
        SettleIntended = "settle_intended",
        /// The copy is gone: the fork has its own file.
        CopyRemoved = "copy_removed",
        /// The copy stays: the CLI continued in it.
        CopyUnmarked = "copy_unmarked",
        /// Leftovers are about to be removed.
        SweepIntended = "sweep_intended",
        /// They are.
        Swept = "swept",
        /// A source was saved from the agent's own clean-up.
        RetentionExtended = "retention_extended",
        /// The user asked for a new conversation.
        FreshIntended = "fresh_intended",
    }
}

family! {
    /// What was answered and what came of it (`audit/<uid>`); folded by no decision.
    AuditEvent {
        /// A preflight answered.
        VerdictGiven = "verdict_given",
        /// What the spawn really did, beside what was expected.
        OutcomeObserved = "outcome_observed",
    }
}

family! {
    /// What a provider's own hooks announced (`hook/<uid>`); unfenced.
    HookEvent {
        /// A hook ran.
        HookAnnounced = "hook_announced",
    }
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly every event is an agent's; a box would cost each of them")]
pub enum Event {
    /// To an agent's conversation.
    Agent(AgentEvent),
    /// For the record.
    Audit(AuditEvent),
    /// By word of a provider's hook.
    Hook(HookEvent),
}

impl From<AgentEvent> for Event {
    fn from(event: AgentEvent) -> Self {
        Self::Agent(event)
    }
}

impl From<AuditEvent> for Event {
    fn from(event: AuditEvent) -> Self {
        Self::Audit(event)
    }
}

impl From<HookEvent> for Event {
    fn from(event: HookEvent) -> Self {
        Self::Hook(event)
    }
}

impl Event {
    /// The kind as it is stored, for example `chain_head_moved`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Agent(event) => event.kind(),
            Self::Audit(event) => event.kind(),
            Self::Hook(event) => event.kind(),
        }
    }

    /// The family of streams that the event belongs to: `agent`, `audit` or `hook`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Audit(_) => "audit",
            Self::Hook(_) => "hook",
        }
    }

    /// Kind, schema and canonical bytes. Equal events give equal bytes, whatever features `serde_json` is built with.
    ///
    /// # Errors
    ///
    /// [`canonical::CanonicalError`] when a value has no canonical form. Events of this crate hold only integers, texts
    /// and structs with fixed names, so this is a broken build rather than broken data.
    ///
    /// ```
    /// # use throughline::event::{AgentDeclared, Event};
    /// # use throughline::id::{ProviderName, StreamName};
    /// let event = Event::from(AgentDeclared { provider: ProviderName::parse("claude")?, forked_from: None });
    /// let stored = event.encode()?;
    /// assert_eq!(stored.body, br#"{"provider":"claude"}"#);
    /// let stream: StreamName = "agent/marks".parse()?;
    /// assert_eq!(Event::decode(&stream, stored.kind, stored.schema, &stored.body)?, event);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&self) -> Result<Encoded, canonical::CanonicalError> {
        let body = match self {
            Self::Agent(event) => event.bytes(),
            Self::Audit(event) => event.bytes(),
            Self::Hook(event) => event.bytes(),
        }?;
        let kind = self.kind();
        Ok(Encoded { kind, schema: schema_of(kind, LIFTS), body })
    }

    /// The event that stored bytes say.
    ///
    /// # Errors
    ///
    /// [`DecodeError`]: an unknown kind, a newer schema, bytes that are not JSON, or fields that are not the kind's.
    pub fn decode(stream: &StreamName, kind: &str, schema: u32, body: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_with(LIFTS, stream, kind, schema, body)
    }

    /// As [`Event::decode`], under another table of lifts: how a change of schema is tried before it is made.
    ///
    /// # Errors
    ///
    /// As [`Event::decode`].
    pub fn decode_with(
        lifts: &[Lift],
        stream: &StreamName,
        kind: &str,
        schema: u32,
        body: &[u8],
    ) -> Result<Self, DecodeError> {
        match stream {
            StreamName::Agent(_) => AgentEvent::decode("agent", kind, schema, body, lifts).map(Self::Agent),
            StreamName::Audit(_) => AuditEvent::decode("audit", kind, schema, body, lifts).map(Self::Audit),
            StreamName::Hook(_) => HookEvent::decode("hook", kind, schema, body, lifts).map(Self::Hook),
        }
    }
}

/// Holds for any bytes; what the fuzz target `event_decode` and the tests search for exceptions of. The first line names
/// stream and kind, the rest is the body.
///
/// # Panics
///
/// When it does not hold.
#[doc(hidden)]
pub fn check_decode(bytes: &[u8]) {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return };
    let Ok(names) = std::str::from_utf8(&bytes[..end]) else { return };
    let Some((stream, kind)) = names.split_once(' ') else { return };
    let Ok(stream) = stream.parse::<StreamName>() else { return };
    let Ok(event) = Event::decode(&stream, kind, 1, &bytes[end + 1..]) else { return };
    let encoded = event.encode();
    let again = encoded.as_ref().ok().map(|it| Event::decode(&stream, it.kind, it.schema, &it.body));
    assert!(matches!(&again, Some(Ok(again)) if *again == event), "{event:?} does not survive: {again:?}");
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot build its events should stop")]

    use super::*;

    fn stream() -> StreamName {
        "agent/a".parse().unwrap()
    }

    /// As if `fresh_intended` had called its pane a place in schema 1, and a window in schema 2.
    const RENAMED: &[Lift] = &[
        Lift { kind: "fresh_intended", from: 1, step: |value| renamed(value, "place", "window") },
        Lift { kind: "fresh_intended", from: 2, step: |value| renamed(value, "window", "pane") },
    ];

    fn renamed(mut value: Value, from: &str, to: &str) -> Value {
        if let Some(fields) = value.as_object_mut()
            && let Some(field) = fields.remove(from)
        {
            fields.insert(to.into(), field);
        }
        value
    }

    #[test]
    fn an_old_schema_is_lifted_step_by_step_to_the_present_one() {
        let pane = |schema: u32, body: &str| {
            let event = Event::decode_with(RENAMED, &stream(), "fresh_intended", schema, body.as_bytes());
            match event {
                Ok(Event::Agent(AgentEvent::FreshIntended(body))) => body.pane.map(String::from),
                _ => None,
            }
        };
        assert_eq!(pane(1, r#"{"place":"p"}"#).as_deref(), Some("p"));
        assert_eq!(pane(2, r#"{"window":"p"}"#).as_deref(), Some("p"));
        assert_eq!(pane(3, r#"{"pane":"p"}"#).as_deref(), Some("p"));
        assert_eq!(pane(3, r#"{"place":"p"}"#), None, "the present schema has no such field");
    }

    #[test]
    fn what_a_newer_version_wrote_is_a_stop_that_names_it() {
        let decode = |kind, schema| Event::decode_with(RENAMED, &stream(), kind, schema, b"{}");
        let newer = decode("fresh_intended", 4);
        assert!(matches!(newer, Err(DecodeError::NewerSchema { schema: 4, known: 3, .. })), "{newer:?}");
        assert!(matches!(decode("fresh_intended", 0), Err(DecodeError::NewerSchema { .. })));
        let unknown = decode("teleported", 1);
        assert!(unknown.is_err_and(|error| error.to_string().contains("teleported")));
        let elsewhere = decode("verdict_given", 1);
        assert!(matches!(elsewhere, Err(DecodeError::UnknownKind { .. })), "a kind of another family is unknown here");
    }

    #[test]
    fn a_field_too_many_a_key_twice_and_a_float_are_refused() {
        for body in [r#"{"pane":"p","x":1}"#, r#"{"pane":"p","pane":"q"}"#, r#"{"pane":1.5}"#, "[]", "", "{}x"] {
            let event = Event::decode(&stream(), "fresh_intended", 1, body.as_bytes());
            assert!(matches!(event, Err(DecodeError::Fields { .. })), "{body}: {event:?}");
        }
    }

    #[test]
    fn every_kind_is_its_own_and_the_present_schemas_are_1() {
        let all = [AgentEvent::KINDS, AuditEvent::KINDS, HookEvent::KINDS].concat();
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), distinct.len()), (28, 28));
        assert!(all.iter().all(|kind| schema_of(kind, LIFTS) == 1));
    }
}
