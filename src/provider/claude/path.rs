//! Where Claude Code keeps a session: texts of paths, nothing else.
//!
//! Observed on 2.1.332 (the slug rule reproduced all 43 observed names). Paths are literal: no `~`, no trimming. What is
//! relative is relative to the working directory, and a `..` that climbs out of a relative text is left to the system, as
//! the CLI leaves it.

use std::fmt::Write as _;

use unicode_normalization::UnicodeNormalization;

use crate::provider::rule::{ConfigDir, Place};

/// How many UTF-16 units of a slug are kept as they are.
const SLUG_UNITS_MAX: usize = 200;

/// The name of the folder that holds the sessions of a working directory, given its physical path.
///
/// Each UTF-16 unit that is no ASCII letter or digit becomes `-`. Of a name longer than 200 units the first 200 are kept,
/// and a hash of the whole path follows. Different paths can have one name: `/a/b-c`, `/a/b/c` and `/a/b_c` do.
///
/// ```
/// # use throughline::provider::claude::slug;
/// assert_eq!(slug("/w/sl/dot.dir"), "-w-sl-dot-dir");
/// assert_eq!(slug("/x/😀y"), "-x---y");
/// ```
#[must_use]
pub fn slug(real_path: &str) -> String {
    let units = real_path.encode_utf16().count();
    let mut slug = uncut_slug(real_path);
    slug.truncate(SLUG_UNITS_MAX);
    if units > SLUG_UNITS_MAX {
        // Writing into a string cannot fail.
        let _ = write!(slug, "-{}", base36(java_hash(real_path).unsigned_abs()));
    }
    slug
}

/// The name as older versions made it, of any length.
pub(super) fn uncut_slug(real_path: &str) -> String {
    let plain = |unit: u16| char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric).unwrap_or('-');
    real_path.encode_utf16().map(plain).collect()
}

/// The hash that Java and many scripts give a text: over its UTF-16 units, wrapping at 32 bits.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn base36(mut value: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(value % 36, 36));
        value /= 36;
        if value == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The id that the CLI understands by a text: blanks around it do not count, its letters' case does.
///
/// ```
/// # use throughline::provider::claude::session_id;
/// assert!(session_id(" 11111111-1111-4111-8111-111111111111 ").is_some());
/// assert_eq!(session_id("session1"), None);
/// ```
#[must_use]
pub fn session_id(text: &str) -> Option<&str> {
    let id = text.trim();
    let groups: Vec<&str> = id.split('-').collect();
    let fits = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    fits.then_some(id)
}

/// How the name of a session's file ends.
const EXTENSION: &[u8] = b".jsonl";

/// Whether the CLI takes a text for the path of a file and not for an id.
pub(super) fn is_path(text: &str) -> bool {
    let text = text.trim();
    text.len() >= EXTENSION.len() && text.as_bytes()[text.len() - EXTENSION.len()..].eq_ignore_ascii_case(EXTENSION)
}

/// Where the login's sessions lie: relative to the working directory, and the empty text is that directory itself. Most
/// versions compose it (NFC).
pub(super) fn root(place: &Place, composes: bool) -> String {
    let spelled = |text: &str| if composes { nfc(text) } else { text.to_owned() };
    match &place.config_dir {
        ConfigDir::Named(text) => below(&place.cwd, &spelled(text)),
        ConfigDir::Ambient { home } => below(&place.cwd, &join(&spelled(home), ".claude")),
    }
}

/// The file that says who is signed in at a named login. Beside the sessions, but under the text as it was given, not under
/// its NFC form; for the empty text it is in the home directory, which a named login does not tell.
pub(super) fn account_file(place: &Place) -> Option<String> {
    match &place.config_dir {
        ConfigDir::Named(text) if text.is_empty() => None,
        ConfigDir::Named(text) => Some(join(&below(&place.cwd, text), ".claude.json")),
        ConfigDir::Ambient { .. } => None,
    }
}

/// Whether the ambient login is asked for without a home directory.
pub(super) fn is_homeless(place: &Place) -> bool {
    matches!(&place.config_dir, ConfigDir::Ambient { home } if home.is_empty())
}

/// The file of a session in a folder.
pub(super) fn session(dir: &str, id: &str) -> String {
    join(dir, &format!("{id}.jsonl"))
}

/// `dir/name`.
pub(super) fn join(dir: &str, name: &str) -> String {
    if dir.ends_with('/') { format!("{dir}{name}") } else { format!("{dir}/{name}") }
}

/// The folder that a path's last name lies in.
pub(super) fn parent(path: &str) -> Option<&str> {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", name)) if !name.is_empty() => Some("/"),
        Some(("", _)) | None => None,
        Some((dir, _)) => Some(dir),
    }
}

fn nfc(text: &str) -> String {
    text.nfc().collect()
}

fn below(cwd: &str, text: &str) -> String {
    if text.starts_with('/') {
        return normal(text);
    }
    let relative = normal(text);
    if relative.is_empty() { normal(cwd) } else { join(cwd, &relative) }
}

/// Without `//`, `/./`, `x/../` and a `/` at the end: by text alone, as the CLI joins paths.
fn normal(text: &str) -> String {
    let absolute = text.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => match names.last() {
                Some(&last) if last != ".." => {
                    names.pop();
                }
                None if absolute => {}
                Some(_) | None => names.push(".."),
            },
            _ => names.push(name),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        root(&Place { config_dir: ConfigDir::Named(text.into()), cwd: "/w/cwd".into() }, true)
    }

    #[test]
    fn a_config_dir_is_literal_and_relative_to_the_working_directory() {
        for (text, expected) in [
            ("", "/w/cwd"),
            ("~/cfgx", "/w/cwd/~/cfgx"),
            ("relcfg", "/w/cwd/relcfg"),
            ("./relcfg", "/w/cwd/relcfg"),
            ("../up", "/w/cwd/../up"),
            ("a/../b", "/w/cwd/b"),
            ("/w/tcfg/", "/w/tcfg"),
            ("/w//tcfg", "/w/tcfg"),
            ("/w/x/../tcfg", "/w/tcfg"),
            ("/../x", "/x"),
            ("/", "/"),
            (" /w/tcfg ", "/w/cwd/ /w/tcfg "),
            ("/w/e\u{301}", "/w/\u{e9}"),
        ] {
            assert_eq!(named(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_ambient_login_is_below_the_home_directory_in_its_nfc_form() {
        let ambient = |home: &str| {
            root(&Place { config_dir: ConfigDir::Ambient { home: home.into() }, cwd: "/w/cwd".into() }, true)
        };
        assert_eq!(ambient("/w/home"), "/w/home/.claude");
        assert_eq!(ambient("/w/home/"), "/w/home/.claude");
        assert_eq!(ambient("/w/e\u{301}"), "/w/\u{e9}/.claude");
    }

    #[test]
    fn the_account_file_keeps_the_text_as_it_was_given() {
        let file = |config_dir| account_file(&Place { config_dir, cwd: "/w/cwd".into() });
        assert_eq!(file(ConfigDir::Named("/w/e\u{301}/".into())).as_deref(), Some("/w/e\u{301}/.claude.json"));
        assert_eq!(file(ConfigDir::Named("rel".into())).as_deref(), Some("/w/cwd/rel/.claude.json"));
        assert_eq!(file(ConfigDir::Named(String::new())), None);
        assert_eq!(file(ConfigDir::Ambient { home: "/w/home".into() }), None);
    }

    #[test]
    fn an_id_is_five_groups_of_hex_digits() {
        for good in [
            "11111111-1111-4111-8111-111111111111",
            "00000000-0000-0000-0000-000000000000",
            "AAAAAAAA-bbbb-9ccc-ffff-0123456789aB",
            "\t11111111-1111-4111-8111-111111111111\n",
        ] {
            assert_eq!(session_id(good), Some(good.trim()), "{good:?}");
        }
        for bad in [
            "",
            " ",
            "session1",
            "agent-x",
            "../-w-p2/11111111-1111-4111-8111-111111111111",
            "/etc/passwd",
            "11111111111141118111111111111111",
            "{11111111-1111-4111-8111-111111111111}",
            "11111111-1111-4111-8111-11111111111",
            "11111111-1111-4111-8111-11111111111g",
            "11111111-1111-4111-8111-111111111111-",
            "1111111-11111-4111-8111-111111111111",
            &"x".repeat(300),
        ] {
            assert_eq!(session_id(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn parents_end_at_the_root() {
        for (path, expected) in
            [("/a/b", Some("/a")), ("/a/b/", Some("/a")), ("/a", Some("/")), ("/", None), ("a", None), ("", None)]
        {
            assert_eq!(parent(path), expected, "{path}");
        }
    }

    #[test]
    fn the_smallest_hash_has_no_positive_counterpart_and_works() {
        assert_eq!(base36(i32::MIN.unsigned_abs()), "zik0zk");
        assert_eq!(base36(0), "0");
    }
}
