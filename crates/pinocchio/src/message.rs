//! Messages of the protocol as JSON and back.

use pinion_proto::{Message, Strictness};

/// A stored payload is not the message it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Undecodable(pub String);

pub(crate) fn append(out: &mut Vec<u8>, message: &impl Message) {
    message.encode_json(out);
}

/// Reads what we or another program stored; fields nobody knows are passed over.
pub(crate) fn decode<M: Message>(payload: &str) -> Result<M, Undecodable> {
    M::decode_json(payload.as_bytes(), Strictness::Lenient)
        .map_err(|error| Undecodable(format!("{}: {error}", M::FULL_NAME)))
}
