//! Messages that are sent with the name of their type.

use std::sync::Arc;

use crate::codec::Codec;
use crate::error::{DecodeError, Problem};
use crate::generated::Payload;
use crate::message::{ObjectContext, Strictness, read_message};
use crate::read::Reader;
use crate::text::Text;
use crate::write;

/// The prefix of the type name in `@type`.
pub const TYPE_URL: &str = "type.googleapis.com/";

/// A message of any type, shared by its owners.
pub type Any = Arc<Payload>;

/// Wraps a message as the value of a field of type `Any`.
pub fn any(payload: impl Into<Payload>) -> Option<Any> {
    Some(Arc::new(payload.into()))
}

/// A message of a type that this crate does not declare.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unknown {
    /// The `@type`; empty if the field is set but holds no message.
    pub type_url: Text,
    /// The other members as JSON without blanks and without the enclosing braces.
    pub members: Text,
}

impl Payload {
    /// Returns the name of the message with its package.
    pub fn full_name(&self) -> &str {
        match (self, self.fields()) {
            (Self::Unknown(it), _) => after_slash(&it.type_url),
            (_, Some(fields)) => fields.full_name(),
            (_, None) => "",
        }
    }

    /// Appends the message as a JSON object without its type.
    pub fn encode_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_members(out);
        write::close(out, b'}');
    }

    /// Appends the message as a JSON object with `@type`.
    pub fn encode_any(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        match self {
            Self::Unknown(it) => write::plain(out, "\"@type\":", &it.type_url),
            _ => {
                out.extend_from_slice(b"\"@type\":\"");
                out.extend_from_slice(TYPE_URL.as_bytes());
                out.extend_from_slice(self.full_name().as_bytes());
                out.extend_from_slice(b"\",");
            }
        }
        self.write_members(out);
        write::close(out, b'}');
    }

    /// Decodes the message with this name and package from an object without its type.
    pub fn decode_json(
        full_name: &str,
        text: &[u8],
        strictness: Strictness,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(text, strictness)?;
        let payload = match Self::named(full_name) {
            Some(mut payload) => {
                if let Some(fields) = payload.fields_mut() {
                    read_message(fields, &mut reader, ObjectContext::Plain)?;
                }
                payload
            }
            None => unknown(format!("{TYPE_URL}{full_name}").into(), &mut reader)?,
        };
        reader.end()?;
        Ok(payload)
    }

    fn write_members(&self, out: &mut Vec<u8>) {
        match (self, self.fields()) {
            (_, Some(fields)) => fields.write_fields(out),
            (Self::Unknown(it), None) if !it.members.is_empty() => {
                out.extend_from_slice(it.members.as_bytes());
                out.push(b',');
            }
            _ => {}
        }
    }
}

impl From<Unknown> for Payload {
    fn from(message: Unknown) -> Self {
        Self::Unknown(message)
    }
}

impl Codec for Any {
    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.encode_any(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.position();
        let start = reader.clone();
        let mut type_url = None;
        let mut others = 0_usize;
        reader.members(&mut |reader, key| {
            if key != "@type" {
                others += 1;
                return reader.skip();
            }
            let at = reader.position();
            match type_url.replace(Text::from(reader.string()?.into_owned())) {
                None => Ok(()),
                Some(_) => Err(DecodeError::new(Problem::Duplicate, at).inside("@type")),
            }
        })?;
        let Some(type_url) = type_url.filter(|it| !it.is_empty()) else {
            return match others {
                0 => Ok(Arc::new(Payload::Unknown(Unknown::default()))),
                _ => Err(DecodeError::new(Problem::NoType, at)),
            };
        };
        // `@type` may come last, so the members are read again now that their type is known.
        *reader = start;
        let known = type_url.strip_prefix(TYPE_URL).and_then(Payload::named);
        let payload = match known {
            Some(mut payload) => {
                if let Some(fields) = payload.fields_mut() {
                    read_message(fields, reader, ObjectContext::Any)?;
                }
                payload
            }
            None => unknown(type_url, reader)?,
        };
        Ok(Arc::new(payload))
    }
}

/// Stores the members of an object unchanged.
fn unknown(type_url: Text, reader: &mut Reader<'_>) -> Result<Payload, DecodeError> {
    if reader.strictness() == Strictness::Strict {
        let problem = Problem::UnknownType(after_slash(&type_url).to_owned());
        return Err(DecodeError::new(problem, reader.position()));
    }
    let mut members = Vec::new();
    reader.members(&mut |reader, key| {
        if key == "@type" {
            return reader.skip();
        }
        if !members.is_empty() {
            members.push(b',');
        }
        Text::from(key.into_owned()).write(&mut members);
        members.push(b':');
        reader.copy(&mut members)
    })?;
    let members = String::from_utf8(members).unwrap_or_default().into();
    Ok(Payload::Unknown(Unknown { type_url, members }))
}

fn after_slash(type_url: &str) -> &str {
    type_url.rsplit('/').next().unwrap_or(type_url)
}
