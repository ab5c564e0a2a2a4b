//! Names of things: newtypes that parse, print and compare, and nothing else.
//!
//! A bare `String` or `u64` does not cross a module of this crate: an agent's UID is an [`AgentId`], a position in a
//! stream is a [`Version`], a proof of a prefix is a [`Frontier`]. Each text newtype states its grammar and refuses what
//! does not fit it with an [`IdError`], so that no later code has to ask again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that does not fit the grammar of the id it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {found:?} is not valid: {rule}")]
#[non_exhaustive]
pub struct IdError {
    /// What was being parsed, for example `agent id`.
    pub what: &'static str,
    /// The start of the text as it was given (at most 80 characters).
    pub found: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl IdError {
    fn new(what: &'static str, found: &str, rule: &'static str) -> Self {
        Self { what, found: found.chars().take(80).collect(), rule }
    }
}

/// Declares a text newtype: its grammar as a predicate, `parse`, `Display`, serde through the same check.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[doc = concat!("Parses ", $what, ".\n\n# Errors\n\n[`IdError`] when the text breaks the rule: ", $rule, ".")]
            pub fn parse(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(IdError::new($what, &text, $rule)) }
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

fn made_of(text: &str, max: usize, extra: &[u8]) -> bool {
    (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || extra.contains(&byte))
}

text_id!(
    /// An agent's UID: one long-lived assistant with one conversation.
    ///
    /// The grammar has no `.`, so that a UID inside a file name ends where the name says it ends.
    ///
    /// ```
    /// # use throughline::id::AgentId;
    /// assert!(AgentId::parse("marks-2").is_ok());
    /// assert!(AgentId::parse("a.b").is_err());
    /// ```
    AgentId, "agent id", "it must match [A-Za-z0-9_-]{1,64}", |text| made_of(text, 64, b"_-")
);

text_id!(
    /// The id of a provider's conversation file, as the provider writes it.
    ///
    /// Agents differ (uuids, `ses_…`), so only what could leave the folder that a session lives in is refused. Whether a
    /// provider can *take* an id is that provider's rule.
    SessionId, "session id", "it must be 1 to 255 bytes without '/', '\\', control characters, and not '.' or '..'",
    |text| (1..=255).contains(&text.len())
        && text != "." && text != ".."
        && !text.chars().any(|c| c == '/' || c == '\\' || c.is_control())
);

text_id!(
    /// One provider process, from spawn to exit.
    SegmentId, "segment id", "it must match [A-Za-z0-9._-]{1,64}", |text| made_of(text, 64, b"._-")
);

text_id!(
    /// Ties a relocated copy, its marker and the log together.
    Token, "token", "it must match [A-Za-z0-9_-]{1,64}", |text| made_of(text, 64, b"_-")
);

text_id!(
    /// Where a person sees an agent.
    PaneId, "pane id", "it must be 1 to 255 bytes without control characters",
    |text| (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
);

text_id!(
    /// Which agent CLI: `claude`, `codex`, ...
    ProviderName, "provider", "it must match [a-z0-9_-]{1,32}",
    |text| made_of(text, 32, b"_-") && !text.bytes().any(|byte| byte.is_ascii_uppercase())
);

impl ProviderName {
    /// The name under which this provider's rules are found: `claude-code` is `claude`.
    #[must_use]
    pub fn family(&self) -> &str {
        if self.0 == "claude-code" { "claude" } else { &self.0 }
    }
}

text_id!(
    /// A hash that stands for the identity signed in at a login; never a mail address.
    IdentityKey, "identity key", "it must match [A-Za-z0-9_-]{1,64}", |text| made_of(text, 64, b"_-")
);

text_id!(
    /// A path as it was spelled. Literal: no `~`, no trimming; the empty text is a value.
    PathText, "path", "it must be at most 65536 bytes without a NUL", |text| text.len() <= 65_536 && !text.contains('\0')
);

impl PathText {
    /// The text as a path.
    #[must_use]
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(&self.0)
    }
}

text_id!(
    /// Makes a repeated append return the first one's receipt.
    IdempotencyKey, "idempotency key", "it must be 1 to 255 bytes without control characters",
    |text| (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
);

/// A BLAKE3 digest: 32 bytes, printed as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// Digests are most of what a replay reads: their text is looked at where it stands, not copied first.
impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Hex;
        impl serde::de::Visitor<'_> for Hex {
            type Value = Digest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 lower-case hex digits")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Hex)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::GENESIS
    }
}

impl Digest {
    /// 32 zero bytes: the chain before the first event, and only there.
    pub const GENESIS: Self = Self([0; 32]);

    /// The digest of `parts`, each preceded by its length, under a domain that keeps kinds of digests apart.
    #[must_use]
    pub fn of(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The plain BLAKE3 of some bytes, as `b3sum` prints it.
    #[must_use]
    pub fn plain(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The value of each lower-case hex digit; 0xff for any other byte.
const HEX: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut value = 0;
    while value < 16 {
        table[b"0123456789abcdef"[value as usize] as usize] = value;
        value += 1;
    }
    table
};

impl FromStr for Digest {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::new("digest", text, "it must be 64 lower-case hex digits");
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| wrong())?;
        let mut bytes = [0; 32];
        let mut met = 0;
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (HEX[usize::from(pair[0])], HEX[usize::from(pair[1])]);
            met |= high | low;
            *byte = (high << 4) | (low & 15);
        }
        if met > 15 { Err(wrong()) } else { Ok(Self(bytes)) }
    }
}

/// Which log: every digest of a record is bound to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub uuid::Uuid);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for StoreId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        uuid::Uuid::try_parse(text).map(Self).map_err(|_| IdError::new("store id", text, "it must be a uuid"))
    }
}

/// Declares a counting newtype.
macro_rules! count {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this. Saturates; a log cannot hold that many events.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

count!(
    /// The place of an event in the whole log: dense from 1.
    Seq
);
count!(
    /// The place of an event in its stream: dense from 1; 0 is the empty stream.
    Version
);
count!(
    /// Counts the leases of one agent: each driver's events carry its epoch, and a stale one is refused. 0 = no lease.
    Epoch
);

/// The name of a stream: what its events are about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum StreamName {
    /// `agent/<uid>`: the agent's conversation.
    Agent(AgentId),
    /// `audit/<uid>`: verdicts given and outcomes observed; no decision reads it.
    Audit(AgentId),
    /// `hook/<uid>`: what the provider's own hooks announced.
    Hook(AgentId),
}

impl StreamName {
    /// The part before the `/`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Audit(_) => "audit",
            Self::Hook(_) => "hook",
        }
    }

    /// The agent that the stream is about.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        match self {
            Self::Agent(uid) | Self::Audit(uid) | Self::Hook(uid) => uid,
        }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family(), self.agent())
    }
}

impl FromStr for StreamName {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let rule = "it must be agent/UID, audit/UID or hook/UID";
        match text.split_once('/') {
            Some(("agent", uid)) => Ok(Self::Agent(AgentId::parse(uid)?)),
            Some(("audit", uid)) => Ok(Self::Audit(AgentId::parse(uid)?)),
            Some(("hook", uid)) => Ok(Self::Hook(AgentId::parse(uid)?)),
            Some(_) | None => Err(IdError::new("stream name", text, rule)),
        }
    }
}

impl TryFrom<String> for StreamName {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<StreamName> for String {
    fn from(name: StreamName) -> String {
        name.to_string()
    }
}

/// A proof of a stream's whole prefix: its version and the chain digest there.
///
/// Two equal frontiers of one store have equal histories. Version 0 has the chain [`Digest::GENESIS`], and only that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frontier {
    /// Which stream.
    pub stream: StreamName,
    /// How many events it has.
    pub version: Version,
    /// The digest over all of them.
    pub chain: Digest,
}

impl Frontier {
    /// The frontier of a stream without events.
    #[must_use]
    pub fn empty(stream: StreamName) -> Self {
        Self { stream, version: Version(0), chain: Digest::GENESIS }
    }
}

/// The state of the whole log at one moment, as `anchor` prints it: `seq:chain`.
///
/// Kept elsewhere (in a commit, a ticket, another machine) it is what makes a log that was cut off recognisable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Anchor {
    /// The last event's place.
    pub seq: Seq,
    /// The digest over the log up to it.
    pub chain: Digest,
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.chain)
    }
}

impl FromStr for Anchor {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::new("anchor", text, "it must be SEQ:CHAIN as `throughline anchor` prints it");
        let (seq, chain) = text.trim().split_once(':').ok_or_else(wrong)?;
        let seq = Seq(seq.parse().map_err(|_| wrong())?);
        let chain: Digest = chain.parse().map_err(|_| wrong())?;
        if (seq.0 == 0) != (chain == Digest::GENESIS) {
            return Err(wrong());
        }
        Ok(Self { seq, chain })
    }
}

impl TryFrom<String> for Anchor {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Anchor> for String {
    fn from(anchor: Anchor) -> String {
        anchor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_id_has_no_dot_and_no_slash() {
        for good in ["a", "A_b-9", &"x".repeat(64)] {
            assert!(AgentId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a.b", "a/b", "ü", "a b", &"x".repeat(65)] {
            assert!(AgentId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_session_id_cannot_leave_its_folder() {
        for bad in ["", ".", "..", "a/b", "../x", "a\0b", "a\nb", "a\\b"] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SessionId::parse("ses_0123456789").is_ok());
    }

    #[test]
    fn a_digest_prints_as_hex_and_parses_back() {
        let digest = Digest::plain(b"x");
        assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
        assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
        assert!("00".parse::<Digest>().is_err());
    }

    #[test]
    fn parts_of_a_digest_do_not_run_together() {
        assert_ne!(Digest::of("d", &[b"ab", b"c"]), Digest::of("d", &[b"a", b"bc"]));
        assert_ne!(Digest::of("d", &[b"a"]), Digest::of("e", &[b"a"]));
    }

    #[test]
    fn an_anchor_of_an_empty_log_is_genesis_and_nothing_else() {
        let zero = "0".repeat(64);
        assert!(format!("0:{zero}").parse::<Anchor>().is_ok());
        assert!(format!("1:{zero}").parse::<Anchor>().is_err());
        assert!("1".parse::<Anchor>().is_err());
    }
}
