//! The first line of a session file.

use std::path::Path;

use bytes::Bytes;
use pinion_message::{Millis, now_millis};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{clock, json};

/// The file version that this crate writes.
pub const VERSION: u32 = 3;

/// The first line of a session file.
///
/// ```json
/// {"type":"session","version":3,"id":"73984c08-…","timestamp":"2026-01-31T18:56:25.478Z","cwd":"/home/me/proj"}
/// ```
#[derive(Debug, Clone)]
pub struct Header {
    /// The file version; 1 if the line has none, 0 if it is not a whole number.
    pub version: u32,
    /// The session id, normally a UUID.
    pub id: String,
    /// The time of the session's creation, ISO 8601.
    pub timestamp: String,
    /// The working directory of the session; may be empty in old files.
    pub cwd: String,
    /// The file that the session was forked from, or the value that its creator set.
    pub parent_session: Option<String>,
    /// The line as it was read, so that unknown members survive.
    line: Bytes,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderOut<'a> {
    r#type: &'static str,
    version: u32,
    id: &'a str,
    timestamp: &'a str,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeaderIn {
    r#type: String,
    id: String,
    #[serde(default)]
    version: Option<Value>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    parent_session: Option<String>,
}

impl Header {
    pub(crate) fn new(id: String, at: Millis, cwd: &Path, parent_session: Option<String>) -> Self {
        let mut header = Self {
            version: VERSION,
            id,
            timestamp: clock::iso(at),
            cwd: cwd.to_string_lossy().into_owned(),
            parent_session,
            line: Bytes::new(),
        };
        header.line = json::line(&HeaderOut {
            r#type: "session",
            version: VERSION,
            id: &header.id,
            timestamp: &header.timestamp,
            cwd: &header.cwd,
            parent_session: header.parent_session.as_deref(),
        });
        header
    }

    pub(crate) fn now(id: Option<String>, cwd: &Path, parent_session: Option<String>) -> Self {
        let id = id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        Self::new(id, now_millis(), cwd, parent_session)
    }

    /// Parses a header line; `None` if it is not one.
    pub(crate) fn parse(line: &Bytes) -> Option<Self> {
        let read: HeaderIn = json::from_slice(line)?;
        (read.r#type == "session").then(|| Self {
            version: read.version.map_or(1, |version| {
                version
                    .as_u64()
                    .and_then(|version| u32::try_from(version).ok())
                    .unwrap_or(0)
            }),
            id: read.id,
            timestamp: read.timestamp.unwrap_or_default(),
            cwd: read.cwd.unwrap_or_default(),
            parent_session: read.parent_session,
            line: line.clone(),
        })
    }

    /// Returns the JSON of the line, without its newline.
    pub fn json(&self) -> &[u8] {
        &self.line
    }

    /// Returns [`Header::json`] as shared bytes.
    pub(crate) fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// Returns `<time>_<id>.jsonl`.
    pub(crate) fn file_name(&self) -> String {
        format!(
            "{}_{}.jsonl",
            clock::for_file_name(&self.timestamp),
            self.id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_pis_order_and_unknown_ones_survive() {
        let header = Header::new(
            "abc".into(),
            1_769_885_785_478,
            Path::new("/w"),
            Some("/old".into()),
        );
        assert_eq!(
            header.json(),
            br#"{"type":"session","version":3,"id":"abc","timestamp":"2026-01-31T18:56:25.478Z","cwd":"/w","parentSession":"/old"}"#
        );
        assert_eq!(header.file_name(), "2026-01-31T18-56-25-478Z_abc.jsonl");
        let line = Bytes::from_static(br#"{"type":"session","id":"x","extra":1}"#);
        let read = Header::parse(&line).unwrap();
        assert_eq!((read.version, read.json()), (1, &line[..]));
        assert!(Header::parse(&Bytes::from_static(br#"{"type":"message","id":"x"}"#)).is_none());
    }
}
