//! Data without a declaration: `google.protobuf.Struct`, which in JSON is any object.

use std::collections::BTreeMap;

use crate::codec::Codec;
use crate::error::{DecodeError, Problem};
use crate::read::{Reader, Token};
use crate::text::Text;
use crate::write;

/// An object with undeclared members, sorted by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Struct(pub BTreeMap<Text, Value>);

/// An undeclared value. Numbers are those of JavaScript.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; one that is not finite is written as `null`.
    Number(f64),
    /// A text.
    Text(Text),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Struct(Struct),
}

impl Codec for Struct {
    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, value) in &self.0 {
            name.write(out);
            out.push(b':');
            value.write(out);
            out.push(b',');
        }
        write::close(out, b'}');
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut members = BTreeMap::new();
        reader.members(&mut |reader, key| {
            let at = reader.position();
            let value = Value::read(reader).map_err(|error| error.inside(&key))?;
            match members.insert(Text::from(key.clone().into_owned()), value) {
                None => Ok(()),
                Some(_) => Err(DecodeError::new(Problem::Duplicate, at).inside(&key)),
            }
        })?;
        Ok(Self(members))
    }
}

impl Codec for Value {
    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => value.write(out),
            Self::Number(value) if !value.is_finite() => out.extend_from_slice(b"null"),
            // JavaScript prints both zeros alike; protobuf does not.
            Self::Number(value) if *value == 0.0 && value.is_sign_negative() => {
                out.extend_from_slice(b"-0");
            }
            Self::Number(value) => pinion_jsonl::json::append(out, value),
            Self::Text(value) => value.write(out),
            Self::List(values) => {
                out.push(b'[');
                for value in values {
                    value.write(out);
                    out.push(b',');
                }
                write::close(out, b']');
            }
            Self::Struct(value) => value.write(out),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.peek()? {
            Token::Null => {
                reader.null()?;
                Self::Null
            }
            Token::Boolean => Self::Bool(reader.boolean()?),
            Token::Number => Self::Number(reader.float()?),
            Token::Text => Self::Text(Codec::read(reader)?),
            Token::List => Self::List(reader.list()?),
            Token::Object => Self::Struct(Codec::read(reader)?),
        })
    }
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(value) => Self::Number(value.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(value) => Self::Text(Text::new(value)),
            serde_json::Value::Array(values) => Self::List(values.iter().map(Self::from).collect()),
            serde_json::Value::Object(members) => Self::Struct(Struct::from(members)),
        }
    }
}

impl From<&serde_json::Map<String, serde_json::Value>> for Struct {
    fn from(members: &serde_json::Map<String, serde_json::Value>) -> Self {
        let members = members
            .iter()
            .map(|(name, value)| (Text::new(name), Value::from(value)));
        Self(members.collect())
    }
}
