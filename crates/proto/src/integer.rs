//! Whole numbers as protobuf parses them: `1`, `1.0`, `10e-1`, and the same in quotes.

/// Converts a JSON number to an integer; `None` if it is not whole or has more digits than every
/// integer type here.
pub(crate) fn parse(number: &str) -> Option<i128> {
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (mantissa, exponent) = match number.find(['e', 'E']) {
        Some(at) => (&number[..at], power(&number[at + 1..])),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = || whole.bytes().chain(fraction.bytes());
    // Zero is zero with any exponent; without this check, its exponent would count as digits below.
    if digits().all(|digit| digit == b'0') {
        return Some(0);
    }
    let shift = exponent.saturating_sub(fraction.len() as i64);
    let dropped = if shift < 0 { shift.unsigned_abs() } else { 0 };
    let trailing = digits().rev().take_while(|&digit| digit == b'0').count();
    if dropped > trailing as u64 {
        return None;
    }
    let kept = whole.len() + fraction.len() - dropped as usize;
    let mut value: i128 = 0;
    for digit in digits().take(kept) {
        value = value
            .checked_mul(10)?
            .checked_add(i128::from(digit - b'0'))?;
    }
    for _ in 0..shift.max(0) {
        value = value.checked_mul(10)?;
    }
    Some(if negative { -value } else { value })
}

/// Parses the exponent; it saturates beyond the range of every integer type here.
fn power(text: &str) -> i64 {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let value = digits.bytes().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit.wrapping_sub(b'0')))
    });
    sign * value
}

/// Reports whether the text is a JSON number.
pub(crate) fn is_number(text: &str) -> bool {
    length(text.as_bytes()) == Some(text.len())
}

/// Returns the length of the JSON number at the beginning.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    match bytes.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at += digits(at),
        _ => return None,
    }
    if bytes.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        at += 1 + (count > 0).then_some(count)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let count = digits(at);
        at += (count > 0).then_some(count)?;
    }
    Some(at)
}
