//! How something new looks inside a text that somebody else laid out: its line ends, its indentation, or all on one line.
//!
//! What is put in is one piece at one place, and everything beside it stays. A container that was there, empty, is told from
//! one that came with the piece by a blank before its closing bracket, so that whoever takes the piece out again knows what
//! to leave.

use std::ops::Range;

use super::text::{Node, blanks_before};

/// A value to be written.
pub(super) enum Piece<'a> {
    Object(Vec<(&'a str, Piece<'a>)>),
    Array(Vec<Piece<'a>>),
    Text(&'a str),
}

/// How a text is laid out.
pub(super) struct Style {
    /// How deep each level is indented.
    unit: String,
    /// How a line ends where no other line says it.
    end: &'static str,
    /// Blanks behind `:` and `,` where all stands on one line.
    gap: &'static str,
}

/// Where a value begins: at so much indentation behind a line end, or on the line of what stands before it.
#[derive(Clone)]
pub(super) struct Lines {
    end: &'static str,
    indent: String,
}

/// Text to be put in at a place.
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

impl Style {
    /// The style of a text that has this value.
    pub(super) fn of(text: &str, top: &Node) -> Self {
        let first = top.members().and_then(<[_]>::first);
        let unit = first.and_then(|member| lines(text, member.start)).map_or_else(|| "  ".into(), |lines| lines.indent);
        let colon = first.map(|member| blanks_before(text, member.value.span.start));
        let gap = if colon.is_some_and(str::is_empty) { "" } else { " " };
        Self { unit, end: if text.contains("\r\n") { "\r\n" } else { "\n" }, gap }
    }

    /// The style of a text that there is not yet.
    pub(super) fn new() -> Self {
        Self { unit: "  ".into(), end: "\n", gap: " " }
    }

    /// Puts members or elements (already with their keys) behind the last one of a container. `owner` is where its own key
    /// or itself stands: what an empty one takes its indentation from.
    pub(super) fn insert(&self, text: &str, into: &Node, owner: Option<usize>, items: &[Item<'_>]) -> Insertion {
        let Some(last) = into.children().pop() else { return self.insert_first(text, into, owner, items) };
        let place = lines(text, last.start);
        let mut piece = String::new();
        for item in items {
            piece.push(',');
            match &place {
                Some(lines) => piece.extend([lines.end, lines.indent.as_str()]),
                None => piece.push_str(self.gap),
            }
            self.item(item, place.as_ref(), &mut piece);
        }
        Insertion { at: last.end, text: piece }
    }

    /// The only ones of a container that was empty, with the blank that says so.
    fn insert_first(&self, text: &str, into: &Node, owner: Option<usize>, items: &[Item<'_>]) -> Insertion {
        let outer = match owner {
            Some(owner) => lines(text, owner),
            None => Some(Lines { end: self.end, indent: String::new() }),
        };
        let mut piece = String::new();
        self.list(items, outer.as_ref(), &mut piece);
        piece.push(' ');
        if let Some(lines) = &outer {
            piece.extend([lines.end, lines.indent.as_str()]);
        }
        Insertion { at: into.inside().start, text: piece }
    }

    /// A whole text.
    pub(super) fn whole(&self, piece: &Piece<'_>) -> String {
        let mut text = String::new();
        self.value(piece, Some(&Lines { end: self.end, indent: String::new() }), &mut text);
        text + self.end
    }

    fn item(&self, (key, piece): &Item<'_>, lines: Option<&Lines>, out: &mut String) {
        if let Some(key) = key {
            quote(key, out);
            out.extend([":", if lines.is_some() { " " } else { self.gap }]);
        }
        self.value(piece, lines, out);
    }

    /// Items one level deeper than `outer`, with commas between.
    fn list(&self, items: &[Item<'_>], outer: Option<&Lines>, out: &mut String) {
        let inner = outer.map(|outer| Lines { end: outer.end, indent: format!("{}{}", outer.indent, self.unit) });
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            match &inner {
                Some(lines) => out.extend([lines.end, lines.indent.as_str()]),
                None if number > 0 => out.push_str(self.gap),
                None => {}
            }
            self.item(item, inner.as_ref(), out);
        }
    }

    fn value(&self, piece: &Piece<'_>, lines: Option<&Lines>, out: &mut String) {
        let (open, items, close): (_, Vec<Item<'_>>, _) = match piece {
            Piece::Text(text) => return quote(text, out),
            Piece::Object(members) => ('{', members.iter().map(|(key, value)| (Some(*key), value)).collect(), '}'),
            Piece::Array(elements) => ('[', elements.iter().map(|value| (None, value)).collect(), ']'),
        };
        out.push(open);
        self.list(&items, lines, out);
        if let Some(lines) = lines {
            out.extend([lines.end, lines.indent.as_str()]);
        }
        out.push(close);
    }
}

/// A member, or an element, which has no key.
pub(super) type Item<'a> = (Option<&'a str>, &'a Piece<'a>);

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// The line end and the indentation before a place, where it begins a line.
fn lines(text: &str, at: usize) -> Option<Lines> {
    let blanks = blanks_before(text, at);
    let (before, indent) = blanks.rsplit_once('\n')?;
    Some(Lines { end: if before.ends_with('\r') { "\r\n" } else { "\n" }, indent: indent.into() })
}

/// What has to be cut out so that the child with this number is gone, and the text is as it was before it was put in.
///
/// Nothing where the container came with its only child and goes with it.
pub(super) fn cut(text: &str, from: &Node, number: usize) -> Option<Range<usize>> {
    let children = from.children();
    let child = children.get(number)?.clone();
    if let Some(before) = number.checked_sub(1).and_then(|before| children.get(before)) {
        return Some(before.end..child.end);
    }
    if let Some(next) = children.get(1) {
        return Some(child.start..next.start);
    }
    let inside = from.inside();
    let mark = format!(" {}", outer_blanks(text, from, &child)?);
    text[child.end..inside.end].starts_with(&mark).then(|| inside.start..child.end + mark.len())
}

/// The line end and indentation of a container, as its only child was laid out in it: what stands before the child without
/// one level. The level is seen inside the child.
fn outer_blanks<'t>(text: &'t str, container: &Node, child: &Range<usize>) -> Option<&'t str> {
    let lead = blanks_before(text, child.start);
    if !lead.contains('\n') {
        return Some("");
    }
    let value = match (container.members(), container.elements()) {
        (Some(members), _) => members.first().map(|member| &member.value),
        (None, elements) => elements.and_then(<[_]>::first),
    };
    let deeper = blanks_before(text, value?.children().first()?.start);
    lead.strip_suffix(deeper.strip_prefix(lead)?)
}
