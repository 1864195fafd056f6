//! YAML as Go reads it: `y`, `no` and `on` are words unless true or false is asked for.

use serde::de::DeserializeOwned;

/// Reads a document.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true })
}
