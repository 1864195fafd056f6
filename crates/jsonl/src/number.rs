//! Numbers, printed as ECMAScript's `Number::toString` prints them.

use std::io::{self, Write};

/// Writes `value` the way JavaScript would: `3`, `0.0000020000000000000003`, `1e+21`.
pub(crate) fn write_f64<W: ?Sized + Write>(writer: &mut W, value: f64) -> io::Result<()> {
    if value == 0.0 {
        return writer.write_all(b"0");
    }
    // `{:e}` prints the shortest digits that parse to the same number.
    let mut text = [0u8; 40];
    let mut cursor = io::Cursor::new(&mut text[..]);
    write!(cursor, "{value:e}")?;
    let length = cursor.position() as usize;
    let text = &text[..length];
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let Some(e) = text.iter().position(|&byte| byte == b'e') else {
        return writer.write_all(text);
    };
    let exponent: i32 = std::str::from_utf8(&text[e + 1..])
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let mut digits = [0u8; 24];
    let mut count = 0;
    for &byte in text[..e].iter().filter(|&&byte| byte != b'.') {
        digits[count] = byte;
        count += 1;
    }
    let digits = &digits[..count];
    if negative {
        writer.write_all(b"-")?;
    }
    layout(writer, digits, exponent + 1)
}

/// `digits` is the shortest representation, `point` the position of the decimal point in it.
fn layout<W: ?Sized + Write>(writer: &mut W, digits: &[u8], point: i32) -> io::Result<()> {
    let count = digits.len() as i32;
    if (count..=21).contains(&point) {
        writer.write_all(digits)?;
        zeros(writer, point - count)
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(point as usize);
        writer.write_all(whole)?;
        writer.write_all(b".")?;
        writer.write_all(fraction)
    } else if (-5..=0).contains(&point) {
        writer.write_all(b"0.")?;
        zeros(writer, -point)?;
        writer.write_all(digits)
    } else {
        writer.write_all(&digits[..1])?;
        if count > 1 {
            writer.write_all(b".")?;
            writer.write_all(&digits[1..])?;
        }
        let exponent = point - 1;
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(writer, "e{sign}{}", exponent.abs())
    }
}

fn zeros<W: ?Sized + Write>(writer: &mut W, count: i32) -> io::Result<()> {
    (0..count).try_for_each(|_| writer.write_all(b"0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(value: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn prints_as_javascript_does() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (2.0000000000000003e-6, "0.0000020000000000000003"),
            (0.00007999999999999999, "0.00007999999999999999"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.25e22, "1.25e+22"),
            (123456789.125, "123456789.125"),
        ] {
            assert_eq!(print(value), text);
        }
    }

    proptest! {
        #[test]
        fn reads_back_as_the_same_number(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            prop_assert_eq!(print(value).parse::<f64>().unwrap(), value);
        }
    }
}
