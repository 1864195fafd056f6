//! Messages from providers, decoded from either dialect.

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

/// The dialect of a provider, which its first message determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The schema's messages: the provider registers first and sends pings.
    Register,
    /// JSON objects with a `type`: the hub sends the heartbeats.
    Typed,
}

/// One message of a provider.
#[derive(Debug)]
pub(super) enum FromProvider {
    /// `register`, allowed once.
    Register {
        provider: String,
        clips: Result<Vec<Registration>, Failure>,
    },
    /// `RegisterClips`, which may be repeated, or `clip_added`.
    Clips {
        provider: Option<String>,
        clips: Result<Vec<Registration>, Failure>,
        manages: bool,
    },
    Removed(Vec<String>),
    Status(String, Status),
    Part(AnswerPart),
    Web(GetClipWebResult),
    Data(DataResult),
    /// A ping whose answer repeats this number.
    Ping(i64),
    /// A heartbeat that requires no answer.
    Heartbeat,
    Log(LogLine),
    /// A message of an unknown type, which is ignored.
    Nothing,
}

/// A part of an answer, or its end.
#[derive(Debug)]
pub(super) struct AnswerPart {
    pub(super) id: Text,
    pub(super) output: Bytes,
    pub(super) error: Option<Failure>,
    pub(super) done: bool,
}

/// A line for a log.
#[derive(Debug)]
pub(super) struct LogLine {
    pub(super) clip: String,
    pub(super) level: String,
    pub(super) message: String,
    /// The id of the request that failed; empty if the line names none.
    pub(super) request: String,
    /// The time of the line, if the provider sent one.
    pub(super) time: Option<Timestamp>,
}

/// Determines the dialect from the first message of a stream.
pub(super) fn dialect(message: &[u8], codec: Codec) -> Result<Dialect, Failure> {
    match codec {
        Codec::Proto => Ok(Dialect::Register),
        Codec::Json => typed::kind(message).map(|kind| match kind {
            Some(_) => Dialect::Typed,
            None => Dialect::Register,
        }),
    }
}

pub(super) fn read(
    message: Bytes,
    codec: Codec,
    dialect: Dialect,
) -> Result<FromProvider, Failure> {
    let decoded = match (dialect, codec) {
        (Dialect::Typed, _) => return typed::read(&message),
        (Dialect::Register, Codec::Json) => {
            ProviderMessage::decode_json(&message, Strictness::Lenient)
        }
        (Dialect::Register, Codec::Proto) => ProviderMessage::decode(message),
    };
    let message = decoded.map_err(|error| {
        Failure::invalid(format!(
            "the message is not a {}: {error}",
            ProviderMessage::FULL_NAME
        ))
    })?;
    Ok(match message.payload {
        None => FromProvider::Nothing,
        Some(Payload::Register(register)) => FromProvider::Register {
            provider: register.provider_name.trim().to_owned(),
            clips: registrations(register.clips),
        },
        Some(Payload::ClipAdded(added)) => FromProvider::Clips {
            provider: None,
            clips: registrations(added.clip.into_iter().collect()),
            manages: false,
        },
        Some(Payload::ClipRemoved(removed)) => {
            FromProvider::Removed(vec![removed.name.to_string()])
        }
        Some(Payload::InvokeResult(result)) => {
            let error = result.error.as_ref().map(failure);
            FromProvider::Part(AnswerPart {
                done: result.done || error.is_some(),
                id: result.request_id,
                output: result.output,
                error,
            })
        }
        Some(Payload::Ping(ping)) => FromProvider::Ping(ping.sent_at_unix_ms),
        Some(Payload::GetClipWebResult(result)) => FromProvider::Web(result),
        Some(Payload::ClipStatusChanged(changed)) => status(&changed),
        Some(Payload::DataResult(result)) => FromProvider::Data(result),
        Some(Payload::Log(log)) => FromProvider::Log(LogLine {
            clip: log.alias.to_string(),
            level: log.level.to_string(),
            message: log.message.to_string(),
            request: String::new(),
            time: time(log.timestamp_unix_ms),
        }),
    })
}

/// Converts Unix milliseconds; 0 means no time.
fn time(millis: i64) -> Option<Timestamp> {
    let time = Timestamp::from_millisecond(millis).ok();
    time.filter(|_| millis != 0)
}

/// Like [`time`], from a JSON number or string.
pub(super) fn time_of(millis: &Value) -> Option<Timestamp> {
    let text = millis.as_str();
    time(millis.as_i64().or_else(|| text?.parse().ok())?)
}

fn registrations(
    clips: Vec<pinion_proto::hub::ClipRegistration>,
) -> Result<Vec<Registration>, Failure> {
    clips.into_iter().map(Registration::of).collect()
}

fn status(changed: &ClipStatusChanged) -> FromProvider {
    let state = match changed.status {
        ClipStatus::Sleeping => ClipState::Sleeping,
        ClipStatus::Error => ClipState::Error,
        _ => ClipState::Running,
    };
    let status = Status {
        state,
        message: changed.message.to_string(),
    };
    FromProvider::Status(changed.name.to_string(), status)
}
