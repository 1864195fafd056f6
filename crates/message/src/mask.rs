//! Keeps known keys out of everything that is written or sent.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::ExposeSecret;
use serde_json::Value;

use crate::{Block, Content, Secret};

/// What stands where a key was.
const MASKED: &str = "***";
/// Shorter values are words, not keys: masking them would eat ordinary text.
const SHORTEST: usize = 8;

/// The keys known to this process. Clones share what they know.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    secrets: Arc<RwLock<Vec<Secret>>>,
}

impl Mask {
    /// Remembers a key.
    pub fn learn(&self, secret: &Secret) {
        let value = secret.expose_secret();
        if value.len() < SHORTEST {
            return;
        }
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().all(|known| known.expose_secret() != value) {
            secrets.push(secret.clone());
            // A key that contains another must go first.
            secrets.sort_by_key(|known| std::cmp::Reverse(known.expose_secret().len()));
        }
    }

    /// `text` without known keys; borrowed when there are none in it.
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

    /// Masks text in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }

    /// Masks every text in a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The same for what a message says.
    pub fn content(&self, content: &mut Content) {
        match content {
            Content::Text(text) => self.string(text),
            Content::Blocks(blocks) => self.blocks(blocks),
        }
    }

    /// Masks the texts of blocks.
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

    /// A mask for bytes that come in pieces.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            mask: self.clone(),
            held: Vec::new(),
        }
    }
}

/// Masks bytes that come in pieces; a key may lie across their borders.
#[derive(Debug)]
pub struct MaskStream {
    mask: Mask,
    /// The end of what came, as long as it could be the beginning of a key.
    held: Vec<u8>,
}

impl MaskStream {
    /// Takes the next piece and gives what can be shown.
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
            bytes = replaced(bytes, secret);
        }
        let hold = secrets
            .iter()
            .map(|secret| begun(&bytes, secret.expose_secret().as_bytes()))
            .max()
            .unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - hold);
        Cow::Owned(bytes)
    }

    /// What was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

fn replaced(bytes: Vec<u8>, secret: &[u8]) -> Vec<u8> {
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

/// How many bytes at the end of `bytes` are the beginning of `secret`.
fn begun(bytes: &[u8], secret: &[u8]) -> usize {
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
