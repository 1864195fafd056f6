//! YAML as Go reads it: `y`, `no` and `on` are words unless true or false is asked for.

use serde::de::DeserializeOwned;

/// Reads a command file. What it unpacks to is bounded well below what data may be.
pub(crate) fn command<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_nodes: 20_000 },
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Reads a document of data.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true })
}
