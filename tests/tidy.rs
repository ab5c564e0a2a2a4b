//! Reads the source tree and checks what no compiler does: the floors, the doors, and that every file says what it is for.
//!
//! Each check is a function from a path and a text to the problems in it, and each has a canary: a wrong text that it must
//! find. A check whose canary passes unseen would pass everything.
#![expect(clippy::unwrap_used, reason = "a source tree that cannot be read stops the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up: a file imports only what stands before its own floor, or on it.
const FLOORS: &[&str] = &[
    "id", "event", "snapshot", "world", "log", "provider", "chain", "registry", "resume", "sim", "incident", "probe",
    "cli",
];

/// What a file must not import although it stands before it.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("src/provider/", "world", "provider rules are pure functions over a view"),
    ("src/provider/", "log", "provider rules know no history"),
];

/// Folders in which only [`EFFECTFUL`] files may reach a door or the log; every other file is pure and imports no effectful one.
const MIXED: &[&str] = &["src/chain/", "src/registry/", "src/resume/"];

/// The effectful files of the mixed folders, each with its reason.
const EFFECTFUL: &[(&str, &str)] = &[
    ("src/chain/actor.rs", "what a protocol runs over"),
    ("src/chain/lease.rs", "takes and gives back a lease"),
    ("src/chain/leftovers.rs", "settles and sweeps copies"),
    ("src/chain/relocate.rs", "makes a copy"),
    ("src/chain/segment.rs", "listens to a process"),
    ("src/chain/upkeep.rs", "sweeps and reconciles without a spawn"),
    ("src/chain/spawn.rs", "the act that a verdict is about"),
    ("src/chain/ledger.rs", "reads the folds that a request needs from a log"),
    ("src/chain/observe.rs", "answers questions from the real disk"),
];

/// What is pure although it belongs to an effectful floor: any file above may import it.
const PURE: &[&[&str]] = &[&["log", "Fold"]];

/// What only `src/world/` may name.
const DOORS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "env"],
    &["std", "process"],
    &["std", "net"],
    &["std", "time", "SystemTime"],
    &["std", "time", "Instant"],
    &["rustix"],
];

/// Methods and texts that are doors in disguise.
const DOOR_WORDS: &[&str] = &[
    "SystemTime",
    "Instant::",
    "\"/proc",
    ".exists()",
    ".try_exists()",
    ".canonicalize()",
    ".metadata()",
    ".symlink_metadata()",
    ".read_dir()",
    ".read_link()",
];

/// Who may name a door outside `src/world/`: a path or its beginning, the doors by how their names begin, the reason.
const DOOR_EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    (
        "src/log/sqlite/place.rs",
        &["std::fs", "std::env", "rustix", ".", "std::time::Instant", "Instant::"],
        "where a log lies: its folder, modes, file system and lock file; how long to wait for the lock",
    ),
    (
        "src/log/sqlite/gate.rs",
        &["std::fs", "std::time::Instant", "Instant::"],
        "lock files beside the log; how long to wait for them",
    ),
    (
        "src/probe/",
        &[
            "std::fs",
            "std::env",
            "std::process",
            "std::net",
            "std::time",
            "rustix",
            "Instant::",
            "SystemTime",
            "\"/proc",
            ".metadata()",
        ],
        "it makes real worlds, runs a real program in them and ends what that leaves behind",
    ),
    (
        "src/cli/installed.rs",
        &["std::fs", "rustix"],
        "the agent's program and what it said of itself; ending one that does not answer",
    ),
    ("src/main.rs", &["std::env", "std::process"], "arguments in, exit code out"),
    ("src/cli/", &["std::env", "std::process"], "arguments in, exit code out"),
    ("src/cli/", &["std::time::Instant", "Instant::"], "how long a command takes, for the person who waits"),
    ("src/cli/exchange.rs", &["std::fs"], "the file that a person named, to export to or import from"),
];

/// Who may use an unordered collection, and why nothing of its order is seen.
const UNORDERED_EXCEPTIONS: &[(&str, &str)] = &[
    ("src/log/batch.rs", "places by stream, never walked"),
    ("src/log/import.rs", "versions by stream, never walked"),
    ("src/log/sqlite/verify.rs", "memos by stream; sorted before they are walked"),
    ("src/sim/explore.rs", "moments that were met: asked for, compared as sets, never walked"),
    ("src/provider/claude/history.rs", "millions of records are looked up by key, and never walked"),
];

const LINES_MAX: usize = 500;

/// A file of the tree.
struct Source {
    /// Relative to the crate, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// The code that ships: without comments, and without the tests at the end.
    fn code(&self) -> String {
        if self.path.ends_with("/tests.rs") || self.path.contains("/tests/") {
            return String::new();
        }
        without_comments(self.shipped())
    }

    fn shipped(&self) -> &str {
        let tests = ["#[cfg(test)]\nmod ", "#[cfg(all(test"].iter().filter_map(|mark| self.text.find(mark)).min();
        &self.text[..tests.unwrap_or(self.text.len())]
    }

    /// The module that the file is: `src/a/b.rs` and `src/a/b/mod.rs` are `[a, b]`, `src/lib.rs` is `[]`.
    fn module(&self) -> Vec<String> {
        let inner = self.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        match inner {
            "lib" | "main" => Vec::new(),
            inner => inner.split('/').map(str::to_owned).collect(),
        }
    }

    /// Every path that the code names from a root (`crate`, `super`, `self`, `std`, `rustix`), use trees unfolded. Paths
    /// inside the crate are absolute, without `crate`.
    fn paths(&self) -> (BTreeSet<Vec<String>>, BTreeSet<Vec<String>>) {
        let (code, module) = (self.code(), self.module());
        let (mut inner, mut outer) = (BTreeSet::new(), BTreeSet::new());
        for (at, root) in ["crate", "super", "self", "std", "rustix"].iter().flat_map(|root| roots(&code, root)) {
            for path in unfold(&code[at..]) {
                let (dots, rest) = path.split_at(path.iter().take_while(|part| *part == "super").count());
                match root {
                    "crate" => inner.insert(rest[1..].to_vec()),
                    "super" => inner.insert([&module[..module.len().saturating_sub(dots.len())], rest].concat()),
                    "self" => inner.insert([&module[..], &rest[1..]].concat()),
                    _ => outer.insert(path),
                };
            }
        }
        (inner, outer)
    }
}

/// Where `root::` begins a path.
fn roots<'a>(code: &'a str, root: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let begins = move |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    code.match_indices(root)
        .filter(move |&(at, _)| begins(at) && code[at + root.len()..].starts_with("::"))
        .map(move |(at, _)| (at, root))
}

/// The paths of the use tree (or the plain path) at the start of `code`: `a::{b, c::{self, d}}` is `a::b`, `a::c`, `a::c::d`.
fn unfold(code: &str) -> Vec<Vec<String>> {
    fn tree(code: &str, prefix: &[String], out: &mut Vec<Vec<String>>) -> usize {
        let mut path = prefix.to_vec();
        let mut at = 0;
        loop {
            at += code[at..].len() - code[at..].trim_start().len();
            let name = code[at..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(code.len() - at);
            if code[at..].starts_with('{') {
                at += 1;
                loop {
                    at += tree(&code[at..], &path, out);
                    at += code[at..].len() - code[at..].trim_start().len();
                    match code[at..].chars().next() {
                        Some(',') => at += 1,
                        Some('}') => return at + 1,
                        // No use tree after all.
                        _ => return at,
                    }
                }
            }
            let part = &code[at..at + name];
            at += name;
            if !part.is_empty() && (part != "self" || path.is_empty()) {
                path.push(part.to_owned());
            }
            if part.is_empty() || !code[at..].starts_with("::") {
                break;
            }
            at += 2;
        }
        if let Some(rest) = code[at..].strip_prefix(" as ") {
            at += 4 + rest.find([',', ';', '}']).unwrap_or(0);
        } else if code[at..].starts_with('*') {
            at += 1;
        }
        if path.len() > prefix.len() || !prefix.is_empty() {
            out.push(path);
        }
        at
    }
    let mut out = Vec::new();
    tree(code, &[], &mut out);
    out
}

/// The text with its comments blanked; texts in quotes are kept, whatever they hold.
fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(next) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            rest = &rest[end..];
            continue;
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            continue;
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            let hashes = rest[1..].chars().take_while(|&c| c == '#').count();
            match rest[1 + hashes..].starts_with('"') {
                true => {
                    let close = format!("\"{}", "#".repeat(hashes));
                    let from = 2 + hashes;
                    rest[from..].find(&close).map_or(rest.len(), |end| from + end + close.len())
                }
                false => 1,
            }
        } else if next == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| match (escaped, c) {
                (true, _) => {
                    escaped = false;
                    false
                }
                (false, '\\') => {
                    escaped = true;
                    false
                }
                (false, c) => c == '"',
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("'/'") {
            3
        } else {
            next.len_utf8()
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| *floor == name)
}

fn is_effectful(path: &str) -> bool {
    EFFECTFUL.iter().any(|(file, _)| *file == path)
}

fn imports_only_what_stands_before_it(file: &Source) -> Vec<String> {
    let module = file.module();
    let Some(own) = module.first() else { return Vec::new() };
    let Some(height) = floor(own) else { return vec![format!("{own:?} is on no floor; give it a place in FLOORS")] };
    let mut problems = Vec::new();
    for path in file.paths().0 {
        let Some(name) = path.first() else { continue };
        if floor(name).is_some_and(|other| other > height) {
            problems.push(format!("imports crate::{} from a floor above its own", path.join("::")));
        }
        for (from, to, why) in FORBIDDEN {
            if file.path.starts_with(from) && name == to {
                problems.push(format!("imports crate::{}: {why}", path.join("::")));
            }
        }
        let is_mixed = MIXED.iter().any(|folder| file.path.starts_with(folder));
        if is_mixed && !is_effectful(&file.path) {
            let target = format!("src/{}", path.join("/"));
            let reaches = EFFECTFUL.iter().any(|(other, _)| {
                let other = other.trim_end_matches(".rs");
                target == other || target.starts_with(&format!("{other}/"))
            });
            let is_door = (name == "world" || name == "log") && !PURE.iter().any(|pure| path == *pure);
            if is_door || reaches {
                problems.push(format!("is pure and imports crate::{}", path.join("::")));
            }
        }
    }
    problems
}

/// Between the modules of one folder, at every depth. What a folder's own `mod.rs` gathers does not count.
fn has_no_cycles(files: &[Source]) -> Vec<String> {
    let modules: Vec<(Vec<String>, BTreeSet<Vec<String>>)> =
        files.iter().map(|file| (file.module(), file.paths().0)).collect();
    let known: BTreeSet<&[String]> = modules.iter().flat_map(|(own, _)| (1..=own.len()).map(|n| &own[..n])).collect();
    let mut edges: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
    for (own, paths) in &modules {
        for path in paths {
            let shared = own.iter().zip(path).take_while(|(a, b)| a == b).count();
            if shared < own.len() && shared < path.len() && known.contains(&path[..=shared]) {
                edges.entry(&own[..=shared]).or_default().insert(&path[..=shared]);
            }
        }
    }
    let reaches_itself = |start: &[String]| {
        let mut todo: Vec<&[String]> = edges.get(start).into_iter().flatten().copied().collect();
        let mut met = BTreeSet::new();
        while let Some(node) = todo.pop() {
            if met.insert(node) {
                todo.extend(edges.get(node).into_iter().flatten().copied());
            }
        }
        met.contains(start)
    };
    let in_a_cycle = edges.keys().filter(|node| reaches_itself(node)).map(|node| node.join("::"));
    in_a_cycle.map(|node| format!("{node} is in a cycle")).collect()
}

fn names_doors_only_in_the_world(file: &Source) -> Vec<String> {
    if file.path.starts_with("src/world/") {
        return Vec::new();
    }
    let (code, paths) = (file.code(), file.paths().1);
    let named = DOORS.iter().filter(|door| {
        paths.iter().any(|path| path.iter().map(String::as_str).take(door.len()).eq(door.iter().copied()))
    });
    let doors = named.map(|door| door.join("::"));
    let words = DOOR_WORDS.iter().filter(|word| code.contains(**word)).map(|word| (*word).to_owned());
    let is_allowed = |door: &str| {
        DOOR_EXCEPTIONS.iter().any(|(path, doors, _)| {
            file.path.starts_with(path) && doors.iter().any(|allowed| door.starts_with(allowed))
        })
    };
    doors.chain(words).filter(|door| !is_allowed(door)).map(|door| format!("names {door}")).collect()
}

fn opens_with_what_it_is_for(file: &Source) -> Vec<String> {
    let says = file.text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 10);
    if says { Vec::new() } else { vec!["does not open with `//!` and what it is for".into()] }
}

fn is_short_enough(file: &Source) -> Vec<String> {
    let lines = file.shipped().lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    vec![format!("has {lines} lines before its tests; split it along a seam that has a name")]
}

fn leaves_nothing_behind(file: &Source) -> Vec<String> {
    // Put together here, so that this file does not find itself.
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let words = [["TO", "DO"], ["FIX", "ME"], ["X", "XX"]].map(|parts| parts.concat());
    let homes = ["home", "root", "Users"].map(|name| format!("/{name}/"));
    let is_word = |at: usize, word: &str| {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !letter(file.text[..at].chars().next_back()) && !letter(file.text[at + word.len()..].chars().next())
    };
    // `/w/home/` is somewhere in a test's world, and nobody is called `me` or has a name of one letter.
    let is_home = |at: usize, home: &str| {
        let name = file.text[at + home.len()..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        !file.text[..at].ends_with(char::is_alphanumeric) && name != "me" && name.len() != 1
    };
    let found = macros.iter().filter(|text| file.text.contains(text.as_str()));
    let lived_in = homes.iter().filter(|home| file.text.match_indices(home.as_str()).any(|(at, _)| is_home(at, home)));
    let spelled = words.iter().filter(|word| file.text.match_indices(word.as_str()).any(|(at, _)| is_word(at, word)));
    found.chain(lived_in).chain(spelled).map(|text| format!("holds {text:?}")).collect()
}

fn keeps_its_order(file: &Source) -> Vec<String> {
    let code = file.code();
    let is_excepted = UNORDERED_EXCEPTIONS.iter().any(|(path, _)| *path == file.path);
    let found = ["HashMap", "HashSet"].into_iter().filter(|name| !is_excepted && code.contains(name));
    found.map(|name| format!("uses {name}: its order differs from run to run")).collect()
}

fn gives_a_reason_for_each_dependency(manifest: &Source) -> Vec<String> {
    let (mut problems, mut inside, mut before) = (Vec::new(), false, "");
    for line in manifest.text.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
            if line.contains("dependencies.") {
                problems.push(format!("{line}: write it as one line in its table"));
            }
        } else if inside && line.contains('=') && !before.starts_with("# ") {
            problems.push(format!("{line}: no comment above says why"));
        }
        before = line;
    }
    problems
}

/// With `autotests = false` a test file that nobody names is never run.
fn runs_every_test_file(manifest: &Source, tests: &[Source]) -> Vec<String> {
    let is_run = |stem: &str| {
        let is_target = manifest.text.contains(&format!("[[test]]\nname = \"{stem}\""));
        is_target
            || manifest.text.contains(&format!("path = \"tests/{stem}.rs\""))
            || tests.iter().any(|other| {
                other
                    .text
                    .lines()
                    .any(|line| line == format!("mod {stem};") || line.contains(&format!("\"{stem}.rs\"]")))
            })
    };
    let stems = tests.iter().filter_map(|file| file.path.strip_prefix("tests/")?.strip_suffix(".rs"));
    stems
        .filter(|stem| !stem.contains('/') && !is_run(stem))
        .map(|stem| format!("tests/{stem}.rs is never run"))
        .collect()
}

/// The Rust files below a folder of the crate, by path.
fn rust_files(folder: &str) -> Vec<Source> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, out),
                false if path.extension().is_some_and(|extension| extension == "rs") => out.push(path),
                false => {}
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(&root.join(folder), &mut paths);
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
    paths.iter().map(|path| Source { path: name(path), text: fs::read_to_string(path).unwrap() }).collect()
}

fn rust_files_of(folders: &[&str]) -> Vec<Source> {
    folders.iter().flat_map(|folder| rust_files(folder)).collect()
}

fn manifest() -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    Source { path: "Cargo.toml".into(), text: fs::read_to_string(path).unwrap() }
}

type Check = fn(&Source) -> Vec<String>;

#[track_caller]
fn assert_tidy(files: &[Source], check: Check) {
    assert!(!files.is_empty(), "nothing was checked");
    let problems: Vec<_> = files
        .iter()
        .flat_map(|file| check(file).into_iter().map(|problem| format!("{} {problem}", file.path)))
        .collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// The wrong texts are found, one problem each at least; the right ones are left alone.
#[track_caller]
fn canary(check: Check, wrong: &[(&str, &str)], right: &[(&str, &str)]) {
    for (path, text) in wrong {
        assert!(!check(&Source::new(path, text)).is_empty(), "not seen: {path}: {text}");
    }
    for (path, text) in right {
        assert_eq!(check(&Source::new(path, text)), [""; 0], "{path}: {text}");
    }
}

#[test]
fn a_file_imports_only_what_stands_before_it() {
    canary(
        imports_only_what_stands_before_it,
        &[
            ("src/id.rs", "use crate::event::Event;"),
            ("src/snapshot.rs", "use crate::{id::Digest, world::{files::{self, Dir}, clock}};"),
            ("src/world/files.rs", "fn f() -> crate::log::Log {}"),
            ("src/world/files.rs", "use super::super::log::Log;"),
            ("src/event/body.rs", "use super::{super::chain::State};"),
            ("src/provider/claude/scan.rs", "use crate::world::files;"),
            ("src/provider/mod.rs", "use crate::log::Log;"),
            ("src/chain/gate.rs", "use crate::world::clock;"),
            ("src/chain/gate.rs", "use crate::chain::observe::RealView;"),
            ("src/chain/gate.rs", "use crate::log::{Fold, Log};"),
            ("src/chain/gate.rs", "use crate::log;"),
            ("src/chain/gate.rs", "use super::observe::RealView;"),
            ("src/resume/plan.rs", "let now = crate::world::clock::now_ms();"),
            ("src/nowhere.rs", ""),
        ],
        &[
            ("src/chain/observe.rs", "use crate::world::clock; use crate::snapshot::View;"),
            ("src/chain/fold.rs", "use crate::log::Fold;"),
            ("src/chain/gate.rs", "use crate::{event::Event, id, provider::Finding}; use super::state::State;"),
            ("src/world/files.rs", "//! See crate::log::Log.\nuse crate::snapshot::NodeKind; // crate::chain"),
            ("src/id.rs", "struct S;\n#[cfg(test)]\nmod tests {\n    use crate::event::Event;\n}"),
            ("src/lib.rs", "pub mod cli;"),
        ],
    );
    assert_tidy(&rust_files("src"), imports_only_what_stands_before_it);
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let source = |(path, text): &(&str, &str)| Source::new(path, text);
    let cycle = [
        ("src/log/a.rs", "use super::b::B;"),
        ("src/log/b/mod.rs", "use crate::log::{c::C, d};"),
        ("src/log/c.rs", "fn f(_: &crate::log::a::A) {}"),
        ("src/log/d.rs", ""),
    ];
    assert_eq!(has_no_cycles(&cycle.each_ref().map(source)).len(), 3);
    let line = [
        ("src/log/mod.rs", "pub use self::a::A;"),
        ("src/log/a.rs", "use crate::log::{Log, b::B};"),
        ("src/log/b.rs", "use super::Log;"),
    ];
    assert_eq!(has_no_cycles(&line.each_ref().map(source)), [""; 0]);
    assert_eq!(has_no_cycles(&rust_files("src")), [""; 0]);
}

#[test]
fn the_machine_is_reached_only_through_the_world() {
    canary(
        names_doors_only_in_the_world,
        &[
            ("src/chain/a.rs", "use std::fs;"),
            ("src/chain/a.rs", "use std::{collections::BTreeMap, env::{self, VarError}};"),
            ("src/chain/a.rs", "let id = std::process::id();"),
            ("src/chain/a.rs", "use std::time::{Duration, Instant};"),
            ("src/chain/a.rs", "let now = SystemTime::now();"),
            ("src/chain/a.rs", "if path.exists() {}"),
            ("src/chain/a.rs", r#"let table = "/proc/self";"#),
            ("src/chain/a.rs", "rustix::fs::access(path, flags)"),
            ("src/cli/a.rs", "use std::fs::File;"),
        ],
        &[
            ("src/world/a.rs", "use std::fs; use std::time::Instant;"),
            ("src/chain/a.rs", "//! Never std::fs.\nuse std::{fmt, time::Duration}; // std::env"),
            ("src/chain/a.rs", "#[cfg(test)]\nmod tests {\n    use std::fs;\n}"),
            ("src/cli/args.rs", "let args = std::env::args_os();"),
        ],
    );
    assert_tidy(&rust_files("src"), names_doors_only_in_the_world);
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    canary(
        opens_with_what_it_is_for,
        &[
            ("src/a.rs", ""),
            ("src/a.rs", "use std::fmt;\n//! Late."),
            ("src/a.rs", "//!\nfn f() {}"),
            ("src/a.rs", "// A comment."),
        ],
        &[("src/a.rs", "//! Names of things.\n")],
    );
    assert_tidy(&rust_files_of(&["src", "tests"]), opens_with_what_it_is_for);
}

#[test]
fn no_file_is_longer_than_its_reader_likes() {
    let (long, tested) = ("//! x\n".repeat(LINES_MAX + 1), "//! x\n".repeat(LINES_MAX));
    let tested = format!("{tested}#[cfg(test)]\nmod tests {{\n{}}}", "\n".repeat(LINES_MAX));
    canary(is_short_enough, &[("src/a.rs", &long)], &[("src/a.rs", &tested)]);
    assert_tidy(&rust_files("src"), is_short_enough);
}

#[test]
fn nothing_unfinished_and_nobodys_home_is_left_behind() {
    let wrong = [
        ["fn f() { to", "do!() }"],
        ["db", "g!(x);"],
        ["// FIX", "ME later"],
        ["// TO", "DO: x"],
        ["// X", "XX"],
        ["\"/ho", "me/ann/x\""],
    ]
    .map(|parts| ("src/a.rs", parts.concat()));
    canary(
        leaves_nothing_behind,
        &wrong.each_ref().map(|(path, text)| (*path, text.as_str())),
        &[("src/a.rs", "//! A home, a todo list: /w/home/x, /home/u/x, /home/me/x.\nconst TODOS: u8 = 0;")],
    );
    assert_tidy(&rust_files_of(&["src", "tests"]), leaves_nothing_behind);
}

#[test]
fn nothing_depends_on_the_order_of_a_hash_map() {
    canary(
        keeps_its_order,
        &[("src/a.rs", "use std::collections::HashMap;"), ("src/a.rs", "let x: std::collections::HashSet<u8>;")],
        &[
            ("src/a.rs", "//! No HashMap.\nuse std::collections::BTreeMap;"),
            ("src/a.rs", "#[cfg(test)]\nmod tests {\n    use std::collections::HashSet;\n}"),
        ],
    );
    assert_tidy(&rust_files("src"), keeps_its_order);
}

#[test]
fn every_dependency_says_why_it_is_there() {
    canary(
        gives_a_reason_for_each_dependency,
        &[
            ("Cargo.toml", "[dependencies]\nserde = \"1\""),
            ("Cargo.toml", "[dev-dependencies]\n# Laws.\nproptest = \"1\"\ninsta = \"1\""),
            ("Cargo.toml", "# Why.\n[dependencies.serde]\nversion = \"1\""),
        ],
        &[("Cargo.toml", "[package]\nname = \"x\"\n[dependencies]\n# Values.\nserde = \"1\"\n")],
    );
    assert_tidy(&[manifest()], gives_a_reason_for_each_dependency);
}

#[test]
fn every_test_file_is_run() {
    let given =
        |text: &str| runs_every_test_file(&Source::new("Cargo.toml", text), &[Source::new("tests/lost.rs", "")]);
    assert_eq!(given("[[test]]\nname = \"other\"").len(), 1);
    assert_eq!(given("[[test]]\nname = \"lost\""), [""; 0]);
    assert_eq!(runs_every_test_file(&manifest(), &rust_files("tests")), [""; 0]);
}

#[test]
fn comments_are_left_out_and_quoted_slashes_are_not_comments() {
    for (text, code) in [
        ("a // b\nc", "a \nc"),
        ("a /* b\n */ c", "a  c"),
        (r#"let x = "http://y"; // z"#, r#"let x = "http://y"; "#),
        (r##"r#"a " // b"# // c"##, r##"r#"a " // b"# "##),
        (r#""\" // in" // out"#, r#""\" // in" "#),
        ("'\"' // x", "'\"' "),
        ("fn f<'a>(x: &'a str) {} // x", "fn f<'a>(x: &'a str) {} "),
    ] {
        assert_eq!(without_comments(text), code);
    }
}
