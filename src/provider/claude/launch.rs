//! How Claude Code is started.

use std::collections::BTreeMap;

use crate::provider::rule::{ConfigDir, Launch, LaunchAsk, Place};

/// The program.
pub const PROGRAM: &str = "claude";
/// The variable that names the login's folder; set even to the empty text it is not the same as not set.
pub const CONFIG_DIR_VARIABLE: &str = "CLAUDE_CONFIG_DIR";

/// The flag that resumes a session.
pub(super) const RESUME: &str = "--resume";
const FORK: &str = "--fork-session";
const CHOSEN: &str = "--session-id";

/// The process to start. A plain resume keeps its id; a new session and a fork take one of our choice (`--session-id`).
///
/// A path is only ever forked: a plain resume of a path appends beside the file under another name (observed on 2.1.332).
pub(super) fn launch(place: &Place, ask: &LaunchAsk<'_>) -> Launch {
    let (args, mints): (Vec<&str>, bool) = match *ask {
        LaunchAsk::Fresh => (vec![], true),
        LaunchAsk::InPlace { session, fork: false } => (vec![RESUME, session], false),
        LaunchAsk::InPlace { session, fork: true } => (vec![RESUME, session, FORK], true),
        LaunchAsk::ByPath { path } => (vec![RESUME, path, FORK], true),
    };
    let config_dir = match &place.config_dir {
        ConfigDir::Named(text) => Some(text.clone()),
        ConfigDir::Ambient { .. } => None,
    };
    Launch {
        argv: std::iter::once(PROGRAM).chain(args).map(str::to_owned).collect(),
        cwd: place.cwd.clone(),
        env: BTreeMap::from([(CONFIG_DIR_VARIABLE.to_owned(), config_dir)]),
        mints,
    }
}

/// The arguments that give a new session, or a fork, this id.
pub(super) fn minting(id: &str) -> Vec<String> {
    vec![CHOSEN.to_owned(), id.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launch_is_its_command_line() {
        let place = |config_dir| Place { config_dir, cwd: "/w/p1".into() };
        let named = place(ConfigDir::Named(String::new()));
        for (ask, argv, mints) in [
            (LaunchAsk::Fresh, "claude", true),
            (LaunchAsk::InPlace { session: "S", fork: false }, "claude --resume S", false),
            (LaunchAsk::InPlace { session: "S", fork: true }, "claude --resume S --fork-session", true),
            (LaunchAsk::ByPath { path: "/x/y.jsonl" }, "claude --resume /x/y.jsonl --fork-session", true),
        ] {
            let launch = launch(&named, &ask);
            assert_eq!((launch.argv.join(" ").as_str(), launch.mints), (argv, mints));
            assert_eq!(launch.env, BTreeMap::from([(CONFIG_DIR_VARIABLE.into(), Some(String::new()))]));
        }
        let ambient = launch(&place(ConfigDir::Ambient { home: "/h".into() }), &LaunchAsk::Fresh);
        assert_eq!(ambient.env, BTreeMap::from([(CONFIG_DIR_VARIABLE.into(), None)]));
        assert_eq!(ambient.cwd, "/w/p1");
    }
}
