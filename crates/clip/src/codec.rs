//! The lines between us and a clip.
//!
//! Two dialects are in use. *Register* is what the public SDK speaks: the clip says `register` first, answers with
//! `result`, `chunk`, `done` and `error`. *Direct* clips answer at once, with `response`, `stream` and
//! `stream_end`. A call is the same line in both:
//!
//! ```json
//! {"type":"invoke","id":"1","command":"list","input":{}}
//! ```
//!
//! Coming in, each line is understood by its type, whatever dialect the rest is in; going out, a clip only sees its own.
//! Inputs and outputs are passed on as they were written, so that no number changes on the way.

mod decode;
mod encode;
mod long;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::ClipError;
use crate::data::DataRequest;
use crate::logs::Level;

pub use decode::decode;
pub use encode::{
    answer_data, answer_error, answer_list, answer_list_error, answer_output, cancel, invoke,
    registered,
};

/// Takes bytes for the JSON text of one value, if that is what they are.
pub fn json(bytes: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(bytes).ok()
}

/// What a clip speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `register`, `result`, `chunk`, `done`, `error`.
    Register,
    /// `response`, `stream`, `stream_end`, `invoke_clip`.
    Direct,
}

/// What is known about how a clip speaks, good for all processes of one installed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DetectedDialect {
    /// It registers, then speaks [`Dialect::Register`].
    Register,
    /// It speaks [`Dialect::Register`] but never registers.
    Bare,
    /// It speaks [`Dialect::Direct`].
    Direct,
}

impl DetectedDialect {
    /// The dialect to speak to it.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Register | Self::Bare => Dialect::Register,
            Self::Direct => Dialect::Direct,
        }
    }
}

/// One line from a clip.
#[derive(Debug)]
pub enum Message {
    /// It is ready and says what it is; `None` if it forgot to say.
    Register(Option<Box<RawValue>>),
    /// The answer to a call, or the last part of one; `None` if nothing was in it.
    Result(Box<str>, Option<Bytes>),
    /// A part of an answer.
    Chunk(Box<str>, Bytes),
    /// The answer is complete.
    Done(Box<str>),
    /// A call failed.
    Failed(Box<str>, Failure),
    /// It calls another clip.
    Call(Request, CrossCall),
    /// It asks which clips there are.
    ListClips(Request),
    /// It asks for its data. A request that makes no sense is answered with what is wrong with it.
    Data(Request, Result<DataRequest, ClipError>),
    /// It has something to say for its log.
    Log(Level, String),
}

/// Which dialect a line is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineDialect {
    /// The `register` line.
    Registration,
    /// A line of [`Dialect::Register`].
    Register,
    /// A line of [`Dialect::Direct`].
    Direct,
}

impl LineDialect {
    /// What the first line of a clip tells about it.
    pub fn detected_dialect(self) -> DetectedDialect {
        match self {
            Self::Registration => DetectedDialect::Register,
            Self::Register => DetectedDialect::Bare,
            Self::Direct => DetectedDialect::Direct,
        }
    }
}

/// What the clip said went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code, if it gave one.
    pub code: Option<crate::Code>,
    /// The words, unchanged.
    pub message: String,
}

impl Failure {
    /// The failure as callers see it. Words without a code are judged by what the SDK is known to say.
    pub fn into_error(self, after_chunks: bool) -> ClipError {
        let code = self.code.unwrap_or_else(|| {
            if self.message.starts_with("unknown command") {
                crate::Code::NotFound
            } else if !after_chunks && is_list_of_issues(&self.message) {
                crate::Code::InvalidArgument
            } else {
                crate::Code::Internal
            }
        });
        ClipError::new(code, self.message)
    }
}

/// Whether a text is what the SDK prints when input does not fit its schema.
fn is_list_of_issues(text: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Issue {
        #[serde(rename = "code")]
        _code: serde::de::IgnoredAny,
        #[serde(rename = "path")]
        _path: serde::de::IgnoredAny,
    }
    text.starts_with('[')
        && serde_json::from_str::<Vec<Issue>>(text).is_ok_and(|issues| !issues.is_empty())
}

/// The id under which a clip wants its own request answered, as it wrote it.
#[derive(Debug, Clone)]
pub struct Request(pub Box<RawValue>);

/// A call from one clip to another.
#[derive(Debug, Clone)]
pub struct CrossCall {
    /// Whom to call: an alias or a package.
    pub clip: String,
    /// Which command.
    pub command: String,
    /// With what input, as JSON text.
    pub input: Bytes,
    /// The secret that opens the other clip, if one is needed.
    pub clip_token: Option<String>,
}

/// Why a line could not be understood. It is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Junk {
    /// It is not a JSON object.
    NotJson,
    /// A type nobody knows; empty if there is none.
    UnknownType(String),
    /// Its type demands an id, and there is none.
    NoId,
}
