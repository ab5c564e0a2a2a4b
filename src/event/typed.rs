//! Canonical bytes straight from typed values, without a tree between: what every append does for every event.
//!
//! The same spelling as [`canonical::write`](super::canonical::write), by serde's own door: keys sorted bytewise, integers
//! only, no key twice. Only what bodies of events are made of is taken; anything else is an error, never a guess.

use std::borrow::Cow;
use std::cell::Cell;

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::canonical::{CanonicalError, write_text};

type Failure = serde_json::Error;

/// The canonical bytes of a typed value.
///
/// # Errors
///
/// [`CanonicalError::Json`] for a float, bytes, an enum with fields, or a map whose keys are not texts.
pub(super) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    thread_local!(static ROOM: Cell<Room> = Cell::default());
    let Room { mut fields, moved } = ROOM.take();
    // What a failure left behind.
    fields.clear();
    let mut out = Out { bytes: Vec::with_capacity(384), fields, moved };
    let written = value.serialize(Writer { out: &mut out }).map_err(CanonicalError::Json);
    let Out { bytes, fields, moved } = out;
    ROOM.set(Room { fields, moved });
    written.map(|()| bytes)
}

/// Key, and where a field begins and ends.
type Field = (Cow<'static, str>, usize, usize);

/// Room that one value after another is written in.
#[derive(Default)]
struct Room {
    fields: Vec<Field>,
    moved: Vec<u8>,
}

/// What is written, and room that every object of a value shares.
struct Out {
    bytes: Vec<u8>,
    /// The fields of the objects that are open: key, and where its `"key":value` begins and ends.
    fields: Vec<Field>,
    /// Where an object's fields stand while they are put in order.
    moved: Vec<u8>,
}

struct Writer<'o> {
    out: &'o mut Out,
}

fn refused<T>(what: &str) -> Result<T, Failure> {
    Err(Failure::custom(format_args!("{what} has no canonical form")))
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = List<'o>;
    type SerializeMap = Object<'o>;
    type SerializeStruct = Object<'o>;
    type SerializeTuple = Impossible<(), Failure>;
    type SerializeTupleStruct = Impossible<(), Failure>;
    type SerializeTupleVariant = Impossible<(), Failure>;
    type SerializeStructVariant = Impossible<(), Failure>;

    fn serialize_bool(self, value: bool) -> Result<(), Failure> {
        self.out.bytes.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Failure> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Failure> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Failure> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Failure> {
        if value < 0 {
            self.out.bytes.push(b'-');
        }
        Writer { out: self.out }.serialize_u64(value.unsigned_abs())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Failure> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Failure> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Failure> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Failure> {
        let mut digits = [0_u8; 20];
        let (mut at, mut rest) = (digits.len(), value);
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.out.bytes.extend_from_slice(&digits[at..]);
        Ok(())
    }

    fn serialize_f32(self, _: f32) -> Result<(), Failure> {
        refused("a float")
    }

    fn serialize_f64(self, _: f64) -> Result<(), Failure> {
        refused("a float")
    }

    fn serialize_char(self, value: char) -> Result<(), Failure> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Failure> {
        write_text(value, &mut self.out.bytes);
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Failure> {
        refused("a run of bytes")
    }

    fn serialize_none(self) -> Result<(), Failure> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Failure> {
        self.out.bytes.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Failure> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Failure> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Failure> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Failure> {
        refused("an enum with fields")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'o>, Failure> {
        self.out.bytes.push(b'[');
        Ok(List { out: self.out, empty: true })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Failure> {
        refused("a tuple")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, Failure> {
        refused("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Failure> {
        refused("an enum with fields")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object<'o>, Failure> {
        Ok(Object::begin(self.out))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Object<'o>, Failure> {
        Ok(Object::begin(self.out))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Failure> {
        refused("an enum with fields")
    }
}

struct List<'o> {
    out: &'o mut Out,
    empty: bool,
}

impl SerializeSeq for List<'_> {
    type Ok = ();
    type Error = Failure;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.bytes.push(b',');
        }
        value.serialize(Writer { out: self.out })
    }

    fn end(self) -> Result<(), Failure> {
        self.out.bytes.push(b']');
        Ok(())
    }
}

/// An object whose fields come in any order: each is written behind `start`, and they are put in order at the end unless
/// they came so.
struct Object<'o> {
    out: &'o mut Out,
    start: usize,
    first: usize,
    in_order: bool,
    key: Option<String>,
}

impl<'o> Object<'o> {
    fn begin(out: &'o mut Out) -> Self {
        out.bytes.push(b'{');
        let (start, first) = (out.bytes.len(), out.fields.len());
        Self { out, start, first, in_order: true, key: None }
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: Cow<'static, str>, value: &T) -> Result<(), Failure> {
        if let Some((before, ..)) = self.out.fields.get(self.first..).and_then(<[Field]>::last) {
            self.in_order &= *before < key;
            self.out.bytes.push(b',');
        }
        let from = self.out.bytes.len();
        write_text(&key, &mut self.out.bytes);
        self.out.bytes.push(b':');
        value.serialize(Writer { out: self.out })?;
        self.out.fields.push((key, from, self.out.bytes.len()));
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        let Out { bytes, fields, moved } = self.out;
        if self.in_order {
            bytes.push(b'}');
            fields.truncate(self.first);
            return Ok(());
        }
        let own = &mut fields[self.first..];
        own.sort_unstable();
        if let Some(twice) = own.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Failure::custom(format_args!("the key {:?} stands twice", twice[0].0)));
        }
        moved.clear();
        moved.extend_from_slice(&bytes[self.start..]);
        bytes.truncate(self.start);
        for (index, (_, from, to)) in own.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            bytes.extend_from_slice(&moved[from - self.start..to - self.start]);
        }
        bytes.push(b'}');
        fields.truncate(self.first);
        Ok(())
    }
}

impl SerializeStruct for Object<'_> {
    type Ok = ();
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Failure> {
        self.field(key.into(), value)
    }

    fn end(self) -> Result<(), Failure> {
        self.finish()
    }
}

impl SerializeMap for Object<'_> {
    type Ok = ();
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        let key = serde_json::to_value(key)?;
        let text = key.as_str().ok_or_else(|| Failure::custom("a key that is not a text"))?;
        self.key = Some(text.to_owned());
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let key = self.key.take().ok_or_else(|| Failure::custom("a value without a key"))?;
        self.field(key.into(), value)
    }

    fn end(self) -> Result<(), Failure> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::canonical;
    use serde_json::json;

    #[test]
    fn typed_values_and_trees_are_spelled_alike() {
        let values = [
            json!({"b": [1, -2, u64::MAX, i64::MIN, null, true], "a": {"z": "é\n\"", "y": {}}, "": []}),
            json!("\u{1}\u{7f}/\\"),
            json!({"é": 1, "z": 2, "Z": 3}),
        ];
        for value in values {
            assert_eq!(to_bytes(&value).ok(), canonical::write(&value).ok(), "{value}");
        }
    }

    #[test]
    fn fields_are_put_in_order_wherever_they_stand() {
        #[derive(serde::Serialize)]
        struct Inner {
            y: &'static str,
            x: u8,
        }
        #[derive(serde::Serialize)]
        struct Outer {
            a: Inner,
            z: Vec<Inner>,
            b: Option<Inner>,
        }
        let inner = |x| Inner { y: "\"", x };
        let value = Outer { a: inner(1), z: vec![inner(2), inner(3)], b: Some(inner(4)) };
        let text = to_bytes(&value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let inner = |x| format!(r#"{{"x":{x},"y":"\""}}"#);
        let expected = format!(r#"{{"a":{},"b":{},"z":[{},{}]}}"#, inner(1), inner(4), inner(2), inner(3));
        assert_eq!(text, Some(expected));
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        assert!(to_bytes(&0.5).is_err());
        assert!(to_bytes(&(1, 2)).is_err());
        assert!(to_bytes(&std::collections::BTreeMap::from([(1, 2)])).is_err());
    }
}
