//! The cassette file: JSON lines, a header and then one line per answered request.
//!
//! ```text
//! {"type":"cassette","version":1,"model":{…}}
//! {"type":"exchange","key":"…","url":"…","status":200,"headers":{…},"body":"…","chunks":[[12,512],…]}
//! ```
//!
//! `body` is the response as text, `chunks` its pieces as milliseconds since the request and length
//! in bytes. A body that is not UTF-8 is stored in `base64` instead. `error` describes a failed
//! request. Request headers are not stored, and of the response's only those that cannot hold a
//! secret.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_message::Model;
use serde::{Deserialize, Serialize};

/// The only format that this version reads and writes.
const VERSION: u32 = 1;

/// The largest cassette that is read, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum CassetteLine {
    /// The first line.
    Cassette { version: u32, model: Box<Model> },
    /// Every other line.
    Exchange(Exchange),
}

/// One request's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exchange {
    /// Identifies the request; see `cassette::key`.
    pub(super) key: String,
    /// The address of the request, without its query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) url: String,
    /// Absent when no response came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    base64: String,
    /// Milliseconds since the request, and bytes.
    pub(super) chunks: Vec<(u64, usize)>,
    /// The failure, before or after the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Exchange {
    pub(super) fn new(key: String) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    pub(super) fn set_body(&mut self, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.body = text,
            Err(error) => self.base64 = STANDARD.encode(error.as_bytes()),
        }
    }

    /// The bytes of the response.
    pub(super) fn body(&self) -> Result<Vec<u8>, String> {
        if self.base64.is_empty() {
            return Ok(self.body.clone().into_bytes());
        }
        STANDARD
            .decode(&self.base64)
            .map_err(|error| format!("\"base64\": {error}"))
    }
}

#[derive(Debug, Clone)]
pub(super) struct CassetteFile {
    pub(super) model: Model,
    pub(super) exchanges: Vec<Exchange>,
}

impl CassetteFile {
    /// Reads a cassette. The error is a sentence without its full stop.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text =
            pinion_files::read_text(path, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let first = lines.next().map(|(_, line)| serde_json::from_str(line));
        let model = match first {
            Some(Ok(CassetteLine::Cassette {
                version: VERSION,
                model,
            })) => *model,
            Some(Ok(CassetteLine::Cassette { version, .. })) => {
                return Err(format!(
                    "its format version {version} is not supported; this pinion reads version {VERSION}"
                ));
            }
            Some(Ok(CassetteLine::Exchange(_))) | None => {
                return Err("its first line is not the header of a cassette".to_owned());
            }
            Some(Err(error)) => return Err(unreadable(1, &error)),
        };
        let mut exchanges = Vec::new();
        for (number, line) in lines {
            match serde_json::from_str(line) {
                Ok(CassetteLine::Exchange(exchange)) => exchanges.push(exchange),
                // Two recordings into one file: the second begins with its own header.
                Ok(CassetteLine::Cassette { .. }) => {}
                Err(error) => return Err(unreadable(number + 1, &error)),
            }
        }
        Ok(Self { model, exchanges })
    }
}

/// Describes an invalid line, for people who edit cassettes.
fn unreadable(line: usize, error: &serde_json::Error) -> String {
    if error.is_data() {
        format!("line {line} is neither a header nor an exchange of a cassette")
    } else {
        format!(
            "line {line} is not JSON, from character {} on",
            error.column()
        )
    }
}

/// The first line of a cassette for `model`.
pub(super) fn header(model: &Model) -> CassetteLine {
    let mut model = model.clone();
    // Not needed to decode answers, and they may hold secrets.
    model.headers = None;
    CassetteLine::Cassette {
        version: VERSION,
        model: Box::new(model),
    }
}
