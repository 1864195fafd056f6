//! The parts of HTTP requests that select a file and a range of it.

use pinion_text::percent;

use crate::ClipError;

/// A range of a file, in the form of [`super::WebRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes; 0 for all to the end.
    pub length: u64,
}

/// Parses a `Range` field: `bytes=a-b` or `bytes=a-`. All other forms, such as several ranges or the last bytes of a
/// file, are rejected. The length of the file is not checked here.
pub fn parse_range(field: &str) -> Result<ByteRange, ClipError> {
    let invalid = || {
        ClipError::invalid(format!(
            "Range \"{field}\" is not understood; it may be bytes=FIRST-LAST or bytes=FIRST-"
        ))
    };
    let (unit, range) = field.trim().split_once('=').ok_or_else(invalid)?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Err(invalid());
    }
    let (first, last) = range.trim().split_once('-').ok_or_else(invalid)?;
    let offset = number(first).ok_or_else(invalid)?;
    if last.is_empty() {
        return Ok(ByteRange { offset, length: 0 });
    }
    let last = number(last)
        .filter(|last| *last >= offset)
        .ok_or_else(invalid)?;
    let length = (last - offset).saturating_add(1);
    Ok(ByteRange { offset, length })
}

/// Parses digits; a number that is too large becomes the largest one.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Returns `Content-Range` for `length` bytes from `offset`; `None` for no bytes, which the field cannot express.
pub fn content_range(offset: u64, length: u64, total: u64) -> Option<String> {
    let last = offset.checked_add(length)?.checked_sub(1)?;
    (length > 0).then(|| format!("bytes {offset}-{last}/{total}"))
}

/// Decodes the percent escapes of a path; `None` if one is incomplete or the result is not UTF-8.
pub fn decode_path(path: &str) -> Option<String> {
    String::from_utf8(percent::decode_strictly(path.as_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_forms_of_ranges_are_understood() {
        for (field, offset, length) in [
            ("bytes=5-10", 5, 6),
            ("bytes=15-", 15, 0),
            ("bytes=0-0", 0, 1),
            (" Bytes = 0-", 0, 0),
            ("bytes=1-99999999999999999999999", 1, u64::MAX - 1 + 1),
        ] {
            let range = parse_range(field).unwrap();
            assert_eq!((range.offset, range.length), (offset, length), "{field}");
        }
        for wrong in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=-5",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1 - 2",
            "items=0-1",
            "bytes=0x1-",
        ] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
        assert_eq!(content_range(5, 6, 21).unwrap(), "bytes 5-10/21");
        assert_eq!(content_range(0, 0, 0), None);
    }

    #[test]
    fn addresses_are_decoded_once() {
        assert_eq!(decode_path("/a%20b%2Fc%2e").unwrap(), "/a b/c.");
        assert_eq!(decode_path("%252e").unwrap(), "%2e");
        for wrong in ["%", "%2", "%zz", "%ff", "a%c3"] {
            assert_eq!(decode_path(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn ranges_agree_with_content_range(first in any::<u32>(), more in any::<u32>(), total in any::<u32>()) {
            let last = u64::from(first) + u64::from(more);
            let range = parse_range(&format!("bytes={first}-{last}")).unwrap();
            prop_assert_eq!(range.offset, u64::from(first));
            prop_assert_eq!(range.length, u64::from(more) + 1);
            let total = u64::from(total);
            prop_assert_eq!(content_range(range.offset, range.length, total).unwrap(), format!("bytes {first}-{last}/{total}"));
        }

        #[test]
        fn no_header_makes_the_parser_panic(field in any::<String>(), path in "[%0-9a-fA-F/.]{0,12}") {
            let _ = parse_range(&field);
            let _ = decode_path(&field);
            let _ = decode_path(&path);
        }
    }
}
