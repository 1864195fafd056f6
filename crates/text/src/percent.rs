//! Percent escapes of addresses and paths.

use crate::hex;

/// Decodes percent escapes. A percent sign that begins none stays as it is.
pub fn decode(text: &[u8]) -> Vec<u8> {
    bytes(text).map(|byte| byte.unwrap_or(b'%')).collect()
}

/// Decodes percent escapes. `None` if a percent sign begins none.
pub fn decode_strictly(text: &[u8]) -> Option<Vec<u8>> {
    bytes(text).collect()
}

/// Returns the decoded bytes, with `None` for each percent sign that begins no escape.
fn bytes(text: &[u8]) -> impl Iterator<Item = Option<u8>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (byte, tail) = match rest {
            [b'%', high, low, tail @ ..] => match hex::byte([*high, *low]) {
                Some(byte) => (Some(byte), tail),
                None => (None, &rest[1..]),
            },
            [b'%', tail @ ..] => (None, tail),
            [byte, tail @ ..] => (Some(*byte), tail),
            [] => return None,
        };
        rest = tail;
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_digits_are_an_escape() {
        for (text, decoded) in [
            ("a%20b%2F", "a b/"),
            ("%C3%a9", "é"),
            ("%25%41", "%A"),
            ("", ""),
        ] {
            assert_eq!(decode(text.as_bytes()), decoded.as_bytes(), "{text}");
            let strict = decode_strictly(text.as_bytes());
            assert_eq!(strict.as_deref(), Some(decoded.as_bytes()), "{text}");
        }
        for (text, decoded) in [
            ("%+f", "%+f"),
            ("%", "%"),
            ("%4", "%4"),
            ("%4é", "%4é"),
            ("%%41", "%A"),
            ("%zz%41", "%zzA"),
        ] {
            assert_eq!(decode(text.as_bytes()), decoded.as_bytes(), "{text}");
            assert_eq!(decode_strictly(text.as_bytes()), None, "{text}");
        }
    }
}
