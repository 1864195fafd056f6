//! The common interface of all messages.

use std::fmt::Debug;

use crate::error::{DecodeError, Problem};
use crate::read::Reader;
use crate::write;

/// The treatment of undeclared fields, types and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// They are errors.
    Strict,
    /// Undeclared fields and enum names are ignored; messages of an unknown type are preserved
    /// unchanged. Fields may have their other names, and payloads may be any JSON (see
    /// [`crate::hub`]).
    Lenient,
}

/// The names of a field.
#[derive(Debug)]
pub struct Name {
    pub(crate) json: &'static str,
    pub(crate) proto: &'static str,
    /// Other names that lenient readers accept.
    pub(crate) also: &'static [&'static str],
    /// The number in the binary form.
    pub(crate) number: u32,
    /// Fields with the same number exclude each other; 0 excludes none.
    pub(crate) oneof: i32,
}

/// The fields of a message. Only generated code implements it.
pub trait Fields {
    /// Returns the name of the message with its package.
    fn full_name(&self) -> &'static str;

    /// Returns the fields in the order of the declaration.
    fn names(&self) -> &'static [Name];

    /// Appends every field that is set, each followed by a comma.
    fn write_fields(&self, out: &mut Vec<u8>);

    /// Reads the value of the field at `index` of [`Fields::names`].
    fn read_field(&mut self, index: usize, reader: &mut Reader<'_>) -> Result<(), DecodeError>;
}

/// A message of one of the protocols.
pub trait Message: Fields + Clone + Debug + Default + PartialEq + Send + Sync + 'static {
    /// The name of the message with its package, as in `pinocchio.chatapp.v1.ChatTextPatch`.
    const FULL_NAME: &'static str;

    /// Appends the message as a JSON object.
    fn encode_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_fields(out);
        write::close(out, b'}');
    }

    /// Returns the message as a JSON object.
    fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(512);
        self.encode_json(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Decodes a text that holds one message and nothing else.
    fn decode_json(text: &[u8], strictness: Strictness) -> Result<Self, DecodeError> {
        let mut message = Self::default();
        let mut reader = Reader::new(text, strictness)?;
        read_message(&mut message, &mut reader, ObjectContext::Plain)?;
        reader.end()?;
        Ok(message)
    }
}

/// The context of a message's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectContext {
    /// Alone, or in a field of its type.
    Plain,
    /// In a field of type `Any`, with an `@type` among its members.
    Any,
}

pub(crate) fn read_message(
    message: &mut dyn Fields,
    reader: &mut Reader<'_>,
    context: ObjectContext,
) -> Result<(), DecodeError> {
    let names = message.names();
    let mut seen = 0_u64;
    let mut taken = 0_u64;
    reader.members(&mut |reader, key| {
        let at = reader.position();
        let wrong = |problem| Err(DecodeError::new(problem, at));
        let lenient = reader.strictness() == Strictness::Lenient;
        let is_called = |name: &Name| {
            name.json == key || name.proto == key || lenient && name.also.contains(&&*key)
        };
        let known = names.iter().position(is_called);
        let Some(index) = known else {
            return match reader.strictness() {
                _ if context == ObjectContext::Any && key == "@type" => reader.skip(),
                Strictness::Lenient => reader.skip(),
                Strictness::Strict => wrong(Problem::UnknownField).map_err(|e| e.inside(&key)),
            };
        };
        let name = &names[index];
        let mut read = || {
            if seen & (1 << index) != 0 {
                return wrong(Problem::Duplicate);
            }
            seen |= 1 << index;
            if reader.null()? {
                return Ok(());
            }
            if name.oneof != 0 {
                if taken & (1 << name.oneof) != 0 {
                    return wrong(Problem::Excluded);
                }
                taken |= 1 << name.oneof;
            }
            message.read_field(index, reader)
        };
        read().map_err(|error| error.inside(name.json))
    })
}
