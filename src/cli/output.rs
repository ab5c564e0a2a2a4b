//! Where words go: stdout is data, stderr is talk. A closed pipe ends the command quietly.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::chain::{Confidence, Receipt};
use crate::cli::args::When;
use crate::cli::error::{Failure, exit};
use crate::event::VerdictWord;

/// How the command prints.
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) verbose: bool,
    colour: bool,
}

impl Output {
    pub(super) fn new(json: bool, quiet: bool, verbose: bool, when: When) -> Self {
        let colour = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
            }
        };
        Self { json, quiet, verbose, colour: colour && !json }
    }

    /// A counter for long work.
    pub(super) fn progress(&self, what: &'static str) -> Progress {
        let on = io::stderr().is_terminal() && !self.quiet;
        Progress { what, shown: None, started: Instant::now(), on }
    }

    /// Data, as one piece.
    pub(super) fn data(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failure)
    }

    /// Data in many pieces. On a terminal each is seen at once; elsewhere they are written in blocks.
    #[expect(clippy::unused_self, reason = "data goes out through the output")]
    pub(super) fn lines(&self) -> Lines {
        Lines { out: BufWriter::new(io::stdout()), at_once: io::stdout().is_terminal() }
    }

    /// One line of JSON.
    pub(super) fn value(&self, value: &Value) -> Result<(), Failure> {
        self.data(&format!("{value}\n"))
    }

    /// One line of JSON about what is in the log by now.
    pub(super) fn done(&self, value: &Value) -> Result<(), Failure> {
        let next = "what was asked for is done and in the log: see it with `throughline log -n 5`";
        self.value(value).map_err(|failure| if failure.code == exit::OK { failure } else { failure.next(next) })
    }

    /// Talk, for people.
    pub(super) fn say(&self, text: &str) {
        if !self.quiet {
            Self::complain(text);
        }
    }

    /// An error, also for those who want no talk.
    pub(super) fn complain(text: &str) {
        // Whoever closed stderr does not want to hear; the exit code still speaks.
        let _ = writeln!(io::stderr(), "{}", visible(text));
    }

    /// In a colour, where there are colours.
    pub(super) fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    fn word(&self, word: VerdictWord) -> String {
        let code = match word {
            VerdictWord::Resume => "1;32",
            VerdictWord::Recover => "1;36",
            VerdictWord::Fresh => "1;33",
            VerdictWord::Busy => "1;35",
            VerdictWord::Unknown => "1;31",
        };
        self.paint(code, word.word())
    }

    /// A verdict for people.
    pub(super) fn verdict(&self, receipt: &Receipt) -> String {
        let verdict = receipt.verdict();
        if self.quiet {
            return format!("{}\n", verdict.verdict);
        }
        let mut text = self.word(verdict.verdict);
        if let Some(session) = &verdict.session_id {
            let _ = write!(text, " {}", visible(session));
        }
        let mut how = vec![verdict.route.word().to_owned()];
        how.extend(verdict.means.map(|means| means.word().to_owned()));
        how.push(if verdict.confidence == Confidence::Proven { "proven" } else { "inferred" }.into());
        let _ = writeln!(text, " ({})", how.join(", "));
        let mut field = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<9}{}", visible(value));
        };
        if let Some(transcript) = &verdict.transcript {
            field("reads", &transcript.path);
            field("writes", transcript.writes_to.file.as_deref().unwrap_or(&transcript.writes_to.dir));
        }
        if let Some(at) = &verdict.conversation_at {
            field("log says", &format!("session {} in {:?}, cwd {:?}", at.session, at.config_dir, at.cwd));
        }
        if let Some(session) = &verdict.recoverable_session_id {
            field("on disk", &format!("session {session}, which this spawn will not use"));
        }
        if let Some(launch) = &verdict.launch {
            field("launch", &command_line(launch));
        }
        for finding in &verdict.findings {
            let place = finding.path.as_ref().map(|path| format!(" [{path}]")).unwrap_or_default();
            let next = finding.next.as_ref().map(|next| format!(" → {next}")).unwrap_or_default();
            let line = format!("{}: {}{place}{next}", finding.code, finding.detail);
            let _ = writeln!(text, "  {} {}", self.paint("33", "!"), visible(&line));
        }
        for step in &verdict.steps {
            let mark = if step.ok { self.paint("32", "✓") } else { self.paint("2", "·") };
            let _ = writeln!(text, "  {mark} {:<11} {}: {}", step.id, step.label, visible(&step.detail));
        }
        if self.verbose {
            let basis = receipt.basis();
            for frontier in basis.streams.iter().flatten() {
                let _ = writeln!(
                    text,
                    "  basis    {} version {} chain {}",
                    frontier.stream, frontier.version, frontier.chain
                );
            }
            let _ =
                writeln!(text, "  basis    snapshot {} of {} observations", basis.snapshot, receipt.snapshot().len());
            for (question, answer) in receipt.snapshot().iter() {
                let (question, answer) = (serde_json::to_string(question), serde_json::to_string(answer));
                let _ = writeln!(text, "    {} → {}", question.unwrap_or_default(), answer.unwrap_or_default());
            }
        }
        text
    }
}

/// Data on its way out. [`Lines::finish`] says whether all of it went.
pub(super) struct Lines {
    out: BufWriter<io::Stdout>,
    at_once: bool,
}

impl Lines {
    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes()).map_err(stdout_failure)?;
        if self.at_once { self.finish() } else { Ok(()) }
    }

    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(stdout_failure)
    }
}

/// Counts on stderr while something long goes on: only on a terminal, a few times a second.
pub(super) struct Progress {
    what: &'static str,
    shown: Option<Instant>,
    started: Instant,
    on: bool,
}

impl Progress {
    /// So many are done.
    pub(super) fn at(&mut self, done: u64) {
        let due = self.shown.unwrap_or(self.started).elapsed() >= Duration::from_millis(200);
        if self.on && due {
            self.shown = Some(Instant::now());
            let _ = write!(io::stderr(), "\r{done} {}", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// The exit code of a verdict.
pub(super) fn code_of(word: VerdictWord) -> u8 {
    match word {
        VerdictWord::Resume => exit::OK,
        VerdictWord::Recover => exit::RECOVER,
        VerdictWord::Fresh => exit::FRESH,
        VerdictWord::Busy => exit::BUSY,
        VerdictWord::Unknown => exit::UNKNOWN,
    }
}

/// Text from elsewhere, with control, direction and invisible characters written out: a hostile name must not drive the terminal,
/// nor look like another one.
pub(super) fn visible(text: &str) -> String {
    let hidden = |c: char| {
        let unseen = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
        c.is_control() || unseen
    };
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { seen.extend(c.escape_unicode()) } else { seen.push(c) }
    }
    seen
}

/// The failure of a write to stdout. A closed pipe is the reader's choice and no failure worth words.
pub(super) fn stdout_failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new("closed_pipe", exit::OK, "");
    }
    let mut failure = Failure::of("io", exit::ERROR, &error).or_next("see where stdout goes");
    failure.message = format!("stdout could not be written: {}", failure.message);
    failure
}

fn command_line(launch: &crate::provider::Launch) -> String {
    let mut words = Vec::new();
    for (name, value) in &launch.env {
        match value {
            Some(value) => words.push(format!("{name}={}", quoted(value))),
            None => words.push(format!("env -u {name}")),
        }
    }
    words.extend(launch.argv.iter().map(|word| quoted(word)));
    format!("cd {} && {}", quoted(&launch.cwd), words.join(" "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_drive_the_terminal() {
        assert_eq!(visible("a\u{1b}[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\u{a}c\\u{202e}");
        assert_eq!(visible("a\u{200b}\u{2060}\u{feff}b ü 会 🙂"), "a\\u{200b}\\u{2060}\\u{feff}b ü 会 🙂");
    }

    #[test]
    fn words_are_quoted_as_a_shell_takes_them() {
        for (word, expected) in [("a-b/c", "a-b/c"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("~", "'~'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
