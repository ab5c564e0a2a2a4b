//! JSON as a text with places: where each value stands, so that something can be put in or cut out without touching the rest.

use std::ops::Range;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What a value is, as far as anybody here asks.
#[derive(Debug)]
pub(super) enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Text(String),
    Other,
}

/// A key and its value; `start` is where the key stands.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    /// The members of an object.
    pub(super) fn members(&self) -> Option<&[Member]> {
        if let Kind::Object(members) = &self.kind { Some(members) } else { None }
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> Option<&[Node]> {
        if let Kind::Array(elements) = &self.kind { Some(elements) } else { None }
    }

    /// The text, where it is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let Kind::Text(text) = &self.kind { Some(text) } else { None }
    }

    /// The value of a key; the last one counts, as everybody who reads such a file has it.
    pub(super) fn member(&self, key: &str) -> Option<&Node> {
        self.members()?.iter().rev().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Where each of its members or elements stands, key included.
    pub(super) fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|member| member.start..member.value.span.end).collect(),
            Kind::Array(elements) => elements.iter().map(|element| element.span.clone()).collect(),
            Kind::Text(_) | Kind::Other => Vec::new(),
        }
    }

    /// Where what stands between its brackets begins and ends.
    pub(super) fn inside(&self) -> Range<usize> {
        self.span.start + 1..self.span.end - 1
    }
}

/// A byte order mark, which some editors write before a text.
const MARK: &str = "\u{feff}";

/// The text without a byte order mark.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// The value of a text of which is known that it is JSON (and so, not deeper than its reader goes). Nothing where it is not.
pub(super) fn parse(text: &str) -> Option<Node> {
    let mut walk = Walk { text, at: text.len() - without_mark(text).len() };
    walk.node()
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl Walk<'_> {
    fn blank(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| is_blank(**byte)).count();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let is_there = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn node(&mut self) -> Option<Node> {
        self.blank();
        let start = self.at;
        let kind = match self.text.as_bytes().get(start)? {
            b'{' => Kind::Object(self.list(b'}', Self::member)?),
            b'[' => Kind::Array(self.list(b']', Self::node)?),
            b'"' => Kind::Text(self.string()?),
            _ => {
                let rest = self.text.as_bytes().get(start..)?;
                self.at += rest.iter().take_while(|byte| !is_blank(**byte) && !b",]}".contains(byte)).count();
                Kind::Other
            }
        };
        Some(Node { span: start..self.at, kind })
    }

    fn list<T>(&mut self, close: u8, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(close) {
            return Some(items);
        }
        loop {
            items.push(one(self)?);
            if self.take(close) {
                return Some(items);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn member(&mut self) -> Option<Member> {
        self.blank();
        let start = self.at;
        let key = self.string()?;
        if !self.take(b':') {
            return None;
        }
        Some(Member { key, start, value: self.node()? })
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let mut escaped = false;
        let end = self.text.as_bytes().get(start + 1..)?.iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        self.at = start + 1 + end + 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }
}

/// What JSON has between its words.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The blanks that stand directly before a place.
pub(super) fn blanks_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let count = before.bytes().rev().take_while(|byte| is_blank(*byte)).count();
    &before[before.len() - count..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_stands_where_it_says() -> Result<(), &'static str> {
        let text = "\u{feff} {\"a\\\"}\" : [ -1.5e3,true , \"x,]\\\\\" ] ,\"b\":{}}\n";
        let node = parse(text).ok_or("it is JSON")?;
        let at = |span: &Range<usize>| &text[span.clone()];
        assert_eq!(at(&node.span), text.trim_start_matches('\u{feff}').trim());
        let members = node.members().ok_or("an object")?;
        assert_eq!(members.iter().map(|member| member.key.as_str()).collect::<Vec<_>>(), ["a\"}", "b"]);
        let elements = members[0].value.children();
        assert_eq!(elements.iter().map(at).collect::<Vec<_>>(), ["-1.5e3", "true", "\"x,]\\\\\""]);
        assert_eq!(node.children().iter().map(at).collect::<Vec<_>>()[1], "\"b\":{}");
        assert_eq!(node.member("b").map(|value| at(&value.inside())), Some(""));
        assert_eq!(members[0].value.elements().and_then(|all| all[2].text()), Some("x,]\\"));
        Ok(())
    }

    #[test]
    fn what_is_cut_off_is_nothing() {
        let text = r#"{"a": [1, {"b": "c"}]}"#;
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_none(), "{}", &text[..end]);
        }
    }
}
