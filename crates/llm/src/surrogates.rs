//! Half surrogate pairs in JSON text. JavaScript writes them as `\ud83d` without a partner, Rust
//! strings cannot hold them, and a strict reader rejects the whole text. This deletes the lone
//! escapes before parsing; it does nothing else to the text.

use std::borrow::Cow;

/// `json` without `\uXXXX` escapes that are only half of a surrogate pair.
pub fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut cleaned: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &bytes[at..]) {
        at += offset;
        let unit = |at: usize| bytes.get(at..)?.strip_prefix(b"\\u").and_then(hex4);
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                cleaned.get_or_insert_default().push_str(&json[copied..at]);
                at += 6;
                copied = at;
            }
            // Any other escape: the backslash and the character after it.
            _ => at = (at + 2).min(bytes.len()),
        }
    }
    match cleaned {
        None => Cow::Borrowed(json),
        Some(mut cleaned) => {
            cleaned.push_str(&json[copied..]);
            Cow::Owned(cleaned)
        }
    }
}

/// The value of the four hexadecimal digits `bytes` begins with.
pub(crate) fn hex4(bytes: &[u8]) -> Option<u16> {
    let digits = bytes
        .get(..4)
        .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
