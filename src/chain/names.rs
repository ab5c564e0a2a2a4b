//! The names of a relocated copy and of what lies beside it, and what its marker says. Pure: texts in, texts out.
//!
//! ```text
//! <id>.jsonl                                    the copy, where the provider looks for the session
//! <id>.jsonl.throughline-relocated              its marker: whose it is, and what it is a copy of
//! <id>.jsonl.throughline-tmp-<uid>.<token>      the copy, while it is made: whatever is in it, it can go
//! <id>.jsonl.throughline-mark-<uid>.<token>     the marker, while it is made: the same
//! <id>.jsonl.throughline-out-<uid>.<token>      the copy, while it is removed: it goes only if it is what was logged
//! ```
//!
//! A place has one marker, whoever makes a copy there: it appears whole and only where there is none, so that it is a claim
//! as well. With a marker for each copy, somebody who only tried to make another would cast doubt on whose copy it is.
//! *tmp* and *out* are different names on purpose: after a crash, one may hold half a copy that nobody wants, the other may
//! hold turns that somebody wrote into the copy in the moment in which it was taken away. A UID has no `.`, so names are
//! told apart without searching in them.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, Digest, StoreId, Token};

/// The version of [`MarkerFile`].
pub const MARKER_SCHEMA: u32 = 1;

/// What a marker says. Other schemes write fewer fields.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MarkerFile {
    /// [`MARKER_SCHEMA`]
    #[serde(default)]
    pub schema: u32,
    /// The agent that made the copy.
    pub owner_uid: String,
    /// The original.
    #[serde(default)]
    pub source: String,
    /// How much of it was copied.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// BLAKE3 of the copy.
    #[serde(default)]
    pub digest: Option<Digest>,
    /// The token that ties it to the log.
    #[serde(default)]
    pub token: Option<String>,
    /// Which log.
    #[serde(default)]
    pub store: Option<StoreId>,
}

/// The names of one copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyNames {
    /// The folder that all of them are in.
    pub dir: String,
    /// The marker.
    pub marker: String,
    /// The marker while it is made.
    pub claim: String,
    /// The copy while it is made.
    pub temp: String,
    /// The copy while it is removed.
    pub out: String,
}

/// The names that belong to the copy at `destination`.
///
/// ```
/// # use throughline::chain::names::names;
/// # use throughline::id::{AgentId, Token};
/// let names = names("/c/projects/-w/S.jsonl", &AgentId::parse("marks")?, &Token::parse("t1")?);
/// assert_eq!(names.dir, "/c/projects/-w");
/// assert_eq!(names.marker, "/c/projects/-w/S.jsonl.throughline-relocated");
/// assert_eq!(names.temp, "/c/projects/-w/S.jsonl.throughline-tmp-marks.t1");
/// # Ok::<(), throughline::id::IdError>(())
/// ```
#[must_use]
pub fn names(destination: &str, uid: &AgentId, token: &Token) -> CopyNames {
    CopyNames {
        dir: parent(destination).to_owned(),
        marker: format!("{destination}.throughline-relocated"),
        claim: format!("{destination}.throughline-mark-{uid}.{token}"),
        temp: format!("{destination}.throughline-tmp-{uid}.{token}"),
        out: format!("{destination}.throughline-out-{uid}.{token}"),
    }
}

/// The folder of an absolute path.
#[must_use]
pub fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((dir, _)) => dir,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_path_is_what_comes_before_its_last_slash() {
        for (path, dir) in [("/a/b", "/a"), ("/a", "/"), ("/a/b/", "/a/b"), ("x", "/")] {
            assert_eq!(parent(path), dir, "{path}");
        }
    }

    #[test]
    fn a_marker_of_another_scheme_has_fewer_fields_and_is_understood() -> Result<(), serde_json::Error> {
        let other: MarkerFile = serde_json::from_str(r#"{"owner_uid":"a","source":"/s","bytes":7}"#)?;
        assert_eq!((other.schema, other.bytes, other.token, other.digest), (0, Some(7), None, None));
        Ok(())
    }
}
