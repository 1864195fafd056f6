//! The first message of `InvokeStream`. Callers spell it in three ways; this module recognises
//! them, in both encodings.

use bytes::Bytes;

use crate::error::DecodeError;
use crate::hub::invoke_stream_message::Payload;
use crate::hub::{InvokeRequest, InvokeStreamMessage};
use crate::input::Input;
use crate::message::{Message, Strictness};
use crate::wire::Binary;

/// The request in the first message of `InvokeStream`.
#[derive(Debug, Clone, PartialEq)]
pub enum FirstInvoke {
    /// A call whose input may continue: `start`.
    Open(InvokeRequest),
    /// A call with its complete input: its fields are in the message itself.
    Whole(InvokeRequest),
    /// No call: a chunk of input, which is only valid later.
    Chunk,
}

impl FirstInvoke {
    /// Decodes the message from its binary form. Besides the declared spellings it may be an
    /// `InvokeRequest` itself, which a caller sends if its `InvokeStream` streams only the answers.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        match spelling(bytes.clone())? {
            Spelling::Request => Ok(Self::Whole(InvokeRequest::decode(bytes)?)),
            Spelling::Whole => Ok(Self::Whole(whole(InvokeStreamMessage::decode(bytes)?))),
            Spelling::Nested => Ok(Self::from_message(InvokeStreamMessage::decode(bytes)?)),
        }
    }

    /// Decodes the message from JSON.
    pub fn decode_json(text: &[u8]) -> Result<Self, DecodeError> {
        let message = InvokeStreamMessage::decode_json(text, Strictness::Lenient)?;
        Ok(Self::from_message(message))
    }

    fn from_message(message: InvokeStreamMessage) -> Self {
        match message.payload {
            Some(Payload::Start(request)) => Self::Open(request),
            Some(Payload::Chunk(_)) => Self::Chunk,
            None => Self::Whole(whole(message)),
        }
    }
}

enum Spelling {
    Request,
    Whole,
    Nested,
}

/// Determines the spelling. Field 1 is an alias or a message; a message begins with the key of one
/// of the fields of `InvokeRequest`, and an alias cannot begin with any of these bytes.
fn spelling(bytes: Bytes) -> Result<Spelling, DecodeError> {
    const FIELD_1: u32 = 1 << 3 | 2;
    let mut spelling = Spelling::Nested;
    let mut input = Input::new(bytes);
    while let Some(key) = input.key()? {
        match (key >> 3, key) {
            (100..=103, _) => return Ok(Spelling::Whole),
            (_, FIELD_1) => {
                let value = input.payload()?;
                if !matches!(value.first(), None | Some(0x0a | 0x12 | 0x1a | 0x22)) {
                    spelling = Spelling::Request;
                }
            }
            _ => input.skip(key)?,
        }
    }
    Ok(spelling)
}

fn whole(message: InvokeStreamMessage) -> InvokeRequest {
    InvokeRequest {
        clip_name: message.clip_name,
        command: message.command,
        input: message.input,
        clip_token: message.clip_token,
    }
}
