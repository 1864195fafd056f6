//! JSON as pi prints and parses it: compact, with ECMAScript numbers; lone surrogates are
//! tolerated.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::ser::Formatter;

use crate::number;

/// Prints compactly, with numbers in ECMAScript form.
struct Ecma;

impl Formatter for Ecma {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        number::write_f64(writer, value)
    }
}

/// Appends `value` as compact JSON to `out`.
///
/// A value that JSON cannot represent, such as a map with keys that are not strings, is written as
/// `null`: the types of this workspace have none, and a line must never be left half written.
pub fn append(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let start = out.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Ecma);
    if value.serialize(&mut serializer).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Returns `value` as compact JSON.
pub fn to_vec(value: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    append(&mut out, value);
    out
}

/// Returns `value` as compact JSON text.
pub fn to_string(value: &(impl Serialize + ?Sized)) -> String {
    String::from_utf8(to_vec(value)).unwrap_or_default()
}

/// Counts the bytes before the first quote, backslash or control character: those that need no
/// escape in a JSON string.
pub fn plain_length(bytes: &[u8]) -> usize {
    let mut plain = 0;
    for chunk in bytes.chunks(8) {
        let word = match chunk.try_into() {
            Ok(chunk) => u64::from_le_bytes(chunk),
            Err(_) => {
                let mut last = [b' '; 8];
                last[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(last)
            }
        };
        let special = special_bytes(word);
        if special != 0 {
            return plain + special.trailing_zeros() as usize / 8;
        }
        plain += chunk.len();
    }
    plain
}

/// Sets the high bit of each byte that needs an escape. Bytes above the lowest such byte may be
/// marked in error.
fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word & HIGH;
    let equal = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    below(word, 0x20) | equal(b'"') | equal(b'\\')
}

/// Appends the JSON escapes of `text`, without quotes.
///
/// Escaping works character by character, so the escapes of two pieces, one after the other, are
/// the escapes of the whole.
pub fn append_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else {
            return;
        };
        rest = behind;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        }
    }
}

/// Parses JSON that a JavaScript program wrote.
///
/// JavaScript strings may hold half a surrogate pair, printed as a lone `\udXXX`. Rust strings
/// cannot, and a strict parser rejects the whole line. Such halves are deleted; every other fault
/// is still an error.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(error) => match without_lone_surrogates(bytes) {
            Some(cleaned) => serde_json::from_slice(&cleaned),
            None => Err(error),
        },
    }
}

/// Returns `bytes` without lone surrogate escapes, or `None` if there are none.
pub fn without_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut cleaned: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        let Some(unit) = unicode_escape(bytes, escape) else {
            at = (escape + 2).min(bytes.len());
            continue;
        };
        at = escape + 6;
        let is_pair = matches!(unit, 0xd800..0xdc00)
            && unicode_escape(bytes, at).is_some_and(|low| matches!(low, 0xdc00..0xe000));
        if is_pair {
            at += 6;
        } else if matches!(unit, 0xd800..0xe000) {
            let out = cleaned.get_or_insert_with(|| Vec::with_capacity(bytes.len()));
            out.extend_from_slice(&bytes[copied..escape]);
            copied = at;
        }
    }
    let mut cleaned = cleaned?;
    cleaned.extend_from_slice(&bytes[copied..]);
    Some(cleaned)
}

/// Returns the code unit of a `\uXXXX` escape at `at`.
fn unicode_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn numbers_and_text_print_as_in_javascript() {
        let value = json!({"a": 1.0, "b": 2e-6, "c": "\u{7f}\u{2028}\u{1}\n\"", "d": 7});
        assert_eq!(
            to_string(&value),
            "{\"a\":1,\"b\":0.000002,\"c\":\"\u{7f}\u{2028}\\u0001\\n\\\"\",\"d\":7}"
        );
    }

    #[test]
    fn lone_surrogates_are_deleted_and_pairs_kept() {
        let value: Value = from_slice(br#"{"a":"x\ud83dy\ud83d\ude00\udc00z\\ud83d"}"#).unwrap();
        assert_eq!(value, json!({"a": "xy\u{1f600}z\\ud83d"}));
    }

    #[test]
    fn other_mistakes_stay_mistakes() {
        assert!(from_slice::<Value>(br#"{"a":}"#).is_err());
        assert!(from_slice::<Value>(br#"{"a":"\ud8"#).is_err());
    }

    proptest! {
        #[test]
        fn escapes_of_pieces_are_escapes_of_the_whole(left in any::<String>(), right in any::<String>()) {
            let mut pieces = vec![b'"'];
            append_escaped(&mut pieces, &left);
            append_escaped(&mut pieces, &right);
            pieces.push(b'"');
            prop_assert_eq!(pieces, serde_json::to_vec(&format!("{left}{right}")).unwrap());
        }

        #[test]
        fn plain_bytes_are_counted_one_by_one(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'a')], 0..40)) {
            let special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
            let count = bytes.iter().position(special).unwrap_or(bytes.len());
            prop_assert_eq!(plain_length(&bytes), count);
        }

        #[test]
        fn cleaning_never_panics(bytes in any::<Vec<u8>>()) {
            let _ = without_lone_surrogates(&bytes);
        }
    }
}
