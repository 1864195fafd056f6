//! Reading and writing of single JSON values.

use bytes::Bytes;

use crate::base64;
use crate::error::{DecodeError, Problem};
use crate::message::{Message, ObjectContext, Strictness, read_message};
use crate::read::{Reader, Token};
use crate::text::{GAP, Text};
use crate::write;

/// A value of a field.
pub(crate) trait Codec: Sized {
    /// Reports whether a field without presence leaves this value out.
    fn is_default(&self) -> bool;

    fn write(&self, out: &mut Vec<u8>);

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// An enum of one of the protocols. Undeclared numbers are preserved.
pub trait Enum: Copy + Default + 'static {
    /// Returns the name in the declaration.
    fn name(self) -> Option<&'static str>;

    fn from_name(name: &str) -> Option<Self>;

    /// Returns the number in the declaration.
    fn number(self) -> i32;

    fn from_number(number: i32) -> Self;
}

impl Codec for Text {
    fn is_default(&self) -> bool {
        self.is_empty() && !self.is_gap()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        if self.is_gap() {
            out.push(GAP)
        } else {
            pinion_jsonl::json::append_escaped(out, self)
        }
        out.push(b'"');
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::new(&reader.string()?))
    }
}

impl Codec for Bytes {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        base64::append(out, self);
        out.push(b'"');
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let is_text = reader.peek()? == Token::Text;
        if !is_text && reader.strictness() == Strictness::Lenient {
            let mut json = Vec::new();
            reader.copy(&mut json)?;
            return Ok(json.into());
        }
        let at = reader.position();
        let text = reader.string()?;
        match base64::decode(&text) {
            Some(bytes) => Ok(bytes.into()),
            None => Err(DecodeError::new(Problem::WrongKind("base64"), at)),
        }
    }
}

impl Codec for bool {
    fn is_default(&self) -> bool {
        !self
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.boolean()
    }
}

impl Codec for u32 {
    fn is_default(&self) -> bool {
        *self == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        write::decimal(out, u64::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.integer("a whole number from 0 to 4294967295")
    }
}

impl Codec for i32 {
    fn is_default(&self) -> bool {
        *self == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        write::signed(out, i64::from(*self));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.integer("a whole number of 32 bits")
    }
}

impl Codec for u64 {
    fn is_default(&self) -> bool {
        *self == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        write::decimal(out, *self);
        out.push(b'"');
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.integer("a whole number from 0 to 18446744073709551615")
    }
}

impl Codec for i64 {
    fn is_default(&self) -> bool {
        *self == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        write::signed(out, *self);
        out.push(b'"');
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.integer("a whole number of 64 bits")
    }
}

impl<T: Message> Codec for T {
    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.encode_json(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        read_message(&mut message, reader, ObjectContext::Plain)?;
        Ok(message)
    }
}
