//! Hexadecimal digits.

use std::fmt::Write;

/// Encodes each byte as two lower-case digits.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Decodes pairs of digits; `None` if they are not hexadecimal or their number is odd.
pub(crate) fn decode(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let [high, low] = pair else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        Some((digit(high)? * 16 + digit(low)?) as u8)
    };
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode("AbC0"), Some(vec![0xab, 0xc0]));
        for wrong in ["a", "xy", "+1", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
