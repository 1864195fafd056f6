//! Repairs lines that are JSON except for a character: an escaped surrogate without its pair, as programs print that cut
//! UTF-16 text, or bytes that are not UTF-8. A strict parser rejects the whole line because of them.

/// Replaces invalid characters by `\ufffd`; returns `None` if all characters are valid.
pub(crate) fn repair(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    // The end of the part that is already copied.
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        let length = match escape(&bytes[at..]) {
            None => 2,
            Some(0xd800..=0xdbff)
                if matches!(
                    escape(bytes.get(at + 6..).unwrap_or_default()),
                    Some(0xdc00..=0xdfff)
                ) =>
            {
                12
            }
            Some(0xd800..=0xdfff) => {
                repaired.push_str(&text[copied..at]);
                repaired.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            Some(_) => 6,
        };
        at = (at + length).min(bytes.len());
    }
    if copied == 0 {
        return matches!(text, std::borrow::Cow::Owned(_)).then(|| text.into_owned());
    }
    repaired.push_str(&text[copied..]);
    Some(repaired)
}

/// Parses a `\uXXXX` at the start of `bytes`.
fn escape(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unpaired_surrogates_are_replaced_and_pairs_stay() {
        for (line, wanted) in [
            (r#""\ud83d""#, Some(r#""\ufffd""#)),
            (r#""\uD83D\uDE00 \ude00""#, Some(r#""\uD83D\uDE00 \ufffd""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\\ud83d \ud83d\ude00 \u00e9""#, None),
            (r#""\ud8"#, None),
            (r"\", None),
        ] {
            assert_eq!(repair(line.as_bytes()).as_deref(), wanted, "{line}");
        }
        assert_eq!(repair(b"\"\xff\"").as_deref(), Some("\"\u{fffd}\""));
    }

    proptest! {
        #[test]
        fn any_repaired_surrogates_can_be_parsed(units in proptest::collection::vec(prop_oneof![any::<u16>(), 0xd800u16..0xe000], 0..12)) {
            let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let line = format!("\"{escapes}\"");
            let whole = repair(line.as_bytes()).unwrap_or(line);
            let read: String = serde_json::from_str(&whole).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn any_bytes_are_accepted(bytes in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'u'), Just(b'd'), any::<u8>()], 0..40)) {
            let _ = repair(&bytes);
        }
    }
}
