//! What providers say, whichever way they say it.

use bytes::Bytes;
use jiff::Timestamp;
use pinion_clip::{ClipState, Status};
use pinion_connect::Codec;
use pinion_proto::hub::provider_message::Payload;
use pinion_proto::hub::{
    ClipStatus, ClipStatusChanged, DataResult, GetClipWebResult, ProviderMessage,
};
use pinion_proto::{Binary, Message, Strictness, Text};
use pinion_status::Failure;
use serde_json::Value;

use super::registration::Registration;
use super::typed;
use crate::convert::failure;

/// How a provider speaks; its first message tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The schema's messages: the provider registers, then greets.
    Register,
    /// Typed JSON: the hub greets.
    Typed,
}

/// One message of a provider.
#[derive(Debug)]
pub(super) enum Heard {
    /// `register`, once.
    Register {
        provider: String,
        clips: Result<Vec<Registration>, Failure>,
    },
    /// `RegisterClips`, as often as it likes, or `clip_added`.
    Clips {
        provider: Option<String>,
        clips: Result<Vec<Registration>, Failure>,
        manages: bool,
    },
    Removed(Vec<String>),
    Status(String, Status),
    Part(Part),
    Web(GetClipWebResult),
    Data(DataResult),
    /// A greeting that wants this answer.
    Ping(i64),
    /// A greeting that wants none.
    Heartbeat,
    Log(Log),
    /// Nothing that is known here.
    Nothing,
}

/// A part of an answer, or its end.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) id: Text,
    pub(super) output: Bytes,
    pub(super) error: Option<Failure>,
    pub(super) done: bool,
}

/// A line for a log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) clip: String,
    pub(super) level: String,
    pub(super) message: String,
    /// The request that failed, if the line says so.
    pub(super) request: String,
    /// When it was said, if the line says so.
    pub(super) time: Option<Timestamp>,
}

/// How the first message of a stream is spelled.
pub(super) fn dialect(message: &[u8], codec: Codec) -> Result<Dialect, Failure> {
    match codec {
        Codec::Proto => Ok(Dialect::Register),
        Codec::Json => typed::kind(message).map(|kind| match kind {
            Some(_) => Dialect::Typed,
            None => Dialect::Register,
        }),
    }
}

/// Reads a message.
pub(super) fn read(message: Bytes, codec: Codec, dialect: Dialect) -> Result<Heard, Failure> {
    let decoded = match (dialect, codec) {
        (Dialect::Typed, _) => return typed::read(&message),
        (Dialect::Register, Codec::Json) => {
            ProviderMessage::decode_json(&message, Strictness::Lenient)
        }
        (Dialect::Register, Codec::Proto) => ProviderMessage::decode(message),
    };
    let message = decoded.map_err(|error| {
        Failure::invalid(format!(
            "the message is no {}: {error}",
            ProviderMessage::FULL_NAME
        ))
    })?;
    Ok(match message.payload {
        None => Heard::Nothing,
        Some(Payload::Register(register)) => Heard::Register {
            provider: register.provider_name.trim().to_owned(),
            clips: registrations(register.clips),
        },
        Some(Payload::ClipAdded(added)) => Heard::Clips {
            provider: None,
            clips: registrations(added.clip.into_iter().collect()),
            manages: false,
        },
        Some(Payload::ClipRemoved(removed)) => Heard::Removed(vec![removed.name.to_string()]),
        Some(Payload::InvokeResult(result)) => {
            let error = result.error.as_ref().map(failure);
            Heard::Part(Part {
                done: result.done || error.is_some(),
                id: result.request_id,
                output: result.output,
                error,
            })
        }
        Some(Payload::Ping(ping)) => Heard::Ping(ping.sent_at_unix_ms),
        Some(Payload::GetClipWebResult(result)) => Heard::Web(result),
        Some(Payload::ClipStatusChanged(changed)) => status(&changed),
        Some(Payload::DataResult(result)) => Heard::Data(result),
        Some(Payload::Log(log)) => Heard::Log(Log {
            clip: log.alias.to_string(),
            level: log.level.to_string(),
            message: log.message.to_string(),
            request: String::new(),
            time: time(log.timestamp_unix_ms),
        }),
    })
}

/// A time in milliseconds; 0 is none.
fn time(millis: i64) -> Option<Timestamp> {
    let time = Timestamp::from_millisecond(millis).ok();
    time.filter(|_| millis != 0)
}

/// The same, written as a number or as a text.
pub(super) fn time_of(millis: &Value) -> Option<Timestamp> {
    let text = millis.as_str();
    time(millis.as_i64().or_else(|| text?.parse().ok())?)
}

fn registrations(
    clips: Vec<pinion_proto::hub::ClipRegistration>,
) -> Result<Vec<Registration>, Failure> {
    clips.into_iter().map(Registration::of).collect()
}

fn status(changed: &ClipStatusChanged) -> Heard {
    let state = match changed.status {
        ClipStatus::Sleeping => ClipState::Sleeping,
        ClipStatus::Error => ClipState::Error,
        _ => ClipState::Running,
    };
    let status = Status {
        state,
        message: changed.message.to_string(),
    };
    Heard::Status(changed.name.to_string(), status)
}
