//! The cases about rights, where the probe is run by a superuser: the command itself, started as somebody without rights.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use super::room::{MARK, Room};
use super::{Options, Row};

/// The user and the group `nobody` of every system.
const NOBODY: u32 = 65_534;

#[derive(Deserialize)]
struct Found {
    cases: Vec<Row>,
}

/// Runs the named cases as an ordinary user.
pub(super) fn ask(options: &Options, room: &Room, names: &[&str], stop: &AtomicBool) -> io::Result<Vec<Row>> {
    let command = options.command.as_ref().ok_or_else(|| io::Error::other("no command is known to do it"))?;
    // The command may lie where only its owner can go.
    let copy = room.path().join("throughline");
    fs::copy(command, &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o711))?;
    let folder = room.case("user")?;
    chown(&folder, Some(NOBODY), Some(NOBODY))?;
    let mut run = Command::new(&copy);
    run.args(["--json", "probe", "claude", "--bin"]).arg(&options.program).args(["--cases", &names.join(",")]);
    run.args(["--jobs", &options.jobs.to_string()]);
    // The rules that are judged, whichever they are.
    let rules = room.path().join("rules");
    fs::write(&rules, options.known.to_text("claude").map_err(io::Error::other)?)?;
    fs::set_permissions(&rules, fs::Permissions::from_mode(0o644))?;
    run.arg("--rules").arg(&rules).args(options.rules.iter().flat_map(|version| ["--rules-of", version]));
    run.uid(NOBODY).gid(NOBODY).process_group(0).current_dir(&folder).env(MARK, room.path());
    run.env_clear().env("TMPDIR", &folder).env("HOME", &folder);
    if let Some(path) = std::env::var_os("PATH") {
        run.env("PATH", path);
    }
    let (stdout, stderr) = (folder.with_extension("out"), folder.with_extension("err"));
    run.stdin(Stdio::null()).stdout(fs::File::create(&stdout)?).stderr(fs::File::create(&stderr)?);
    let mut child = run.spawn()?;
    while child.try_wait()?.is_none() {
        if stop.load(Ordering::Relaxed) {
            super::room::end_processes(room.path());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let found: Result<Found, _> = serde_json::from_slice(&fs::read(&stdout)?);
    found
        .map(|found| found.cases)
        .map_err(|_| io::Error::other(fs::read_to_string(&stderr).unwrap_or_default().trim().to_owned()))
}
