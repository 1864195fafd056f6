//! Encodes messages of the protocol as JSON and decodes them.

use pinion_proto::{Message, Strictness};

/// A stored payload is not the expected message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(pub String);

pub(crate) fn append(out: &mut Vec<u8>, message: &impl Message) {
    message.encode_json(out);
}

/// Decodes a payload that this or another program stored; unknown fields are ignored.
pub(crate) fn decode<M: Message>(payload: &str) -> Result<M, Undecodable> {
    M::decode_json(payload.as_bytes(), Strictness::Lenient)
        .map_err(|error| Undecodable(format!("{}: {error}", M::FULL_NAME)))
}
