//! Masking of known keys in everything that is written or sent.

mod headers;
mod variables;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use secrecy::ExposeSecret;
use serde_json::Value;

pub use self::headers::mask_headers;
pub use self::variables::is_secret_variable;
use crate::{Block, Content, Secret};

/// The replacement of a key.
const MASKED: &str = "***";
/// The shortest value that is masked, in bytes: shorter values are words, and masking them would
/// damage ordinary text.
const MIN_KEY_LENGTH: usize = 8;

/// The keys of all masks of this process.
static OF_PROCESS: LazyLock<Mask> = LazyLock::new(Mask::default);

/// A list of keys to mask. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    secrets: Arc<RwLock<Vec<Secret>>>,
}

impl Mask {
    /// Returns the mask of every key that any mask of this process has learned, for output that belongs to no session.
    pub fn of_process() -> Self {
        OF_PROCESS.clone()
    }

    /// Adds a key, also to the mask of the process. Values of fewer than 8 bytes are ignored.
    pub fn learn(&self, secret: &Secret) {
        self.add(secret);
        OF_PROCESS.add(secret);
    }

    fn add(&self, secret: &Secret) {
        let value = secret.expose_secret();
        if value.len() < MIN_KEY_LENGTH {
            return;
        }
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().all(|known| known.expose_secret() != value) {
            secrets.push(secret.clone());
            // A key that contains another must be replaced before it.
            secrets.sort_by_key(|known| std::cmp::Reverse(known.expose_secret().len()));
        }
    }

    /// Returns `text` with known keys replaced; borrowed if it contains none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.secrets.read().unwrap_or_else(PoisonError::into_inner);
        let mut masked = Cow::Borrowed(text);
        for secret in secrets.iter().map(ExposeSecret::expose_secret) {
            if masked.contains(secret) {
                masked = Cow::Owned(masked.replace(secret, MASKED));
            }
        }
        masked
    }

    /// Masks a string in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Masks every string in a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Masks the text of a message.
    pub fn content(&self, content: &mut Content) {
        match content {
            Content::Text(text) => self.string(text),
            Content::Blocks(blocks) => self.blocks(blocks),
        }
    }

    /// Masks text, reasoning and tool arguments of blocks.
    pub fn blocks(&self, blocks: &mut [Block]) {
        for block in blocks {
            match block {
                Block::Text(text) => self.string(&mut text.text),
                Block::Thinking(thinking) => self.string(&mut thinking.thinking),
                Block::ToolCall(call) => {
                    self.value(&mut call.arguments);
                    if let Some(error) = &mut call.arguments_error {
                        self.string(error);
                    }
                }
                Block::Image { .. } => {}
            }
        }
    }

    /// Returns a mask for bytes that arrive in pieces.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            mask: self.clone(),
            held: Vec::new(),
        }
    }
}

/// Masks bytes that arrive in pieces; a key may be split between two of them.
#[derive(Debug)]
pub struct MaskStream {
    mask: Mask,
    /// The end of the input so far, held back while it could be the start of a key.
    held: Vec<u8>,
}

impl MaskStream {
    /// Adds the next piece and returns the bytes that are safe to show.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let secrets = self
            .mask
            .secrets
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if secrets.is_empty() {
            return Cow::Borrowed(piece);
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        for secret in secrets
            .iter()
            .map(|secret| secret.expose_secret().as_bytes())
        {
            bytes = replace_all(bytes, secret);
        }
        let hold = secrets
            .iter()
            .map(|secret| partial_match(&bytes, secret.expose_secret().as_bytes()))
            .max()
            .unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - hold);
        Cow::Owned(bytes)
    }

    /// Returns the bytes that were held back. Call it at the end of the input.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

fn replace_all(bytes: Vec<u8>, secret: &[u8]) -> Vec<u8> {
    let found = |bytes: &[u8]| {
        bytes
            .windows(secret.len())
            .position(|window| window == secret)
    };
    let Some(mut at) = found(&bytes) else {
        return bytes;
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..];
    loop {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(MASKED.as_bytes());
        rest = &rest[at + secret.len()..];
        match found(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Counts the bytes at the end of `bytes` that are a beginning of `secret`.
fn partial_match(bytes: &[u8], secret: &[u8]) -> usize {
    let longest = bytes.len().min(secret.len() - 1);
    (1..=longest)
        .rev()
        .find(|&length| bytes.ends_with(&secret[..length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        let mask = Mask::default();
        mask.learn(&Secret::from("sk-secret-key".to_owned()));
        mask.learn(&Secret::from("short".to_owned()));
        mask
    }

    #[test]
    fn keys_are_masked_and_words_are_not() {
        assert_eq!(mask().text("a sk-secret-key b short"), "a *** b short");
        assert!(matches!(mask().text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_mask_of_the_process_has_the_keys_of_all_masks() {
        Mask::default().learn(&Secret::from("sk-of-one-mask".to_owned()));
        Mask::default().learn(&Secret::from("sk-of-another-mask".to_owned()));
        let masked = Mask::of_process();
        assert_eq!(masked.text("sk-of-one-mask sk-of-another-mask"), "*** ***");
        assert_eq!(Mask::default().text("sk-of-one-mask"), "sk-of-one-mask");
    }

    #[test]
    fn a_key_across_pieces_is_masked_wherever_it_is_cut() {
        let text = b"x sk-secret-key y sk-secret-kez sk-secret-ke";
        for cut in 0..text.len() {
            let mut stream = mask().stream();
            let mut out = stream.push(&text[..cut]).into_owned();
            out.extend_from_slice(&stream.push(&text[cut..]));
            out.extend(stream.finish());
            assert_eq!(out, b"x *** y sk-secret-kez sk-secret-ke", "cut at {cut}");
        }
    }
}
