//! The copy of a session file beside what a shell would do: copy, make durable, digest.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use throughline::world::doors::Doors as _;
use throughline::world::real::RealDoors;

use crate::{faster, paired};

const MIB: usize = 1024 * 1024;

/// One gigabyte of lines.
pub(crate) fn gigabyte() {
    let room = tempfile::tempdir().expect("a folder");
    let (source, copy) = (room.path().join("source.jsonl"), room.path().join("copy.jsonl"));
    let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n", "x".repeat(900));
    let chunk = line.repeat(MIB / line.len());
    let mut file = File::create(&source).expect("a file");
    for _ in 0..1024 {
        file.write_all(chunk.as_bytes()).expect("space");
    }
    file.sync_all().expect("a sync");
    let bytes = fs::metadata(&source).expect("the file").len();
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let mut doors = RealDoors::new(room.path()).expect("this process");
    let ours = || {
        let _ = fs::remove_file(&copy);
        doors.copy_new(&text(&source), &text(&copy), bytes).expect("a copy");
    };
    let other = room.path().join("other.jsonl");
    let bare = || {
        let _ = fs::remove_file(&other);
        let copied = Command::new("cp").arg("--reflink=never").arg(&source).arg(&other).status().expect("cp");
        assert!(copied.success());
        let mut file = File::open(&other).expect("the copy");
        file.sync_all().expect("a sync");
        let (mut hasher, mut chunk) = (blake3::Hasher::new(), vec![0; MIB]);
        loop {
            match file.read(&mut chunk).expect("the copy") {
                0 => break,
                count => drop(hasher.update(&chunk[..count])),
            }
        }
        std::hint::black_box(hasher.finalize());
    };
    let found = paired(3, ours, bare);
    faster("by_copy of 1 GiB, MiB a second; cp + fsync + digest", 1024, found, "≥ 0.8×");
}
