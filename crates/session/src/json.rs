//! Reads and writes the JSON of session files.

use bytes::Bytes;
use pinion_jsonl::json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Prints one line of JSON, without its newline, as JavaScript does.
pub(crate) fn line(value: &impl Serialize) -> Bytes {
    Bytes::from(json::to_vec(value))
}

/// Parses JSON that a JavaScript program wrote; accepts half surrogate pairs.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    json::from_slice(bytes).ok()
}
