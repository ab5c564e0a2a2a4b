//! A strict JSON reader that keeps no value.
//!
//! Values are read for their *shape*: whether they are whole, where they end, and the few short texts that the caller asks
//! to keep. So a record of any size costs one buffer, and nesting costs a byte a level. The grammar is that of `JSON.parse`
//! over text whose invalid UTF-8 was replaced: bytes that are not UTF-8 may stand inside a string and nowhere else.

use crate::provider::claude::reader::{Fail, Reader};

/// How deep values may nest.
const DEPTH_MAX: usize = 1 << 20;
/// How long a text that is kept may be.
const KEPT_BYTES_MAX: usize = 128 * 1024;

impl Reader<'_> {
    /// Reads an object that the caller knows to begin here: `member` gets each key and must read or skip its value.
    pub(in crate::provider::claude) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        self.at += 1;
        if self.token()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        let mut key = Vec::new();
        loop {
            if self.token()? != b'"' {
                return Err(Fail::Syntax);
            }
            key.clear();
            self.string(Some(&mut key))?;
            self.colon()?;
            member(self, &key)?;
            match self.token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(Fail::Syntax),
            }
            self.token()?;
        }
    }

    /// The first byte of the value that comes next.
    pub(in crate::provider::claude) fn ahead(&mut self) -> Result<u8, Fail> {
        self.token()
    }

    /// Reads a text into `kept`, or skips a value of another kind (or a text beyond any use). Whether there is a text.
    pub(in crate::provider::claude) fn text(&mut self, kept: &mut Vec<u8>) -> Result<bool, Fail> {
        kept.clear();
        if self.token()? != b'"' {
            self.value()?;
            return Ok(false);
        }
        self.string(Some(kept))?;
        Ok(kept.len() <= KEPT_BYTES_MAX)
    }

    fn colon(&mut self) -> Result<(), Fail> {
        if self.token()? != b':' {
            return Err(Fail::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a value, whatever it is.
    pub(in crate::provider::claude) fn value(&mut self) -> Result<(), Fail> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.token()? {
                b'{' => {
                    self.at += 1;
                    if self.token()? == b'}' {
                        self.at += 1;
                    } else {
                        self.descend(&mut open, b'}')?;
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.token()? == b']' {
                        self.at += 1;
                    } else {
                        self.descend(&mut open, b']')?;
                        continue;
                    }
                }
                b'"' => self.string(None)?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return Err(Fail::Syntax),
            }
            if !self.ascend(&mut open)? {
                return Ok(());
            }
        }
    }

    fn descend(&self, open: &mut Vec<u8>, closer: u8) -> Result<(), Fail> {
        if open.len() >= DEPTH_MAX {
            return Err(Fail::Syntax);
        }
        open.push(closer);
        Ok(())
    }

    /// After a value: closes what ends here. Whether another value follows.
    fn ascend(&mut self, open: &mut Vec<u8>) -> Result<bool, Fail> {
        while let Some(&closer) = open.last() {
            match self.token()? {
                b',' => {
                    self.at += 1;
                    if closer == b'}' {
                        self.key()?;
                    }
                    return Ok(true);
                }
                byte if byte == closer => {
                    self.at += 1;
                    open.pop();
                }
                _ => return Err(Fail::Syntax),
            }
        }
        Ok(false)
    }

    fn key(&mut self) -> Result<(), Fail> {
        if self.token()? != b'"' {
            return Err(Fail::Syntax);
        }
        self.string(None)?;
        self.colon()
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fail> {
        for &expected in word {
            if self.next()? != expected {
                self.at -= 1;
                return Err(Fail::Syntax);
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fail> {
        if self.peek()? == Some(b'-') {
            self.at += 1;
        }
        if self.peek()? == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek()? == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek()? {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek()? {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Fail> {
        let mut any = false;
        while let Some(b'0'..=b'9') = self.peek()? {
            self.at += 1;
            any = true;
        }
        match (any, self.peek()?) {
            (true, _) => Ok(()),
            (false, None) => Err(Fail::Ends),
            (false, Some(_)) => Err(Fail::Syntax),
        }
    }

    /// Reads a string that begins here; keeps its text, escapes resolved, up to a bound.
    fn string(&mut self, mut keep: Option<&mut Vec<u8>>) -> Result<(), Fail> {
        self.at += 1;
        loop {
            let rest = self.rest()?;
            let plain = if keep.is_some() { plain_len(rest) } else { skim_len(rest) };
            let next = rest.get(plain).copied();
            if let Some(kept) = keep.as_deref_mut() {
                let room = (KEPT_BYTES_MAX + 1).saturating_sub(kept.len());
                kept.extend_from_slice(&rest[..plain.min(room)]);
            }
            self.at += plain;
            match next {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(keep.as_deref_mut())?;
                }
                Some(_) => return Err(Fail::Syntax),
                None if plain == 0 => return Err(Fail::Ends),
                None => {}
            }
        }
    }

    /// Reads what follows a backslash.
    fn escape(&mut self, mut keep: Option<&mut Vec<u8>>) -> Result<(), Fail> {
        let mut high = None;
        loop {
            let unit = match self.next()? {
                byte @ (b'"' | b'\\' | b'/') => u32::from(byte),
                b'b' => 8,
                b'f' => 12,
                b'n' => 10,
                b'r' => 13,
                b't' => 9,
                b'u' => self.hex()?,
                _ => {
                    self.at -= 1;
                    return Err(Fail::Syntax);
                }
            };
            let pair = high.take().map(|high: u32| match unit {
                0xdc00..=0xdfff => Ok(0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00)),
                _ => Err(high),
            });
            if let Some(kept) = keep.as_deref_mut() {
                match pair {
                    Some(Ok(code)) => keep_char(kept, code),
                    Some(Err(high)) => keep_char(kept, high),
                    None => {}
                }
                if !matches!((pair, unit), (Some(Ok(_)), _) | (_, 0xd800..=0xdbff)) {
                    keep_char(kept, unit);
                }
            }
            if !matches!((pair, unit), (None | Some(Err(_)), 0xd800..=0xdbff)) {
                return Ok(());
            }
            // The first half of a pair: the second is an escape of its own.
            if self.peek()? != Some(b'\\') {
                if let Some(kept) = keep {
                    keep_char(kept, unit);
                }
                return Ok(());
            }
            self.at += 1;
            high = Some(unit);
        }
    }

    fn hex(&mut self) -> Result<u32, Fail> {
        let mut unit = 0;
        for _ in 0..4 {
            let byte = self.next()?;
            let Some(digit) = char::from(byte).to_digit(16) else {
                self.at -= 1;
                return Err(Fail::Syntax);
            };
            unit = unit * 16 + digit;
        }
        Ok(unit)
    }
}

/// Keeps a character. A lone half of a pair, which no UTF-8 text can hold, is kept as a replacement and its number: such
/// texts compare equal with themselves, which is all that they are for.
fn keep_char(kept: &mut Vec<u8>, code: u32) {
    match char::from_u32(code) {
        Some(c) => kept.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => kept.extend_from_slice(format!("\u{fffd}{code:04x}").as_bytes()),
    }
}

/// As [`plain_len`], but past short escapes too.
fn skim_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += plain_len(&bytes[at..]);
        match bytes.get(at..at + 2) {
            Some([b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't']) => at += 2,
            Some(_) | None => return at,
        }
    }
}

/// How many bytes at the front of `bytes` neither end a string nor escape nor are forbidden in it.
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES << 7;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // A byte of `equal` is zero where the word has that byte; the borrow only runs upwards, so the lowest mark is true.
        let zero = |equal: u64| equal.wrapping_sub(ONES) & !equal;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let marks = (zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c)) | control) & HIGHS;
        if marks != 0 {
            return index * 8 + (marks.trailing_zeros() / 8) as usize;
        }
    }
    let done = words.len() * 8;
    let rest = &bytes[done..];
    done + rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<u64, Fail> {
        let mut source = bytes;
        let mut reader = Reader::new(&mut source);
        reader.open()?;
        reader.value()?;
        reader.close()?;
        Ok(reader.offset())
    }

    #[test]
    fn it_accepts_what_json_accepts() {
        for text in [
            "{}",
            "[]",
            "0",
            "-0.5e+10",
            "1E9",
            "true",
            "false",
            "null",
            r#""a\u00e9\n\"""#,
            "[1,[2,{\"a\":[]}]]",
            "{\"a\": {}, \"b\":1}",
            "[\n1,\n2\n]",
            "\"\u{7f}\u{e4}\"",
            r#""\ud800""#,
        ] {
            assert_eq!(whole(text.as_bytes()).ok(), Some(text.len() as u64), "{text}");
        }
        assert!(whole(b"\"\xff\xfe\"").is_ok());
    }

    #[test]
    fn it_tells_a_beginning_from_a_mistake() {
        for text in [
            "{",
            "[",
            "[1",
            "[1,",
            "{\"a\"",
            "{\"a\":",
            "\"ab",
            "\"a\\",
            "\"\\u00",
            "tru",
            "-",
            "1.",
            "1e",
            "1e+",
            "[{\"a\":1}",
        ] {
            assert!(matches!(whole(text.as_bytes()), Err(Fail::Ends)), "{text}");
        }
        for text in [
            "}",
            "x",
            "[1 2]",
            "{1:2}",
            "{\"a\" 1}",
            "[1,]",
            "{\"a\":1,}",
            "truth",
            "01",
            "+1",
            ".5",
            "\"\\x\"",
            "\"\\u00g0\"",
            "\"\n\"",
            "\"\0\"",
            "1 1",
            "{}{}",
            "[}",
            "\u{feff}1",
        ] {
            assert!(matches!(whole(text.as_bytes()), Err(Fail::Syntax)), "{text}");
        }
    }

    #[test]
    fn plain_bytes_are_counted_exactly() {
        for stop in 0..=255u8 {
            for lead in 0..20 {
                for filler in [b'a', 0x80, 0xff, b'!', b'#', b'[', b']', 0x7f, 0x20] {
                    let mut bytes = vec![filler; lead];
                    bytes.push(stop);
                    bytes.extend_from_slice(&[filler; 9]);
                    let special = stop < 0x20 || stop == b'"' || stop == b'\\';
                    assert_eq!(plain_len(&bytes), if special { lead } else { lead + 10 }, "{stop} {lead} {filler}");
                }
            }
        }
    }

    #[test]
    fn texts_are_read_with_their_escapes_resolved() {
        for (written, read) in [
            (r#""a\/b\n\u00e9""#, "a/b\n\u{e9}"),
            (r#""\ud83d\ude00!""#, "\u{1f600}!"),
            (r#""\ud83dx""#, "\u{fffd}d83dx"),
            (r#""\ud83d\n""#, "\u{fffd}d83d\n"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}d83d\u{1f600}"),
            (r#""\ude00""#, "\u{fffd}de00"),
        ] {
            let mut source = written.as_bytes();
            let mut kept = Vec::new();
            assert!(matches!(Reader::new(&mut source).text(&mut kept), Ok(true)), "{written}");
            assert_eq!(String::from_utf8_lossy(&kept), read, "{written}");
        }
    }

    #[test]
    fn deep_nesting_is_no_recursion() {
        let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
        assert!(whole(&deep).is_ok());
        assert!(matches!(whole(&vec![b'['; DEPTH_MAX + 2]), Err(Fail::Syntax)));
    }
}
