//! The lines of JSON between the hub and a clip.
//!
//! Two dialects are in use. The public SDK speaks *register*: the clip sends `register` first and answers with
//! `result`, `chunk`, `done` and `error`. *Direct* clips send nothing first and answer with `response`, `stream` and
//! `stream_end`. A call is the same line in both:
//!
//! ```json
//! {"type":"invoke","id":"1","command":"list","input":{}}
//! ```
//!
//! The type of a line decides how it is decoded, whatever dialect the clip's other lines are in. A clip is sent lines
//! of its own dialect only. Inputs and outputs are passed on as they were written, so that numbers do not change.

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

/// Returns `bytes` as the JSON text of one value, or `None` if they are not JSON.
pub fn json(bytes: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(bytes).ok()
}

/// The dialect in which lines are written to a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `register`, `result`, `chunk`, `done`, `error`.
    Register,
    /// `response`, `stream`, `stream_end`, `invoke_clip`.
    Direct,
}

/// The detected way in which a clip speaks. It holds for all processes of one installed version.
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
    /// Returns the dialect in which the clip is written to.
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
    /// The clip is ready and sends its manifest; `None` if the manifest is missing.
    Register(Option<Box<RawValue>>),
    /// The answer to a call, or its last part; `None` if it has no output.
    Result(Box<str>, Option<Bytes>),
    /// A part of an answer.
    Chunk(Box<str>, Bytes),
    /// The answer is complete.
    Done(Box<str>),
    /// A call failed.
    Failed(Box<str>, Failure),
    /// The clip calls another clip.
    Call(Request, CrossCall),
    /// The clip asks for the list of clips.
    ListClips(Request),
    /// The clip asks for its data. An invalid request carries the error to answer with.
    Data(Request, Result<DataRequest, ClipError>),
    /// The clip writes to its log.
    Log(Level, String),
}

/// The dialect of one line.
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
    /// Returns the dialect of a clip whose first line this is.
    pub fn detected_dialect(self) -> DetectedDialect {
        match self {
            Self::Registration => DetectedDialect::Register,
            Self::Register => DetectedDialect::Bare,
            Self::Direct => DetectedDialect::Direct,
        }
    }
}

/// A failure that a clip reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code, if the clip sent one.
    pub code: Option<crate::Code>,
    /// The clip's message, unchanged.
    pub message: String,
}

impl Failure {
    /// Converts the failure for callers. A message without a code gets the code that fits the known messages of the
    /// SDK.
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

/// Reports whether a text is the list that the SDK prints when an input does not match its schema.
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

/// The id of a clip's own request, as the clip wrote it.
#[derive(Debug, Clone)]
pub struct Request(pub Box<RawValue>);

/// A call from one clip to another.
#[derive(Debug, Clone)]
pub struct CrossCall {
    /// The alias or the package of the called clip.
    pub clip: String,
    pub command: String,
    /// The input as JSON text.
    pub input: Bytes,
    /// The secret that the called clip requires, if any.
    pub clip_token: Option<String>,
}

/// The reason why a line was not understood. Such a line is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Junk {
    /// It is not a JSON object.
    NotJson,
    /// The type is unknown; empty if there is none.
    UnknownType(String),
    /// The type requires an id, and there is none.
    NoId,
}
