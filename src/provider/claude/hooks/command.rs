//! The command that a hook runs: written for a shell, and recognised again.

/// A word as a POSIX shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// The command for a program, its log where one is named, and its agent where one is named.
///
/// ```
/// # use throughline::provider::claude::hooks::{command, is_ours};
/// let command = command("/opt/my tools/throughline", None, Some("marks"));
/// assert_eq!(command, "'/opt/my tools/throughline' hook claude --agent marks");
/// assert!(is_ours(&command) && !is_ours("echo throughline hook claude"));
/// ```
#[must_use]
pub fn command(program: &str, log: Option<&str>, agent: Option<&str>) -> String {
    let mut words = vec![program, "hook", "claude"];
    words.extend(log.iter().flat_map(|log| ["--log", log]));
    words.extend(agent.iter().flat_map(|agent| ["--agent", agent]));
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Whether a hook's command is ours: nothing but `hook claude` of a program that is called `throughline`, whatever its
/// folder, its options and the variables set before it. One that is part of a larger command is not: it was made by hand.
#[must_use]
pub fn is_ours(command: &str) -> bool {
    let Some(words) = words(command) else { return false };
    let mut words = words.iter().map(String::as_str).skip_while(|word| is_assignment(word));
    let is_throughline = words.next().is_some_and(|program| program.rsplit('/').next() == Some(PROGRAM));
    let rest: Vec<&str> = words.collect();
    is_throughline && rest.windows(2).any(|pair| pair == ["hook", "claude"])
}

/// What the program is called.
pub const PROGRAM: &str = "throughline";

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The words of a simple command; nothing where it is more than that or its quotes are open.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (_, Option<String>) = (Vec::new(), None);
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let (text, after) = rest.as_str().split_once('\'')?;
                word.get_or_insert_default().push_str(text);
                rest = after.chars();
            }
            '"' => double_quoted(&mut rest, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(rest.next().filter(|c| *c != '\n')?),
            '#' if word.is_none() => return None,
            '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match rest.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_whole_command_is_ours() {
        for (command, expected) in [
            ("throughline hook claude", true),
            ("/usr/bin/throughline hook claude --agent a", true),
            ("\"/a b/throughline\" --log '/x y' hook claude", true),
            (r"/a\ b/throughline hook claude", true),
            ("THROUGHLINE_LOG=/x A='b c' throughline  hook\tclaude ", true),
            ("throughline hook install", false),
            ("throughline log hook claude-x", false),
            ("throughline", false),
            ("", false),
            ("throughline2 hook claude", false),
            ("/throughline/other hook claude", false),
            ("echo throughline hook claude", false),
            ("throughline hook claude | tee /tmp/x", false),
            ("throughline hook claude; rm x", false),
            ("throughline hook claude && x", false),
            ("throughline hook claude > /tmp/x", false),
            ("$HOME/throughline hook claude", false),
            ("\"$(which throughline)\" hook claude", false),
            ("'throughline hook claude", false),
            ("throughline hook claude # mine", false),
        ] {
            assert_eq!(is_ours(command), expected, "{command}");
        }
    }

    proptest! {
        #[test]
        fn a_command_is_read_as_it_was_meant(dir in "[^\0\n]{0,12}", log in proptest::option::of("[^\0]{1,12}")) {
            let program = format!("/{dir}/throughline");
            let command = command(&program, log.as_deref(), Some("a-1"));
            let mut expected = vec![program.as_str(), "hook", "claude"];
            expected.extend(log.iter().flat_map(|log| ["--log", log]));
            expected.extend(["--agent", "a-1"]);
            prop_assert!(is_ours(&command), "{}", command);
            prop_assert_eq!(words(&command), Some(expected.into_iter().map(str::to_owned).collect()));
        }
    }
}
