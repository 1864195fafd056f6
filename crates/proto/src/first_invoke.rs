//! The first message of `InvokeStream`. Callers spell it in three ways, and it is told apart here, for both codecs.

use bytes::Bytes;

use crate::error::DecodeError;
use crate::hub::invoke_stream_message::Payload;
use crate::hub::{InvokeRequest, InvokeStreamMessage};
use crate::input::Input;
use crate::message::{Message, Strictness};
use crate::wire::Binary;

/// What the first message of `InvokeStream` asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum FirstInvoke {
    /// A call whose input may go on: `start`.
    Open(InvokeRequest),
    /// A call with all of its input: its fields stand in the message itself.
    Whole(InvokeRequest),
    /// None: a bit of input, which can only come later.
    Chunk,
}

impl FirstInvoke {
    /// Reads the message from its binary form. Besides the declared spellings it may be an `InvokeRequest` itself, which
    /// is what a caller sends to whom `InvokeStream` streams only its answers.
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        match spelling(bytes.clone())? {
            Spelling::Request => Ok(Self::Whole(InvokeRequest::decode(bytes)?)),
            Spelling::Whole => Ok(Self::Whole(whole(InvokeStreamMessage::decode(bytes)?))),
            Spelling::Nested => Ok(Self::from_message(InvokeStreamMessage::decode(bytes)?)),
        }
    }

    /// Reads the message from JSON.
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

/// How the message is spelled. A field 1 is an alias or a message; the latter begins with the key of one of the fields
/// of `InvokeRequest`, and none of these bytes can begin an alias.
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
