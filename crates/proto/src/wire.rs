//! The binary form of messages: fields in the order of their numbers, written once, read without
//! copying payloads.
//!
//! Lengths of nested messages are computed before anything is written, so that every byte is
//! written at its final position.

use bytes::Bytes;

use crate::error::DecodeError;
use crate::input::Input;
use crate::message::Message;
use crate::text::Text;

/// The smallest payload, in bytes, that becomes its own piece: copying a smaller one takes less
/// time than sending one more buffer.
const MIN_PIECE_BYTES: usize = 16 * 1024;

/// The binary form of a message. The messages of [`crate::hub`] have one.
///
/// ```
/// use pinion_proto::{Binary, hub::InvokeResponse};
///
/// let response = InvokeResponse { output: "{}".into(), error: None };
/// let bytes = response.to_bytes();
/// assert_eq!(bytes, b"\x0a\x02{}"[..]);
/// assert_eq!(InvokeResponse::decode(bytes), Ok(response));
/// ```
pub trait Binary: Message + Parts {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut output = Output::new(std::mem::take(out), usize::MAX);
        output.bytes.reserve(self.measure());
        self.put_parts(&mut output);
        *out = output.bytes;
    }

    /// Returns the encoded size in bytes.
    fn encoded_len(&self) -> usize {
        self.measure()
    }

    fn to_bytes(&self) -> Bytes {
        let mut output = Output::new(Vec::with_capacity(self.measure()), usize::MAX);
        self.put_parts(&mut output);
        output.bytes.into()
    }

    /// Returns `head` and the message in pieces to send one after the other: large payloads are
    /// separate pieces, shared with the message instead of copied.
    fn to_pieces(&self, head: Vec<u8>) -> Vec<Bytes> {
        let mut output = Output::new(head, MIN_PIECE_BYTES);
        self.put_parts(&mut output);
        output.into_pieces()
    }

    /// Decodes a message. Its payloads are slices of `bytes`; undeclared fields are ignored.
    fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        let mut input = Input::new(bytes);
        input.message(&mut message)?;
        Ok(message)
    }
}

/// The fields of a message in binary form. Only generated code implements it.
pub trait Parts {
    /// Returns the encoded size of all fields in bytes.
    fn measure(&self) -> usize;

    /// Appends every field that is set.
    fn put_parts(&self, out: &mut Output);

    /// Reads the value after `key`, which is the number of a field and its wire type.
    fn take_part(&mut self, key: u32, input: &mut Input) -> Result<(), DecodeError>;
}

/// The destination of an encoded message.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// Payloads that are not copied, and their offsets in `bytes`.
    shared: Vec<(usize, Bytes)>,
    /// The smallest payload, in bytes, that is not copied.
    large: usize,
}

impl Output {
    fn new(bytes: Vec<u8>, large: usize) -> Self {
        let shared = Vec::new();
        Self {
            bytes,
            shared,
            large,
        }
    }

    fn payload(&mut self, payload: &Bytes) {
        if payload.len() < self.large {
            self.bytes.extend_from_slice(payload)
        } else {
            self.shared.push((self.bytes.len(), payload.clone()))
        }
    }

    fn into_pieces(self) -> Vec<Bytes> {
        let mut rest = Bytes::from(self.bytes);
        let mut pieces = Vec::with_capacity(2 * self.shared.len() + 1);
        let mut before = 0;
        for (at, payload) in self.shared {
            pieces.push(rest.split_to(at - before));
            pieces.push(payload);
            before = at;
        }
        pieces.push(rest);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    pub(crate) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// Returns the encoded size of a number in bytes.
pub(crate) const fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// A value of a field in binary form. It includes its length prefix but not the key of the field.
pub(crate) trait WireValue: Default {
    /// Reports whether a field without presence leaves this value out.
    fn is_zero(&self) -> bool;

    /// Returns the encoded size in bytes.
    fn len(&self) -> usize;

    fn put(&self, out: &mut Output);

    /// Reads the value into this one; messages are merged.
    fn take(&mut self, input: &mut Input) -> Result<(), DecodeError>;
}

impl WireValue for Text {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        let length = str::len(self);
        varint_len(length as u64) + length
    }

    fn put(&self, out: &mut Output) {
        out.varint(str::len(self) as u64);
        out.bytes.extend_from_slice(self.as_bytes());
    }

    fn take(&mut self, input: &mut Input) -> Result<(), DecodeError> {
        *self = input.text()?;
        Ok(())
    }
}

impl WireValue for Bytes {
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    fn len(&self) -> usize {
        let length = Self::len(self);
        varint_len(length as u64) + length
    }

    fn put(&self, out: &mut Output) {
        out.varint(Self::len(self) as u64);
        out.payload(self);
    }

    fn take(&mut self, input: &mut Input) -> Result<(), DecodeError> {
        *self = input.payload()?;
        Ok(())
    }
}

/// Implements [`WireValue`] for types that are encoded as one number.
macro_rules! number {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl WireValue for $type {
            fn is_zero(&self) -> bool {
                *self == Self::default()
            }

            fn len(&self) -> usize {
                varint_len($to(*self))
            }

            fn put(&self, out: &mut Output) {
                out.varint($to(*self));
            }

            fn take(&mut self, input: &mut Input) -> Result<(), DecodeError> {
                *self = $from(input.varint()?);
                Ok(())
            }
        }
    )*};
}

number! {
    bool: u64::from, |value| value != 0;
    i32: |value| i64::from(value) as u64, |value| value as i32;
    i64: |value| value as u64, |value| value as i64;
}

impl<T: Binary> WireValue for T {
    fn is_zero(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        let length = self.measure();
        varint_len(length as u64) + length
    }

    fn put(&self, out: &mut Output) {
        out.varint(self.measure() as u64);
        self.put_parts(out);
    }

    fn take(&mut self, input: &mut Input) -> Result<(), DecodeError> {
        input.inside(|input| input.message(self))
    }
}
