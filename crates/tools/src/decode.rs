//! Decodes UTF-8 from bytes that arrive in pieces. Invalid bytes become U+FFFD.

/// Holds back an incomplete character.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Appends the characters that `bytes` completes to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete(invalid) {
                self.pending = invalid.to_vec();
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text: an incomplete character is an invalid one.
    pub fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.pending).is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Reports whether more bytes could complete `tail` to a character.
fn is_incomplete(tail: &[u8]) -> bool {
    !tail.is_empty() && std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_decode_as_the_whole_does(
            parts in proptest::collection::vec(
                prop_oneof![
                    "[aé→😀\n]{0,4}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..4),
                ],
                0..20,
            ),
            size in 1usize..7,
        ) {
            let bytes: Vec<u8> = parts.concat();
            let mut decoder = Decoder::default();
            let mut out = String::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece, &mut out);
            }
            decoder.finish(&mut out);
            prop_assert_eq!(out, String::from_utf8_lossy(&bytes));
        }
    }
}
