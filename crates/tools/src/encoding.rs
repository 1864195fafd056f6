//! Text files with some invalid UTF-8, read and written back without loss.
//!
//! Bytes that are not UTF-8 are represented by characters of a private range, so that an edit
//! elsewhere in the file does not turn them into question marks.

/// Byte `b` that is not UTF-8 becomes this character plus `b`.
const CARRIER: u32 = 0xf_ff00;

/// The text of `bytes`; `None` if it already contains carrier characters.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        if chunk.valid().chars().any(|c| carried(c).is_some()) {
            return None;
        }
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|&byte| carrier(byte)));
    }
    Some(text)
}

/// Restores the bytes from which [`decode`] made `text`.
pub(crate) fn encode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| carried(c).is_some()) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let mut chars = rest[at..].chars();
        bytes.extend(chars.next().and_then(carried));
        rest = chars.as_str();
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// `text` for display: bytes that are not UTF-8 become U+FFFD.
pub(crate) fn shown(text: String) -> String {
    if text.contains(|c| carried(c).is_some()) {
        text.replace(|c| carried(c).is_some(), "\u{fffd}")
    } else {
        text
    }
}

fn carrier(byte: u8) -> Option<char> {
    char::from_u32(CARRIER + u32::from(byte))
}

fn carried(c: char) -> Option<u8> {
    // ASCII is always UTF-8 and never represented; the last two code points of a plane are not
    // characters.
    let byte = u8::try_from((c as u32).checked_sub(CARRIER)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(text) = decode(&bytes) {
                prop_assert_eq!(encode(&text), bytes);
            }
        }
    }

    #[test]
    fn latin_letters_are_shown_as_unknown_and_kept() {
        let text = decode(b"na\xefve caf\xe9").unwrap();
        assert_eq!(encode(&text), b"na\xefve caf\xe9");
        assert_eq!(shown(text), "na\u{fffd}ve caf\u{fffd}");
        assert_eq!(decode("x\u{fff80}".as_bytes()), None);
    }
}
