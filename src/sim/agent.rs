//! A pretend agent CLI: keeps sessions as Claude Code 2.1.332 was observed to, one file operation at a time.
//!
//! **It imports nothing of the rules that are judged by it.** It does what the real program does to its files in the cases
//! that protocols meet: which file an id or a path leads to, whether it is accepted, what history is read, where new records
//! go, what is said on stdout and stderr. Its own words are markers, so that what it read can be compared with what was
//! written.

use serde_json::{Value, json};

/// The file operations of the program, and what it says. Each is a moment at which others can go on.
///
/// An error means that the process is being ended: nothing more is done.
pub trait Machine {
    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// [`Ended`]
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, Ended>;
    /// The names of the folders in a folder.
    ///
    /// # Errors
    ///
    /// [`Ended`]
    fn folders(&mut self, dir: &str) -> Result<Vec<String>, Ended>;
    /// Appends to a file, which is made if it is not there, with its folders.
    ///
    /// # Errors
    ///
    /// [`Ended`]
    fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), Ended>;
    /// A line on stdout.
    ///
    /// # Errors
    ///
    /// [`Ended`]
    fn say(&mut self, line: String) -> Result<(), Ended>;
    /// A line on stderr.
    ///
    /// # Errors
    ///
    /// [`Ended`]
    fn complain(&mut self, line: String) -> Result<(), Ended>;
    /// What was sent to the model: the turns of the history, in order.
    fn sent(&mut self, turns: Vec<String>);
    /// A text that no other turn has.
    fn turn(&mut self) -> String;
}

/// The process was ended from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended;

/// What it was started with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    resume: Option<String>,
    fork: bool,
    id: Option<String>,
    says: bool,
}

impl Arguments {
    /// Reads a command line.
    #[must_use]
    pub fn parse(argv: &[String]) -> Self {
        let mut arguments = Self::default();
        let mut words = argv.iter().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--resume" => arguments.resume = words.next().cloned(),
                "--fork-session" => arguments.fork = true,
                "--session-id" => arguments.id = words.next().cloned(),
                "--output-format" => arguments.says = words.next().is_some_and(|format| format == "stream-json"),
                _ => {}
            }
        }
        arguments
    }
}

/// Where it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Surroundings {
    /// The login's folder.
    pub config_dir: String,
    /// The working directory.
    pub cwd: String,
    /// What it does wrong.
    pub wrong: Option<Wrong>,
}

/// A way in which an agent does something else than was foretold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A fork does not take the history along.
    Forgets,
    /// It finds nothing in its own folder.
    IsBlind,
    /// A fork is written into its source.
    WritesIntoSource,
}

/// The name of a working directory's folder: each character that is no letter or digit of ASCII becomes a dash.
fn folder(cwd: &str) -> String {
    cwd.encode_utf16()
        .map(|unit| char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect()
}

struct Record {
    uuid: Value,
    parent: Value,
    turn: Option<String>,
}

/// The records that count: whole lines that are objects; turns and what carries the chain.
fn records(bytes: &[u8]) -> Vec<Record> {
    let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let main = lines.filter(|record| record.is_object() && record["isSidechain"] != true);
    main.filter_map(|record| {
        let kind = record["type"].as_str()?;
        let content = record["message"]["content"].as_str();
        let turn = matches!(kind, "user" | "assistant").then(|| content.map(str::to_owned)).flatten();
        let counts = turn.is_some() || matches!(kind, "system" | "attachment");
        counts.then(|| Record { uuid: record["uuid"].clone(), parent: record["parentUuid"].clone(), turn })
    })
    .collect()
}

/// The turns on the way up from the last record.
fn history(records: &[Record]) -> Vec<String> {
    let mut turns = Vec::new();
    let mut at = records.len().checked_sub(1);
    let mut left = records.len();
    while let (Some(here), true) = (at, left > 0) {
        left -= 1;
        turns.extend(records[here].turn.clone());
        let parent = &records[here].parent;
        at = if parent.is_null() { None } else { records.iter().rposition(|record| record.uuid == *parent) };
    }
    turns.reverse();
    turns
}

/// Runs it, and gives its exit code.
///
/// # Errors
///
/// [`Ended`]
pub fn run(machine: &mut dyn Machine, arguments: &Arguments, place: &Surroundings) -> Result<i32, Ended> {
    let projects = format!("{}/projects", place.config_dir);
    let own = format!("{projects}/{}", folder(&place.cwd));
    let source = match &arguments.resume {
        None => None,
        Some(_) if place.wrong == Some(Wrong::IsBlind) => return refuse(machine, arguments, ""),
        Some(asked) => match find(machine, &projects, &own, asked)? {
            Some(found) => Some(found),
            None => return refuse(machine, arguments, asked),
        },
    };
    if let Some(id) = &arguments.id
        && machine.read(&format!("{own}/{id}.jsonl"))?.is_some()
    {
        machine.complain(format!("Error: Session ID {id} is already in use."))?;
        return Ok(1);
    }
    let (path, bytes) = source.unwrap_or_default();
    let is_new = arguments.resume.is_none() || arguments.fork;
    let id = match (&arguments.id, is_new) {
        (Some(id), true) => id.clone(),
        (None, true) => format!("new-{}", machine.turn()),
        (_, false) => path.rsplit('/').next().unwrap_or_default().trim_end_matches(".jsonl").to_owned(),
    };
    if arguments.says {
        machine.say(json!({"type": "system", "subtype": "init", "session_id": id}).to_string())?;
    }
    let into_source = place.wrong == Some(Wrong::WritesIntoSource) && arguments.fork;
    let file = if is_new && !into_source { format!("{own}/{id}.jsonl") } else { path };
    let bytes = if place.wrong == Some(Wrong::Forgets) && arguments.fork { Vec::new() } else { bytes };
    converse(machine, &file, &bytes, arguments.fork && !into_source)?;
    if arguments.says {
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": id});
        machine.say(result.to_string())?;
    }
    Ok(0)
}

/// One turn: the user's record before the model answers, its own after.
fn converse(machine: &mut dyn Machine, file: &str, bytes: &[u8], fork: bool) -> Result<(), Ended> {
    let before = records(bytes);
    let last = before.last().map_or(Value::Null, |record| record.uuid.clone());
    let turn = machine.turn();
    let record = |role: &str, uuid: &str, parent: &Value| {
        let message = json!({"role": role, "content": format!("{role} {turn}")});
        let record = json!({"type": role, "uuid": uuid, "parentUuid": parent, "message": message});
        format!("{record}\n").into_bytes()
    };
    let (user, assistant) = (format!("{turn}-u"), format!("{turn}-a"));
    if fork {
        machine.append(file, &whole(bytes))?;
    } else if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        machine.append(file, b"\n")?;
    }
    machine.append(file, &record("user", &user, &last))?;
    let mut sent = history(&before);
    sent.push(format!("user {turn}"));
    machine.sent(sent);
    machine.append(file, &record("assistant", &assistant, &json!(user)))
}

/// The lines of a source that a fork takes along.
fn whole(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| serde_json::from_slice::<Value>(line).is_ok());
    lines.flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

fn refuse(machine: &mut dyn Machine, arguments: &Arguments, asked: &str) -> Result<i32, Ended> {
    let why = format!("No conversation found with session ID: {asked}");
    if arguments.says {
        let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
            "session_id": asked, "errors": [why]});
        machine.say(result.to_string())?;
    }
    machine.complain(why)?;
    Ok(1)
}

type Found = Option<(String, Vec<u8>)>;

/// The file that an id or a path leads to, if it is accepted.
fn find(machine: &mut dyn Machine, projects: &str, own: &str, asked: &str) -> Result<Found, Ended> {
    if asked.ends_with(".jsonl") {
        return Ok(machine.read(asked)?.filter(|bytes| is_accepted(bytes)).map(|bytes| (asked.to_owned(), bytes)));
    }
    let name = format!("{asked}.jsonl");
    let here = format!("{own}/{name}");
    if let Some(bytes) = machine.read(&here)?
        && is_accepted(&bytes)
    {
        return Ok(Some((here, bytes)));
    }
    let mut found = Vec::new();
    for dir in machine.folders(projects)? {
        let path = format!("{projects}/{dir}/{name}");
        if let Some(bytes) = machine.read(&path)?
            && [&b"\"type\":\"user\""[..], b"\"type\":\"assistant\""]
                .iter()
                .any(|mark| bytes.windows(mark.len()).any(|window| window == *mark))
        {
            found.push((path, bytes));
        }
    }
    // Two candidates are none.
    let only = if found.len() == 1 { found.pop() } else { None };
    Ok(only.filter(|(_, bytes)| is_accepted(bytes)))
}

fn is_accepted(bytes: &[u8]) -> bool {
    !records(bytes).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Plain {
        files: BTreeMap<String, Vec<u8>>,
        said: Vec<String>,
        complained: Vec<String>,
        sent: Vec<Vec<String>>,
        turns: usize,
    }

    impl Machine for Plain {
        fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, Ended> {
            Ok(self.files.get(path).cloned())
        }
        fn folders(&mut self, dir: &str) -> Result<Vec<String>, Ended> {
            let below = self.files.keys().filter_map(|path| path.strip_prefix(&format!("{dir}/"))?.split('/').next());
            let mut names: Vec<String> = below.map(str::to_owned).collect();
            names.dedup();
            Ok(names)
        }
        fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), Ended> {
            self.files.entry(path.into()).or_default().extend_from_slice(bytes);
            Ok(())
        }
        fn say(&mut self, line: String) -> Result<(), Ended> {
            self.said.push(line);
            Ok(())
        }
        fn complain(&mut self, line: String) -> Result<(), Ended> {
            self.complained.push(line);
            Ok(())
        }
        fn sent(&mut self, turns: Vec<String>) {
            self.sent.push(turns);
        }
        fn turn(&mut self) -> String {
            self.turns += 1;
            format!("t{}", self.turns)
        }
    }

    fn start(machine: &mut Plain, line: &str) -> i32 {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let place = Surroundings { config_dir: "/c".into(), cwd: "/w".into(), wrong: None };
        run(machine, &Arguments::parse(&argv), &place).unwrap_or(137)
    }

    #[test]
    fn a_conversation_goes_on_forks_and_is_refused() {
        let mut machine = Plain::default();
        assert_eq!(start(&mut machine, "claude --session-id A"), 0);
        assert_eq!(start(&mut machine, "claude --resume A --output-format stream-json"), 0);
        assert_eq!(machine.sent[1], ["user t1", "assistant t1", "user t2"]);
        assert!(machine.said[1].contains("\"result\"") && machine.said[1].contains("\"A\""));
        let before = machine.files["/c/projects/-w/A.jsonl"].clone();
        assert_eq!(start(&mut machine, "claude --resume /c/projects/-w/A.jsonl --fork-session --session-id B"), 0);
        assert_eq!(machine.files["/c/projects/-w/A.jsonl"], before);
        assert_eq!(machine.sent[2].len(), 5);
        assert_eq!(start(&mut machine, "claude --resume X"), 1);
        assert_eq!(machine.complained, ["No conversation found with session ID: X"]);
        assert_eq!(start(&mut machine, "claude --session-id B"), 1, "it is in use");
    }

    #[test]
    fn a_session_elsewhere_is_found_only_where_it_is_the_only_one() {
        let mut machine = Plain::default();
        start(&mut machine, "claude --session-id A");
        let bytes = machine.files.remove("/c/projects/-w/A.jsonl").unwrap_or_default();
        machine.files.insert("/c/projects/-x/A.jsonl".into(), bytes.clone());
        assert_eq!(start(&mut machine, "claude --resume A"), 0);
        machine.files.insert("/c/projects/-y/A.jsonl".into(), bytes);
        assert_eq!(start(&mut machine, "claude --resume A"), 1);
    }
}
