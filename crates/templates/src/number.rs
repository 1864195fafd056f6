//! Numbers as Go prints and parses them.

use crate::lexer::Word;

/// Parses a number literal of a template: decimal, hexadecimal, octal, binary, with underscores, or
/// a float.
pub(crate) fn literal(text: &str) -> Option<Word> {
    if let Some(whole) = whole(text) {
        return Some(Word::Int(whole));
    }
    let (negative, digits) = sign(text);
    let lower = digits.to_ascii_lowercase();
    let number = match lower.strip_prefix("0x") {
        Some(hexadecimal) => hexadecimal_float(&plain(hexadecimal)?)?,
        None if digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'_' | b'+' | b'-')) =>
        {
            plain(digits)?.parse().ok()?
        }
        None => return None,
    };
    Some(Word::Float(if negative { -number } else { number }))
}

/// Parses a whole number in Go's notation (`0x`, `0o`, `0b`, a leading zero for octal,
/// underscores).
pub(crate) fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = sign(text);
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    let digits = plain(digits)?;
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return None;
    }
    let signed = if negative {
        format!("-{digits}")
    } else {
        digits
    };
    i64::from_str_radix(&signed, radix).ok()
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Removes underscores, which are allowed only between digits.
fn plain(digits: &str) -> Option<String> {
    if digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    Some(digits.replace('_', ""))
}

fn hexadecimal_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0_f64;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0 / 16.0;
    for digit in fraction.chars() {
        value += f64::from(digit.to_digit(16)?) * scale;
        scale /= 16.0;
    }
    Some(value * 2.0_f64.powi(exponent.parse().ok()?))
}

/// Returns the power of ten of the first digit.
fn exponent(number: f64) -> i32 {
    let text = format!("{number:e}");
    text.rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0)
}

/// Prints a float as `%v` does: shortest digits, with an exponent below 1e-4 and from a million on.
pub(crate) fn general(number: f64) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let exponent = exponent(number);
    if (-4..6).contains(&exponent) {
        format!("{number}")
    } else {
        scientific(number, None)
    }
}

/// Returns the name of an infinity or of not-a-number.
pub(crate) fn special(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// Prints a float with an exponent of at least two digits, as `%e` does; without a precision, the
/// shortest.
pub(crate) fn scientific(number: f64, precision: Option<usize>) -> String {
    let digits = precision.map(|digits| digits.min(LAST_DIGIT));
    let text = match digits {
        Some(digits) => format!("{number:.digits$e}"),
        None => format!("{number:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let zeros = "0".repeat(precision.unwrap_or(0).saturating_sub(LAST_DIGIT));
    format!("{mantissa}{zeros}e{sign}{:02}", exponent.abs())
}

/// Prints a float with a fixed number of digits after the point, as `%.3f` does.
pub(crate) fn fixed(number: f64, precision: usize) -> String {
    let digits = precision.min(LAST_DIGIT);
    let zeros = "0".repeat(precision - digits);
    format!("{number:.digits$}{zeros}")
}

/// The last digit after the point that can differ from zero. The formatter of the standard library
/// panics from 65,536 digits on.
const LAST_DIGIT: usize = 1_100;

/// Prints a float with a number of significant digits, as `%.3g` does.
pub(crate) fn general_with(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.min(LAST_DIGIT);
    let rounded = format!("{number:.*e}", digits - 1);
    let exponent: i32 = rounded
        .rsplit_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let without_zeros = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 || exponent >= digits as i32 {
        let text = scientific(number, Some(digits - 1));
        let (mantissa, tail) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{tail}", without_zeros(mantissa));
    }
    let fraction = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{number:.fraction$}"))
}
