//! Hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes each byte as two lower-case digits.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// Decodes pairs of digits in either case. `None` if a character is not a digit or the last pair is not complete.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| byte(pair.try_into().ok()?)).collect()
}

/// Decodes one pair of digits.
pub fn byte([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(encode(&[0, 10, 0xbf]), "000abf");
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(decode("AbC0"), Some(vec![0xab, 0xc0]));
        for wrong in ["a", "xy", "+1", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
