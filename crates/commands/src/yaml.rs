//! Parses YAML like Go: `y`, `no` and `on` are strings unless a boolean is expected.

use serde::de::DeserializeOwned;

/// Parses a command file. The limits on its expanded size are much lower than those for data.
pub(crate) fn command<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_nodes: 20_000 },
    };
    serde_saphyr::from_str_with_options(text, options)
}

/// Parses a document of data.
pub(crate) fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true })
}
