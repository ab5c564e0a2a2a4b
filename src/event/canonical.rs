//! One value, one spelling: the JSON that digests are made over.
//!
//! Keys are sorted bytewise, there is no white space, numbers are integers, text is UTF-8 as it is (only `"`, `\` and
//! control characters are escaped), no key stands twice. The writer sorts by itself, so that its output does not depend
//! on which features some other crate switches on in `serde_json`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a value has no canonical form, or bytes are not one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// A number with a fraction or an exponent, or one that fits neither `u64` nor `i64`.
    #[error("the number {found} is not an integer of 64 bits")]
    NotAnInteger {
        /// The number as text.
        found: String,
    },
    /// Not JSON, or a key that stands twice.
    #[error("it does not parse")]
    Json(#[source] serde_json::Error),
}

/// The canonical bytes of a value.
///
/// # Errors
///
/// [`CanonicalError::NotAnInteger`] for a float.
///
/// ```
/// # use throughline::event::canonical;
/// let value = serde_json::json!({"b": [1, null], "a": "é\n"});
/// assert_eq!(canonical::write(&value)?, r#"{"a":"é\n","b":[1,null]}"#.as_bytes());
/// assert!(canonical::write(&serde_json::json!(0.5)).is_err());
/// # Ok::<(), canonical::CanonicalError>(())
/// ```
pub fn write(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::with_capacity(256);
    write_value(value, &mut out)?;
    Ok(out)
}

fn write_value(value: &Value, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => {
            if !number.is_u64() && !number.is_i64() {
                return Err(CanonicalError::NotAnInteger { found: number.to_string() });
            }
            out.extend_from_slice(number.to_string().as_bytes());
        }
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(item, out)?;
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            out.push(b'{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_text(key, out);
                out.push(b':');
                write_value(&fields[key], out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    out.push(b'"');
    // Nearly every text is plain. Without a way out of the loop it is a few instructions for many bytes.
    if !bytes.iter().fold(false, |special, byte| special | is_special(byte)) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let mut from = 0;
    while let Some(plain) = bytes[from..].iter().position(is_special) {
        let at = from + plain;
        out.extend_from_slice(&bytes[from..at]);
        match bytes[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        }
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Parses JSON strictly: a key that stands twice and a number that is not a 64-bit integer are refused.
///
/// # Errors
///
/// [`CanonicalError::Json`] with the place.
pub fn parse(bytes: &[u8]) -> Result<Value, CanonicalError> {
    serde_json::from_slice::<Strict>(bytes).map(|strict| strict.0).map_err(CanonicalError::Json)
}

/// A JSON value whose objects have each key once and whose numbers are integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strict(pub Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value with unique keys and 64-bit integers")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Err(E::custom(format_args!("the number {value} is not an integer of 64 bits")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((key, Strict(value))) = access.next_entry::<String, Strict>()? {
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} stands twice")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: Result<&str, ()>) {
        let found = parse(input.as_bytes()).and_then(|value| write(&value));
        assert_eq!(found.as_deref().map_err(|_| ()), expected.map(str::as_bytes), "{input}");
    }

    #[test]
    fn every_spelling_of_a_value_has_one_canonical_form() {
        check(r#" { "b" : 1 , "a" : "x" } "#, Ok(r#"{"a":"x","b":1}"#));
        check(r#"{"\u0061":"\u00e9\u000a\u0001"}"#, Ok("{\"a\":\"é\\n\\u0001\"}"));
        check(r#"[-1,0,18446744073709551615,true,null]"#, Ok("[-1,0,18446744073709551615,true,null]"));
    }

    #[test]
    fn keys_are_sorted_by_bytes_not_by_letters() {
        check(r#"{"é":1,"z":2,"Z":3}"#, Ok(r#"{"Z":3,"z":2,"é":1}"#));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        check(r#"{"a":1,"a":1}"#, Err(()));
        check(r#"[{"x":{"a":1,"\u0061":2}}]"#, Err(()));
    }

    #[test]
    fn numbers_that_are_not_64_bit_integers_are_refused() {
        for input in ["1.0", "1e3", "18446744073709551616", "-9223372036854775809"] {
            check(input, Err(()));
        }
    }
}
