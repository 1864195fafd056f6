//! Masks secrets in the values of records.

use std::borrow::Cow;

use pinion_message::{Mask, is_secret_variable, mask_headers};

/// Masks keys known to this process, secret values of its environment, and headers that carry a key.
#[derive(Debug)]
pub(crate) struct LogMask {
    keys: Mask,
}

impl LogMask {
    /// Reads the environment, so it is made once.
    pub fn new() -> Self {
        let keys = Mask::of_process();
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        for (name, value) in variables {
            if is_secret_variable(&name, &value) {
                keys.learn(&value.into());
            }
        }
        Self { keys }
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let masked = self.keys.text(text);
        match mask_headers(&masked) {
            Some(without_headers) => Cow::Owned(without_headers),
            None => masked,
        }
    }
}
