//! Decodes long lines whose length is due to one plain string, such as base64, without scanning every byte twice.
//!
//! The string is cut out, the short line that remains is decoded like any other, and the string is put back. A string
//! is plain if it is ASCII without escapes, so that it cannot change the meaning of the text around it.

use std::ops::Range;

/// Shorter lines are decoded whole, because cutting would not be faster.
const LONG_LINE: usize = 4 * 1024;
/// Shorter strings are not cut out.
const LONG_STRING: usize = 1024;
/// The most strings that may precede the long one.
const MAX_STRINGS_BEFORE: usize = 16;

/// A line without its long string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shortened {
    /// The remaining line, with an empty string in place of the long one.
    pub line: Vec<u8>,
    /// The position of the string in the whole line, without its quotes.
    taken: Range<usize>,
}

impl Shortened {
    /// Cuts out the first long string; `None` if there is none, or if it is not plain.
    pub(super) fn of(whole: &[u8]) -> Option<Self> {
        if whole.len() < LONG_LINE {
            return None;
        }
        let mut at = 0;
        for _ in 0..=MAX_STRINGS_BEFORE {
            let start = at + memchr::memchr(b'"', &whole[at..])? + 1;
            let end = start + memchr::memchr2(b'"', b'\\', &whole[start..])?;
            if whole[end] == b'\\' {
                return None;
            }
            let taken = start..end;
            if taken.len() >= LONG_STRING {
                return is_plain(&whole[taken.clone()]).then(|| Self {
                    line: [&whole[..start], &whole[end..]].concat(),
                    taken,
                });
            }
            at = end + 1;
        }
        None
    }

    /// Returns the bytes of `whole` that correspond to `part`, a part of the remaining line.
    pub(super) fn restore<'a>(&self, whole: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
        let start = part
            .as_ptr()
            .addr()
            .checked_sub(self.line.as_ptr().addr())?;
        let original = |position: usize| {
            if position > self.taken.start {
                position + self.taken.len()
            } else {
                position
            }
        };
        whole.get(original(start)..original(start + part.len()))
    }
}

/// Reports whether these bytes contain neither control characters nor anything but ASCII. The caller excludes quotes
/// and backslashes.
fn is_plain(bytes: &[u8]) -> bool {
    // Without an early exit inside a piece, the compiler can examine many bytes at once.
    bytes.chunks(256).all(|piece| {
        let odd = |byte: &u8| u8::from(*byte < 0x20) | u8::from(*byte >= 0x80);
        piece.iter().fold(0, |any, byte| any | odd(byte)) == 0
    })
}
