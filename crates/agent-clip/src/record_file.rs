//! Small files that only their owner can read, replaced as a whole.

use std::path::Path;

use pinion_clip::files;
use pinion_status::{Code, Failure};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the parsed content of a file; `None` if the file does not exist.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let bytes = match files::read_if_present(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) => return Err(Failure::io(path.display(), &error)),
    };
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|error| {
        let message = format!(
            "{} cannot be read: {error}. Repair or move it away.",
            path.display()
        );
        Failure::new(Code::DataLoss, message)
    })
}

/// Replaces a file atomically.
pub(super) fn replace(path: &Path, content: &impl Serialize) -> Result<(), Failure> {
    files::replace(path, content).map_err(|error| Failure::io(path.display(), &error))
}

/// Returns the current time in the format of records.
pub(super) fn now() -> String {
    stamp(jiff::Timestamp::now())
}

/// Formats a time in milliseconds since the epoch for records.
pub(super) fn time(millis: i64) -> String {
    stamp(jiff::Timestamp::from_millisecond(millis).unwrap_or_default())
}

/// Serialization of optional timestamps in records, for fields that the program computes with.
pub(super) mod moment {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(super::stamp).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let time: Option<String> = Option::deserialize(deserializer)?;
        let time = time.map(|time| time.parse().map_err(D::Error::custom));
        time.transpose()
    }
}

/// Formats a timestamp for records: RFC 3339 with milliseconds.
pub(super) fn stamp(time: jiff::Timestamp) -> String {
    format!("{time:.3}")
}
