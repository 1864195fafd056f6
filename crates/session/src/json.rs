//! JSON in and out, in the one place that knows how.

use bytes::Bytes;
use pinion_jsonl::json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One line of JSON without its newline, printed as JavaScript prints it.
pub(crate) fn line(value: &impl Serialize) -> Bytes {
    Bytes::from(json::to_vec(value))
}

/// Reads JSON that a JavaScript program wrote.
pub(crate) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    json::from_slice(bytes).ok()
}
