//! Long lines that are long because of one plain string, as base64 is, understood without looking at every byte twice.
//!
//! The string is taken out, the short line that remains is understood as any other, and the string is put back where it
//! was. A string is plain if it is ASCII without escapes: whatever it says, it cannot change what stands around it.

use std::ops::Range;

/// Shorter lines are not worth it.
const LONG_LINE: usize = 4 * 1024;
/// Shorter strings are not taken out.
const LONG_STRING: usize = 1024;
/// How many strings may stand before the long one.
const MAX_STRINGS_BEFORE: usize = 16;

/// A line without its long string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shortened {
    /// The line that remains; where the string was there is an empty one.
    pub line: Vec<u8>,
    /// What was between the quotes.
    taken: Range<usize>,
}

impl Shortened {
    /// Takes out the first long string; `None` if there is none, or if it is not plain.
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

    /// What `part`, which is a part of the remaining line, was in `whole`.
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

/// Whether these bytes mean nothing in a JSON string but themselves, quotes and backslashes aside.
fn is_plain(bytes: &[u8]) -> bool {
    // Without an early end inside a piece, many bytes are looked at at once.
    bytes.chunks(256).all(|piece| {
        let odd = |byte: &u8| u8::from(*byte < 0x20) | u8::from(*byte >= 0x80);
        piece.iter().fold(0, |any, byte| any | odd(byte)) == 0
    })
}
