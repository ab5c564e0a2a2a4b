//! The CLI's own process registry: `sessions/<pid>.json` below the config dir, one file a running process.
//!
//! Observed on 2.1.332: written while the process lives, removed when it exits; an entry that a killed process left behind
//! hinders nobody and stays. So an entry says only "this pid, started then, has that session"; whether it lives is asked of
//! the process table.

use serde_json::Value;

/// The registry's folder below the config dir.
pub const REGISTRY_DIR: &str = "sessions";

/// An entry of the registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registered {
    /// The process.
    pub pid: u32,
    /// The session that it has open.
    pub session: String,
    /// When it was started, in clock ticks since boot, where the entry says it: tells a reused pid.
    pub started: Option<u64>,
}

/// Reads an entry; nothing where it does not parse (it may be half-written) or names no process or session.
///
/// ```
/// # use throughline::provider::claude::registered;
/// let entry = registered(br#"{"pid":7,"sessionId":"s","cwd":"/w","procStart":"1234"}"#);
/// assert_eq!(entry.map(|entry| (entry.pid, entry.started)), Some((7, Some(1234))));
/// ```
#[must_use]
pub fn registered(bytes: &[u8]) -> Option<Registered> {
    let file: Value = serde_json::from_slice(bytes).ok()?;
    let pid = u32::try_from(file.get("pid")?.as_u64()?).ok().filter(|&pid| pid > 0)?;
    let session = file.get("sessionId")?.as_str()?.to_owned();
    // A number in some versions, its digits in others.
    let started = file.get("procStart").and_then(|start| start.as_u64().or_else(|| start.as_str()?.parse().ok()));
    Some(Registered { pid, session, started })
}

/// Whether a name in the registry's folder is an entry: `<pid>.json`, and not the key file beside it.
#[must_use]
pub fn is_entry(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_a_process_and_a_session() {
        for (file, started) in [
            (r#"{"pid":7,"sessionId":"s","procStart":99,"version":"2.1.332","kind":"x"}"#, Some(99)),
            (r#"{"pid":7,"sessionId":"s","procStart":"99"}"#, Some(99)),
            (r#"{"pid":7,"sessionId":"s","procStart":"yesterday"}"#, None),
            (r#"{"pid":7,"sessionId":"s"}"#, None),
        ] {
            assert_eq!(
                registered(file.as_bytes()),
                Some(Registered { pid: 7, session: "s".into(), started }),
                "{file}"
            );
        }
        for file in [
            "",
            "{",
            r#"{"pid":7}"#,
            r#"{"pid":0,"sessionId":"s"}"#,
            r#"{"pid":-1,"sessionId":"s"}"#,
            r#"{"pid":"7","sessionId":"s"}"#,
        ] {
            assert_eq!(registered(file.as_bytes()), None, "{file}");
        }
    }

    #[test]
    fn key_files_are_no_entries() {
        assert!(is_entry("123.json"));
        for name in ["123.ab12.key", ".json", "x.json", "123.json.tmp"] {
            assert!(!is_entry(name), "{name}");
        }
    }
}
