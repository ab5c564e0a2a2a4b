//! The real view on a real disk and real processes: each question of a snapshot, and what must not block, lie or panic.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its world up may stop")]
#![expect(clippy::panic, reason = "so does one whose world answers something else")]

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, inotify, mkfifoat};
use tempfile::TempDir;
use throughline::chain::observe::RealView;
use throughline::event::Holder;
use throughline::id::{Digest, IdentityKey};
use throughline::provider::source::{CONTAINS_BYTES_MAX, NOT_EXAMINED};
use throughline::snapshot::{
    Answer, Ask as _, Depth, Format, Life, Marker, Node, NodeKind, Order, Owner, Process, Question, Recorder, Seen,
    View as _,
};
use throughline::world::{clock, files, process};

const DAY_MS: i64 = 86_400_000;

/// A temporary directory and a view of the machine around it.
struct World {
    dir: TempDir,
    view: RealView,
    own: Holder,
}

impl World {
    fn new() -> Self {
        let own = process::own().unwrap();
        Self { dir: TempDir::new().unwrap(), view: RealView::new(clock::now_ms(), own.clone()), own }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn at(&self, name: &str) -> String {
        self.root().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::create_dir_all(self.root().join(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), bytes).unwrap();
        self.at(name)
    }

    fn dir(&self, name: &str) -> String {
        fs::create_dir_all(self.at(name)).unwrap();
        self.at(name)
    }

    fn link(&self, target: &str, name: &str) -> String {
        symlink(target, self.at(name)).unwrap();
        self.at(name)
    }

    fn fifo(&self, name: &str) -> String {
        mkfifoat(CWD, self.at(name), Mode::from_raw_mode(0o600)).unwrap();
        self.at(name)
    }

    /// A process as this one would name it in a lease.
    fn process(&self, pid: u32, started: Option<u64>) -> Process {
        Process {
            pid,
            started,
            host: Some(self.own.host.clone()),
            boot: Some(self.own.boot.clone()),
            pid_ns: Some(self.own.pid_ns),
        }
    }
}

fn names_of(seen: Seen<Vec<throughline::snapshot::Entry>>) -> Vec<String> {
    match seen {
        Seen::Is(entries) => entries.into_iter().map(|entry| entry.name).collect(),
        Seen::Absent | Seen::Unreadable(_) => panic!("no listing: {seen:?}"),
    }
}

#[track_caller]
fn assert_unreadable<T: std::fmt::Debug>(seen: &Seen<T>, why: &str) {
    match seen {
        Seen::Unreadable(reason) if reason.contains(why) => {}
        Seen::Is(_) | Seen::Absent | Seen::Unreadable(_) => panic!("not unreadable with {why:?}: {seen:?}"),
    }
}

/// Every question that opens the file at `path`, with its answer as text.
fn readings(view: &mut RealView, path: &str) -> Vec<(Question, String)> {
    let path = path.to_owned();
    let questions = [
        Question::Transcript { path: path.clone(), format: Format::Claude, depth: Depth::Windows },
        Question::Contains { path: path.clone(), patterns: vec!["x".into()], depth: Depth::Whole },
        Question::Tail { path: path.clone(), upto: 1 },
        Question::Identity { path: path.clone(), format: Format::Claude },
        Question::Setting { path: path.clone(), key: "x".into() },
        Question::Marker { path },
    ];
    questions.map(|question| (question.clone(), format!("{:?}", view.ask(&question).unwrap()))).to_vec()
}

mod places {
    use super::*;

    #[test]
    fn a_node_is_what_lies_there_and_a_link_is_followed_only_when_asked() {
        let mut world = World::new();
        let (file, dir, fifo) = (world.file("f", "12345"), world.dir("d"), world.fifo("p"));
        let (link, dangling) = (world.link(&file, "l"), world.link("nowhere", "dangling"));
        let is = |kind, bytes| Seen::Is(Node { kind, bytes });
        let missing = world.at("missing");
        for (path, followed, itself) in [
            (&file, is(NodeKind::File, 5), is(NodeKind::File, 5)),
            (&dir, is(NodeKind::Dir, 0), is(NodeKind::Dir, 0)),
            (&fifo, is(NodeKind::Special, 0), is(NodeKind::Special, 0)),
            (&link, is(NodeKind::File, 5), is(NodeKind::Link, 0)),
            (&dangling, Seen::Absent, is(NodeKind::Link, 0)),
            (&missing, Seen::Absent, Seen::Absent),
        ] {
            assert_eq!(world.view.node(path, true).unwrap(), followed, "{path} followed");
            assert_eq!(world.view.node(path, false).unwrap(), itself, "{path} itself");
        }
    }

    #[test]
    fn what_every_program_calls_missing_is_absent_for_every_question() {
        let mut world = World::new();
        world.file("plain", "x");
        world.link("loop-b", "loop-a");
        world.link("loop-a", "loop-b");
        world.link("nowhere", "dangling");
        for path in ["missing", "no/such/dir", "plain/below-a-file", "loop-a", "dangling", "loop-a/below"] {
            let path = world.at(path);
            for (question, answer) in readings(&mut world.view, &path) {
                assert!(answer.contains("Absent"), "{question:?}: {answer}");
            }
            assert_eq!(world.view.node(&path, true).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.real_path(&path).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.same_file(&path, "/").unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.same_file("/", &path).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.names(&path, "", "", Order::Name).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.holders(&path, "x").unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.writable(&path).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.age_days(&path).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.owners(&path, "x", Format::Claude).unwrap(), Seen::Absent, "{path}");
            assert_eq!(world.view.worktrees(&path).unwrap(), Seen::Absent, "{path}");
        }
    }

    #[test]
    fn a_directory_in_a_files_place_is_unreadable_and_never_absent() {
        let mut world = World::new();
        let dir = world.dir("session.jsonl");
        for (question, answer) in readings(&mut world.view, &dir) {
            let why = if matches!(question, Question::Setting { .. }) { "no settings file" } else { "directory" };
            assert!(answer.contains("Unreadable") && answer.contains(why), "{question:?}: {answer}");
        }
    }

    #[test]
    fn a_fifo_or_a_device_neither_blocks_nor_answers() {
        let mut world = World::new();
        let fifo = world.fifo("session.jsonl");
        let link = world.link(&fifo, "link");
        for path in [fifo.as_str(), &link, "/dev/zero", "/dev/null"] {
            for (question, answer) in readings(&mut world.view, path) {
                assert!(answer.contains("Unreadable") && answer.contains("FIFO"), "{question:?}: {answer}");
            }
        }
    }

    #[test]
    fn a_fifo_is_not_even_opened_so_that_nobody_at_its_other_end_is_woken() {
        let mut world = World::new();
        let (file, fifo) = (world.file("plain", "x"), world.fifo("session.jsonl"));
        let opened = |path: &str, view: &mut RealView| {
            let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
            inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
            readings(view, path);
            rustix::io::read(&watch, &mut [0_u8; 1024]).is_ok()
        };
        assert!(opened(&file, &mut world.view), "the watch works");
        assert!(!opened(&fifo, &mut world.view));
    }

    #[test]
    fn a_text_that_cannot_be_a_path_is_unreadable() {
        let mut world = World::new();
        assert_unreadable(&world.view.node("a\0b", true).unwrap(), "look at");
        assert_unreadable(&world.view.names("a\0b", "", "", Order::Name).unwrap(), "open");
        assert_unreadable(&world.view.node(&world.at(&"x".repeat(300)), true).unwrap(), "look at");
    }

    #[test]
    fn a_real_path_resolves_links_and_dots_and_must_be_utf8() {
        let mut world = World::new();
        let dir = world.dir("d/sub");
        let link = world.link(&dir, "l");
        assert_eq!(world.view.real_path(&format!("{link}/../sub/.")).unwrap(), Seen::Is(dir));
        let odd = world.root().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
        fs::create_dir(&odd).unwrap();
        symlink(&odd, world.at("to-odd")).unwrap();
        assert_unreadable(&world.view.real_path(&world.at("to-odd")).unwrap(), "not valid UTF-8");
    }

    #[test]
    fn two_paths_are_the_same_by_device_and_inode() {
        let mut world = World::new();
        let (a, b) = (world.dir("a"), world.dir("b"));
        let link = world.link(&a, "l");
        assert_eq!(world.view.same_file(&a, &link).unwrap(), Seen::Is(true));
        assert_eq!(world.view.same_file(&a, &b).unwrap(), Seen::Is(false));
    }

    #[test]
    fn an_age_is_in_whole_days_and_never_below_zero() {
        let mut world = World::new();
        let path = world.file("f", "");
        let now = clock::now_ms();
        for (before_ms, days) in [(0, 0), (DAY_MS - 1, 0), (DAY_MS, 1), (31 * DAY_MS + 5, 31), (-3 * DAY_MS, 0)] {
            let modified = SystemTime::UNIX_EPOCH + Duration::from_millis((now - before_ms).try_into().unwrap());
            fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
            let mut view = RealView::new(now, world.own.clone());
            assert_eq!(view.age_days(&path).unwrap(), Seen::Is(days), "{before_ms} ms ago");
        }
        world.view = RealView::new(now, world.own.clone());
        assert_eq!(world.view.age_days(&world.dir("d")).unwrap(), Seen::Is(0));
    }
}

mod listings {
    use super::*;

    #[test]
    fn names_come_in_the_order_that_was_asked_for_with_the_name_as_tie_break() {
        let mut world = World::new();
        let dir = world.dir("d");
        for (name, bytes, age) in [("c.jsonl", 2, 30), ("a.jsonl", 2, 10), ("b.jsonl", 9, 30), ("a.json", 99, 0)] {
            let path = world.file(&format!("d/{name}"), vec![b'x'; bytes]);
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - age);
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
        world.dir("d/dir.jsonl");
        world.link("nowhere", "d/link.jsonl");
        let mut list = |prefix, suffix, order| names_of(world.view.names(&dir, prefix, suffix, order).unwrap());
        let all = ["a.jsonl", "b.jsonl", "c.jsonl", "dir.jsonl", "link.jsonl"];
        assert_eq!(list("", ".jsonl", Order::Name), all);
        assert_eq!(list("", ".jsonl", Order::Largest), ["b.jsonl", "a.jsonl", "c.jsonl", "dir.jsonl", "link.jsonl"]);
        assert_eq!(list("", ".jsonl", Order::Newest)[2..], ["a.jsonl", "b.jsonl", "c.jsonl"]);
        assert_eq!(list("a.", "", Order::Name), ["a.json", "a.jsonl"]);
        // A marker without a token: prefix and suffix share their dot.
        assert_eq!(list("a.", ".json", Order::Name), ["a.json"]);
        assert_eq!(list("zzz", "", Order::Name), [""; 0]);
        let Seen::Is(entries) = world.view.names(&dir, "", ".jsonl", Order::Name).unwrap() else {
            panic!("listed before")
        };
        let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.bytes)).collect();
        let file = |bytes| (NodeKind::File, bytes);
        assert_eq!(kinds, [file(2), file(9), file(2), (NodeKind::Dir, 0), (NodeKind::Link, 0)]);
    }

    #[test]
    fn a_name_that_is_not_utf8_is_passed_over_and_hides_nothing() {
        let mut world = World::new();
        let dir = world.dir("projects");
        for name in [b"\xff\xfe".as_slice(), b"ok"] {
            let sub = Path::new(&dir).join(std::ffi::OsStr::from_bytes(name));
            fs::create_dir(&sub).unwrap();
            fs::write(sub.join("s.jsonl"), "x").unwrap();
        }
        assert_eq!(names_of(world.view.names(&dir, "", "", Order::Name).unwrap()), ["ok"]);
        assert_eq!(names_of(world.view.holders(&dir, "s.jsonl").unwrap()), ["ok"]);
        let open = files::Dir::open(Path::new(&dir)).unwrap();
        for _ in 0..2 {
            let listing = open.names("", "").unwrap();
            assert_eq!((listing.names.len(), listing.not_utf8), (1, 1));
        }
    }

    #[test]
    fn holders_are_real_sub_directories_with_an_entry_of_that_name_whatever_it_is() {
        let mut world = World::new();
        let dir = world.dir("projects");
        world.file("projects/b/s.jsonl", "12");
        world.file("projects/a/s.jsonl", "1");
        world.file("projects/other/t.jsonl", "1");
        world.dir("projects/dir/s.jsonl");
        world.dir("projects/link");
        world.link("nowhere", "projects/link/s.jsonl");
        world.file("projects/plain", "1");
        world.link(&world.at("projects/b"), "projects/linked");
        let Seen::Is(found) = world.view.holders(&dir, "s.jsonl").unwrap() else { panic!("the directory is there") };
        let found: Vec<_> = found.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.bytes)).collect();
        let (file, other) = (NodeKind::File, NodeKind::Dir);
        assert_eq!(found, [("a", file, 1), ("b", file, 2), ("dir", other, 0), ("link", NodeKind::Link, 0)]);
    }

    #[test]
    fn ten_thousand_names_are_listed_and_ten_thousand_projects_searched() {
        let mut world = World::new();
        // In memory where there is such a place: a busy disk takes a while to make 20,000 names.
        if let Ok(dir) = TempDir::new_in("/dev/shm") {
            world.dir = dir;
        }
        let (files, projects) = (world.dir("files"), world.dir("projects"));
        for number in 0..10_000 {
            fs::write(format!("{files}/{number:05}.jsonl"), "").unwrap();
            fs::create_dir(format!("{projects}/{number:05}")).unwrap();
        }
        for number in [7, 9_999] {
            fs::write(format!("{projects}/{number:05}/s.jsonl"), "x").unwrap();
        }
        let names = names_of(world.view.names(&files, "", ".jsonl", Order::Newest).unwrap());
        assert_eq!(names.len(), 10_000);
        assert_eq!(names_of(world.view.names(&files, "0004", "", Order::Name).unwrap()).len(), 10);
        assert_eq!(names_of(world.view.holders(&projects, "s.jsonl").unwrap()), ["00007", "09999"]);
    }
}

mod permissions {
    use super::*;

    /// Runs the test `name` of this file again as a user without privileges: root may do everything. True in that run.
    fn as_nobody(name: &str) -> bool {
        const NOBODY: u32 = 65_534;
        if !rustix::process::geteuid().is_root() {
            return true;
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again
            .args(["--exact", &format!("permissions::{name}"), "--nocapture"])
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/");
        match again.env("TMPDIR", "/tmp").output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success() && said.contains("1 passed"), "{said}");
            }
            Err(error) => println!("skipped: we are root, and another user cannot run this test: {error}"),
        }
        false
    }

    fn set_mode(path: &str, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_without_permissions_is_there_but_unreadable() {
        if !as_nobody("a_file_without_permissions_is_there_but_unreadable") {
            return;
        }
        let mut world = World::new();
        let path = world.file("f", "12345");
        set_mode(&path, 0o000);
        assert_eq!(world.view.node(&path, true).unwrap(), Seen::Is(Node { kind: NodeKind::File, bytes: 5 }));
        for (question, answer) in readings(&mut world.view, &path) {
            assert!(answer.contains("Unreadable") && answer.contains("ermission denied"), "{question:?}: {answer}");
        }
    }

    #[test]
    fn below_a_directory_without_permissions_nothing_is_absent() {
        if !as_nobody("below_a_directory_without_permissions_nothing_is_absent") {
            return;
        }
        let mut world = World::new();
        let path = world.file("d/f", "12345");
        world.file("d/sub/f", "12345");
        let dir = world.at("d");
        set_mode(&dir, 0o000);
        let (below, itself) =
            (world.view.node(&path, true).unwrap(), world.view.names(&dir, "", "", Order::Name).unwrap());
        let (held, writable) = (world.view.holders(&dir, "f").unwrap(), world.view.writable(&path).unwrap());
        set_mode(&dir, 0o444);
        let (listable, searched) =
            (world.view.names(&dir, "", "", Order::Name).unwrap(), world.view.holders(&dir, "f").unwrap());
        set_mode(&dir, 0o700);
        assert_unreadable(&below, "ermission denied");
        assert_unreadable(&itself, "ermission denied");
        assert_unreadable(&held, "ermission denied");
        assert_unreadable(&writable, "ermission denied");
        assert_unreadable(&listable, "ermission denied");
        assert_unreadable(&searched, "ermission denied");
    }

    #[test]
    fn a_project_that_may_not_be_entered_holds_nothing_and_hides_no_other() {
        if !as_nobody("a_project_that_may_not_be_entered_holds_nothing_and_hides_no_other") {
            return;
        }
        let mut world = World::new();
        world.file("projects/open/s", "1");
        world.file("projects/shut/s", "1");
        set_mode(&world.at("projects/shut"), 0o000);
        let held = world.view.holders(&world.at("projects"), "s").unwrap();
        set_mode(&world.at("projects/shut"), 0o700);
        assert_eq!(names_of(held), ["open"]);
    }

    #[test]
    fn writable_is_what_the_system_would_allow() {
        if !as_nobody("writable_is_what_the_system_would_allow") {
            return;
        }
        let mut world = World::new();
        let (file, dir) = (world.file("f", ""), world.dir("d"));
        for (path, mode, may) in [
            (&file, 0o600, true),
            (&file, 0o400, false),
            (&dir, 0o700, true),
            (&dir, 0o500, false),
            (&dir, 0o600, false),
        ] {
            set_mode(path, mode);
            assert_eq!(world.view.writable(path).unwrap(), Seen::Is(may), "{path} {mode:o}");
        }
        set_mode(&dir, 0o700);
    }
}

mod bytes {
    use super::*;

    #[test]
    fn a_pattern_is_found_across_every_border_of_the_chunks_it_is_read_in() {
        let mut world = World::new();
        let (pattern, path) = (r#""type":"user""#, world.at("f"));
        for border in [256 * 1024, 512 * 1024] {
            for before in [0, 1, 6, pattern.len() - 1, pattern.len()] {
                let mut bytes = vec![b'x'; border - before];
                bytes.extend_from_slice(pattern.as_bytes());
                fs::write(&path, &bytes).unwrap();
                for depth in [Depth::Windows, Depth::Whole] {
                    let found = world.view.contains(&path, &["nothing at all", pattern], depth).unwrap();
                    assert_eq!(found, Seen::Is(true), "{before} before {border}");
                }
                // Its last byte is cut off.
                fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
                let found = world.view.contains(&path, &[pattern], Depth::Whole).unwrap();
                assert_eq!(found, Seen::Is(false), "{before} before {border}");
            }
        }
        let empty = world.file("empty", "");
        assert_eq!(world.view.contains(&empty, &["x"], Depth::Windows).unwrap(), Seen::Is(false));
    }

    #[test]
    fn one_line_of_300_mb_is_searched_within_the_bound_or_as_a_whole() {
        let mut world = World::new();
        let path = world.at("f");
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"at the start").unwrap();
        file.seek(SeekFrom::Start(300_000_000)).unwrap();
        file.write_all(b"at the end").unwrap();
        drop(file);
        const { assert!(300_000_000 > CONTAINS_BYTES_MAX) };
        let mut find = |pattern, depth| world.view.contains(&path, &[pattern], depth).unwrap();
        assert_eq!(find("at the start", Depth::Windows), Seen::Is(true));
        assert_eq!(find("at the end", Depth::Windows), Seen::Unreadable(NOT_EXAMINED.into()));
        assert_eq!(find("at the end", Depth::Whole), Seen::Is(true));
        assert_unreadable(&world.view.marker(&path).unwrap(), "larger than");
        assert_unreadable(&world.view.setting(&path, "x").unwrap(), "larger than");
        let Seen::Is(transcript) = world.view.transcript(&path, Format::Claude, Depth::Windows).unwrap() else {
            panic!("a regular file")
        };
        assert_eq!(transcript.bytes, 300_000_010);
        assert!(transcript.examined < 100_000_000, "{transcript:?}");
    }

    #[test]
    fn a_small_file_that_does_not_announce_its_size_is_read_up_to_the_bound() {
        let path = Path::new("/proc/self/status");
        assert_eq!(files::stat(path, true).unwrap().bytes, 0);
        let whole = files::read_small(path, files::SMALL_BYTES_MAX).unwrap();
        assert!(whole.starts_with(b"Name:") && whole.ends_with(b"\n"));
        assert!(files::read_small(path, 10).is_err());
    }

    #[test]
    fn a_tail_is_the_digest_of_the_64_kib_before_an_offset() {
        let mut world = World::new();
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
        let path = world.file("f", &bytes);
        for (upto, from) in [(0, 0), (1, 0), (65_535, 0), (65_536, 0), (65_537, 1), (200_000, 134_464)] {
            let expected = Digest::plain(&bytes[from..upto]);
            assert_eq!(world.view.tail(&path, upto as u64).unwrap(), Seen::Is(expected), "{upto}");
        }
        assert_eq!(world.view.tail(&path, 200_001).unwrap(), Seen::Absent);
        assert_eq!(world.view.tail(&path, u64::MAX).unwrap(), Seen::Absent);
    }

    #[test]
    fn a_transcript_is_counted_and_an_empty_one_is_one_too() {
        let mut world = World::new();
        let turn =
            r#"{"type":"user","uuid":"u1","parentUuid":null,"cwd":"/w","message":{"role":"user","content":"x"}}"#;
        let path = world.file("s.jsonl", format!("{turn}\nnot json\n{{\"cut"));
        let mut scan = |path: &str| world.view.transcript(path, Format::Claude, Depth::Windows).unwrap();
        let Seen::Is(found) = scan(&path) else { panic!("a regular file") };
        assert_eq!((found.turns, found.unparsable, found.torn_tail), (1, 2, true), "{found:?}");
        assert!(found.is_whole() && found.cwd.as_deref() == Some("/w"), "{found:?}");
        fs::write(&path, "").unwrap();
        let Seen::Is(found) = scan(&path) else { panic!("a regular file") };
        assert_eq!((found.turns, found.bytes), (0, 0));
    }

    #[test]
    fn an_identity_is_the_accounts_key_and_half_a_file_is_not_nobody() {
        let mut world = World::new();
        let path = world.at(".claude.json");
        let mut ask = |text: &str| {
            fs::write(&path, text).unwrap();
            world.view.identity(&path, Format::Claude).unwrap()
        };
        let account = r#"{"numStartups":3,"oauthAccount":{"accountUuid":"acc","organizationUuid":"org"}}"#;
        assert_eq!(ask(account), Seen::Is(IdentityKey::parse("c6aecda204856579").unwrap()));
        assert_eq!(ask(r#"{"numStartups":3}"#), Seen::Absent);
        assert_unreadable(&ask(&account[..account.len() - 1]), "not whole JSON");
        assert_unreadable(&ask(""), "not whole JSON");
    }

    #[test]
    fn a_setting_is_a_top_level_integer() {
        let mut world = World::new();
        let path = world.at("settings.json");
        let mut ask = |text: &str| {
            fs::write(&path, text).unwrap();
            world.view.setting(&path, "cleanupPeriodDays").unwrap()
        };
        assert_eq!(ask(r#"{"cleanupPeriodDays": 3650, "x": {}}"#), Seen::Is(3650));
        assert_eq!(ask(r#"{"x": {"cleanupPeriodDays": 1}}"#), Seen::Absent);
        assert_unreadable(&ask(r#"{"cleanupPeriodDays": "30"}"#), "no settings file");
        assert_unreadable(&ask(r#"{"cleanupPeriodDays": 30"#), "no settings file");
        assert_unreadable(&ask("[]"), "no settings file");
        assert_unreadable(&ask(""), "no settings file");
    }

    #[test]
    fn a_marker_names_its_owner_and_may_have_a_token() {
        let mut world = World::new();
        let path = world.at("m");
        let mut ask = |text: &str| {
            fs::write(&path, text).unwrap();
            world.view.marker(&path).unwrap()
        };
        let owned = |token: Option<&str>| Seen::Is(Marker { owner: "marks".into(), token: token.map(str::to_owned) });
        assert_eq!(ask(r#"{"owner_uid":"marks","source":"/a","bytes":1}"#), owned(None));
        assert_eq!(ask(r#"{"schema":1,"owner_uid":"marks","token":"t-1"}"#), owned(Some("t-1")));
        for bad in ["", "{}", r#"{"owner_uid":7}"#, r#"{"owner_uid":"ma"#, "null"] {
            assert_unreadable(&ask(bad), "not a marker");
        }
    }
}

mod processes {
    use super::*;

    /// A child that is killed and reaped whatever the test does.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
        }

        fn started(&self) -> u64 {
            let entry = process::entry(self.0.id()).unwrap();
            let process::Entry::Running { started } = entry else { panic!("it was just started: {entry:?}") };
            started
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_lives_until_it_is_killed_and_a_zombie_is_dead() {
        let mut world = World::new();
        let mut sleeper = Sleeper::start();
        let named = world.process(sleeper.0.id(), Some(sleeper.started()));
        assert_eq!(world.view.life(&named).unwrap(), Life::Alive);
        sleeper.0.kill().unwrap();
        let ended = |pid| matches!(process::entry(pid), Ok(process::Entry::Ended { .. }));
        while !ended(named.pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(world.view.life(&named).unwrap(), Life::Dead, "a zombie");
        assert_eq!(world.view.life(&world.process(named.pid, None)).unwrap(), Life::Dead, "a zombie");
        sleeper.0.wait().unwrap();
        assert_eq!(world.view.life(&named).unwrap(), Life::Dead, "gone");
    }

    #[test]
    fn a_pid_with_another_start_time_is_another_process() {
        let mut world = World::new();
        let sleeper = Sleeper::start();
        let (pid, started) = (sleeper.0.id(), sleeper.started());
        for (started, life) in
            [(Some(started), Life::Alive), (None, Life::Alive), (Some(started + 1), Life::Dead), (Some(0), Life::Dead)]
        {
            assert_eq!(world.view.life(&world.process(pid, started)).unwrap(), life, "{started:?}");
        }
    }

    #[test]
    fn who_is_elsewhere_is_unknown_and_who_ran_before_this_boot_is_dead() {
        let mut world = World::new();
        let own = world.process(world.own.pid, Some(world.own.started));
        let other = || Some("other".to_owned());
        let cases = [
            (own.clone(), Life::Alive),
            (Process { host: None, boot: None, pid_ns: None, ..own.clone() }, Life::Alive),
            (Process { host: other(), ..own.clone() }, Life::Unknown),
            (Process { host: other(), boot: other(), ..own.clone() }, Life::Unknown),
            (Process { boot: other(), ..own.clone() }, Life::Dead),
            (Process { boot: other(), pid_ns: Some(1), ..own.clone() }, Life::Dead),
            (Process { pid_ns: Some(1), ..own.clone() }, Life::Unknown),
            (Process { pid_ns: Some(1), pid: 0, ..own.clone() }, Life::Unknown),
            (Process { pid: 0, ..own.clone() }, Life::Dead),
            (Process { pid: u32::MAX, ..own.clone() }, Life::Dead),
        ];
        for (process, life) in cases {
            assert_eq!(world.view.life(&process).unwrap(), life, "{process:?}");
        }
    }

    #[test]
    fn owners_are_the_registrys_processes_of_that_session() {
        let mut world = World::new();
        let dir = world.dir("sessions");
        let sleeper = Sleeper::start();
        let (pid, started) = (sleeper.0.id(), sleeper.started());
        let entry = |pid: u32, session: &str, started: u64| {
            format!(
                r#"{{"pid":{pid},"sessionId":"{session}","cwd":"/w","procStart":"{started}","kind":"interactive"}}"#
            )
        };
        world.file("sessions/1.json", entry(pid, "s", started + 1));
        world.file("sessions/2.json", entry(pid, "s", started));
        world.file("sessions/3.json", entry(pid, "other", started));
        world.file("sessions/4.key", entry(pid, "s", started));
        world.file("sessions/4194305.json", "half writ");
        world.file("sessions/readme.json", "no entry");
        let mut expected = [Owner { pid, life: Life::Alive }, Owner { pid, life: Life::Dead }];
        expected.sort();
        assert_eq!(world.view.owners(&dir, "s", Format::Claude).unwrap(), Seen::Is(expected.to_vec()));
        assert_eq!(world.view.owners(&dir, "none", Format::Claude).unwrap(), Seen::Is(vec![]));
    }

    #[test]
    fn a_registry_file_of_a_live_process_that_says_nothing_yet_may_be_about_any_session() {
        let mut world = World::new();
        let dir = world.dir("sessions");
        let sleeper = Sleeper::start();
        let name = format!("sessions/{}.json", sleeper.0.id());
        world.file(&name, "");
        assert_unreadable(&world.view.owners(&dir, "s", Format::Claude).unwrap(), "not a registry entry");
        fs::remove_file(world.at(&name)).unwrap();
        world.fifo(&name);
        assert_unreadable(&world.view.owners(&dir, "s", Format::Claude).unwrap(), "FIFO");
    }
}

mod worktrees {
    use super::*;

    fn git(dir: &Path, args: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]);
        let clean = ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_CEILING_DIRECTORIES"];
        for name in clean {
            git.env_remove(name);
        }
        match git.args(args).current_dir(dir).output() {
            Ok(output) => output.status.success().then(|| String::from_utf8(output.stdout).unwrap()),
            Err(error) => {
                println!("skipped: git cannot be started: {error}");
                None
            }
        }
    }

    /// What git itself prints there.
    fn listed(dir: &str) -> Seen<Vec<String>> {
        git(Path::new(dir), &["worktree", "list", "--porcelain"]).map_or(Seen::Absent, |text| {
            Seen::Is(text.lines().filter_map(|line| line.strip_prefix("worktree ")).map(str::to_owned).collect())
        })
    }

    #[test]
    fn worktrees_are_those_that_git_prints_from_every_place() {
        let mut world = World::new();
        let main = world.dir("main");
        let root = world.root();
        if git(&root, &["init", "-q", "main"]).is_none() {
            return;
        }
        let main_dir = Path::new(&main);
        git(main_dir, &["commit", "-q", "--allow-empty", "-m", "x"]).unwrap();
        for path in ["../wt2", "../wt", "../a/deep/one", "../gone"] {
            git(main_dir, &["worktree", "add", "-q", "--detach", path]).unwrap();
        }
        fs::remove_dir_all(world.at("gone")).unwrap();
        git(&root, &["clone", "-q", "--bare", "main", "bare.git"]).unwrap();
        git(&root.join("bare.git"), &["worktree", "add", "-q", "--detach", "../of-bare"]).unwrap();
        world.dir("main/sub/below");
        world.dir("main/empty/.git");
        world.file("main/half/.git/HEAD", "ref: refs/heads/main\n");
        world.dir("outside");
        world.link(&world.at("main/sub"), "link");
        world.file("broken/.git", "gitdir: /no/such/place\n");
        world.file("no-gitfile/.git", "something else");

        let places = [
            "main",
            "main/sub/below",
            "main/empty",
            "main/half",
            "main/.git",
            "main/.git/objects",
            "link",
            "wt",
            "wt2",
            "a/deep/one",
            "bare.git",
            "of-bare",
            "outside",
            "broken",
            "no-gitfile",
        ];
        for place in places {
            let place = world.at(place);
            assert_eq!(world.view.worktrees(&place).unwrap(), listed(&place), "{place}");
        }
        let expected = ["main", "a/deep/one", "gone", "wt", "wt2"].map(|name| world.at(name));
        assert_eq!(world.view.worktrees(&world.at("wt2")).unwrap(), Seen::Is(expected.to_vec()));
        assert_eq!(world.view.worktrees(&world.at("outside")).unwrap(), Seen::Absent);
    }

    #[test]
    fn a_linked_worktree_may_be_named_relative_to_its_entry() {
        let mut world = World::new();
        let root = world.root();
        if git(&root, &["init", "-q", "main"]).is_none() {
            return;
        }
        git(&root.join("main"), &["commit", "-q", "--allow-empty", "-m", "x"]).unwrap();
        git(&root.join("main"), &["worktree", "add", "-q", "--detach", "../wt"]).unwrap();
        world.file("main/.git/worktrees/wt/gitdir", "../../../../wt/.git\n");
        world.file("wt/.git", "gitdir: ../main/.git/worktrees/wt\n");
        let expected = Seen::Is(vec![world.at("main"), world.at("wt")]);
        for place in ["main", "wt"] {
            assert_eq!(world.view.worktrees(&world.at(place)).unwrap(), expected, "{place}");
        }
    }

    #[test]
    fn a_fifo_among_gits_files_is_unreadable() {
        let mut world = World::new();
        let root = world.root();
        if git(&root, &["init", "-q", "main"]).is_none() {
            return;
        }
        world.dir("main/.git/worktrees/x");
        world.fifo("main/.git/worktrees/x/gitdir");
        assert_unreadable(&world.view.worktrees(&world.at("main")).unwrap(), "FIFO");
    }
}

mod environment {
    use throughline::world::environment::{EnvironmentError, current_dir, home_dir, var};

    use super::*;

    /// Runs the test `name` again in a process that a shell prepared: a test must not change its own. True in that run.
    fn prepared(name: &str, prepare: &str) -> bool {
        const INSIDE: &str = "THROUGHLINE_TEST_INSIDE";
        if std::env::var_os(INSIDE).is_some() {
            return true;
        }
        let dir = TempDir::new().unwrap();
        let script = format!(r#"{prepare} && exec "$0" --exact environment::{name}"#);
        let mut again = Command::new("sh");
        again.args(["-c", &script]).arg(std::env::current_exe().unwrap()).current_dir(dir.path()).env(INSIDE, "1");
        let output = again.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        false
    }

    #[test]
    fn a_working_directory_that_is_gone_is_an_error() {
        if prepared("a_working_directory_that_is_gone_is_an_error", "mkdir d && cd d && rmdir ../d") {
            let found = current_dir();
            assert!(matches!(found, Err(EnvironmentError::WorkingDirGone { .. })), "{found:?}");
        }
    }

    #[test]
    fn a_working_directory_that_is_not_utf8_is_an_error() {
        let prepare = r#"d=$(printf 'd\377') && mkdir "$d" && cd "$d""#;
        if prepared("a_working_directory_that_is_not_utf8_is_an_error", prepare) {
            let found = current_dir();
            assert!(matches!(found, Err(EnvironmentError::WorkingDirNotUtf8 { .. })), "{found:?}");
        }
    }

    #[test]
    fn a_variable_that_is_not_utf8_is_an_error_and_an_empty_one_a_value() {
        let prepare = r"export X=$(printf 'x\377') EMPTY= && export HOME=$X";
        if prepared("a_variable_that_is_not_utf8_is_an_error_and_an_empty_one_a_value", prepare) {
            assert!(matches!(var("X"), Err(EnvironmentError::VariableNotUtf8 { name }) if name == "X"));
            assert!(matches!(home_dir(), Err(EnvironmentError::VariableNotUtf8 { .. })));
            assert_eq!(var("EMPTY").unwrap().as_deref(), Some(""));
        }
    }

    #[test]
    fn home_is_the_variable_and_where_that_is_empty_the_password_databases() {
        let name = "home_is_the_variable_and_where_that_is_empty_the_password_databases";
        if prepared(name, "export HOME=") {
            match home_dir() {
                Ok(home) => assert!(home.starts_with('/'), "{home}"),
                // A user without an entry, as in some containers.
                Err(error) => assert!(matches!(error, EnvironmentError::NoHome { .. }), "{error:?}"),
            }
        } else if let Some(home) = var("HOME").unwrap().filter(|home| !home.is_empty()) {
            assert_eq!(home_dir().unwrap(), home);
        }
    }
}

#[test]
fn equal_worlds_give_equal_snapshots_and_the_snapshot_answers_like_the_world() {
    let mut world = World::new();
    let (file, fifo) = (world.file("d/f", "x"), world.fifo("d/p"));
    let dir = world.at("d");
    let mut record = || {
        let mut recorder = Recorder::new(&mut world.view);
        recorder.names(&dir, "", "", Order::Name).unwrap();
        recorder.tail(&fifo, 1).unwrap();
        recorder.age_days(&file).unwrap();
        recorder.into_snapshot()
    };
    let (mut first, second) = (record(), record());
    assert_eq!(first.digest(), second.digest());
    let again = Question::Tail { path: fifo.clone(), upto: 1 };
    assert_eq!(first.ask(&again).unwrap(), world.view.ask(&again).unwrap());
    assert!(matches!(first.ask(&again).unwrap(), Answer::Digest(Seen::Unreadable(_))));
}
