//! Who is signed in at a login: a key that stands for the account, never a mail address.
//!
//! The key is the first 16 hex digits of SHA-256 over `claude`, NUL, account uuid, NUL, organization uuid, from `oauthAccount`
//! in `.claude.json`: the key that is already in the records of those who write it today. Missing or half-written is
//! *unknown*, never "nobody".

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::id::IdentityKey;

/// The key of the account that an account file names; nothing where it does not parse or names none.
///
/// ```
/// # use throughline::provider::claude::identity;
/// let file = br#"{"oauthAccount":{"accountUuid":"a","organizationUuid":"o"}}"#;
/// assert_eq!(identity(file).map(|key| key.as_str().len()), Some(16));
/// assert_eq!(identity(br#"{"oauthAccount":{"accountUuid":"a","#), None);
/// ```
#[must_use]
pub fn identity(bytes: &[u8]) -> Option<IdentityKey> {
    let file: Value = serde_json::from_slice(bytes).ok()?;
    let account = file.get("oauthAccount")?;
    let field = |name: &str| account.get(name)?.as_str().filter(|text| !text.is_empty());
    let mut hasher = Sha256::new();
    hasher.update(b"claude\0");
    hasher.update(field("accountUuid")?);
    hasher.update(b"\0");
    hasher.update(field("organizationUuid")?);
    let mut key = String::with_capacity(16);
    for byte in hasher.finalize().iter().take(8) {
        // Writing into a string cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    IdentityKey::parse(key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_one_that_others_write() {
        // printf 'claude\0acc\0org' | sha256sum | cut -c1-16
        let file =
            br#"{"numStartups":3,"oauthAccount":{"emailAddress":"x@y","accountUuid":"acc","organizationUuid":"org"}}"#;
        assert_eq!(identity(file).as_ref().map(IdentityKey::as_str), Some("c6aecda204856579"));
    }

    #[test]
    fn a_file_that_does_not_say_is_unknown() {
        for file in [
            "",
            "{}",
            "[]",
            "{\"oauthAccount\":null}",
            "{\"oauthAccount\":{\"accountUuid\":\"a\"}}",
            "{\"oauthAccount\":{\"accountUuid\":\"\",\"organizationUuid\":\"o\"}}",
            "{\"oauthAccount\":{\"accountUuid\":1,\"organizationUuid\":\"o\"}}",
            "{\"oauthAccount\":{\"accountUuid\":\"a\",\"organizationUuid\":\"o\"}",
        ] {
            assert_eq!(identity(file.as_bytes()), None, "{file}");
        }
    }

    #[test]
    fn account_and_organisation_do_not_run_together() {
        let key = |a: &str, o: &str| {
            identity(format!(r#"{{"oauthAccount":{{"accountUuid":"{a}","organizationUuid":"{o}"}}}}"#).as_bytes())
        };
        assert_ne!(key("ab", "c"), key("a", "bc"));
        assert_ne!(key("a", "b"), key("a", "c"));
        assert_ne!(key("a", "b"), key("b", "a"));
    }
}
