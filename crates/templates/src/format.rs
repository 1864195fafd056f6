//! Go's `fmt.Sprintf`.

use std::fmt::Write;

use crate::number;
use crate::print::{self, quoted};
use crate::value::Value;

/// The widest field and the longest fraction, in characters.
const MAX_WIDTH: usize = 1_000_000;

#[derive(Debug, Default, Clone, Copy)]
struct Flags {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Formats values as `fmt.Sprintf` does, including its notes about wrong verbs.
pub(crate) fn sprintf(format: &str, values: &[Value], limit: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = format;
    let mut next = 0;
    let mut reordered = false;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let mut reader = Reader {
            text: &rest[at + 1..],
            values,
            next,
            reordered: false,
            bad_index: false,
        };
        let (flags, notes) = reader.flags()?;
        out.push_str(&notes);
        next = reader.next;
        reordered |= reader.reordered;
        let Some(verb) = reader.text.chars().next() else {
            out.push_str("%!(NOVERB)");
            rest = "";
            break;
        };
        rest = &reader.text[verb.len_utf8()..];
        if verb == '%' {
            out.push('%');
        } else if reader.bad_index {
            out.push_str(&format!("%!{verb}(BADINDEX)"));
        } else if let Some(value) = values.get(next) {
            next += 1;
            if least_size(value, flags) > limit.saturating_sub(out.len()) {
                return Err("the result is too large".to_owned());
            }
            out.push_str(&formatted(value, verb, flags));
        } else {
            out.push_str(&format!("%!{verb}(MISSING)"));
        }
        if out.len() > limit {
            return Err("the result is too large".to_owned());
        }
    }
    out.push_str(rest);
    if !reordered && next < values.len() {
        out.push_str("%!(EXTRA ");
        let extra: Vec<String> = values[next..]
            .iter()
            .map(|value| match value {
                Value::Nil => "<nil>".to_owned(),
                other => format!("{}={}", other.type_name(), print::printed(other)),
            })
            .collect();
        out.push_str(&extra.join(", "));
        out.push(')');
    }
    Ok(out)
}

struct Reader<'f> {
    text: &'f str,
    values: &'f [Value],
    next: usize,
    reordered: bool,
    bad_index: bool,
}

impl Reader<'_> {
    fn flags(&mut self) -> Result<(Flags, String), String> {
        let mut flags = Flags::default();
        let mut notes = String::new();
        loop {
            match self.text.bytes().next() {
                Some(b'-') => {
                    flags.minus = true;
                    flags.zero = false;
                }
                Some(b'+') => flags.plus = true,
                Some(b'#') => flags.sharp = true,
                Some(b' ') => flags.space = true,
                Some(b'0') => flags.zero = !flags.minus,
                _ => break,
            }
            self.text = &self.text[1..];
        }
        self.index();
        if self.text.starts_with('*') {
            self.text = &self.text[1..];
            match self.star() {
                Some(width) if width < 0 => {
                    flags.minus = true;
                    flags.zero = false;
                    flags.width = Some(bounded(width.unsigned_abs())?);
                }
                Some(width) => flags.width = Some(bounded(width.unsigned_abs())?),
                None => notes.push_str("%!(BADWIDTH)"),
            }
        } else {
            flags.width = self.digits()?;
        }
        if self.text.starts_with('.') {
            self.text = &self.text[1..];
            self.index();
            if self.text.starts_with('*') {
                self.text = &self.text[1..];
                match self.star() {
                    Some(precision) if precision >= 0 => {
                        flags.precision = Some(bounded(precision.unsigned_abs())?);
                    }
                    _ => notes.push_str("%!(BADPREC)"),
                }
            } else {
                flags.precision = Some(self.digits()?.unwrap_or(0));
            }
        }
        self.index();
        Ok((flags, notes))
    }

    /// Parses `[2]`, the number of the next operand.
    fn index(&mut self) {
        let Some(inner) = self.text.strip_prefix('[') else {
            return;
        };
        self.reordered = true;
        let Some((number, rest)) = inner.split_once(']') else {
            self.bad_index = true;
            return;
        };
        match number.parse::<usize>() {
            Ok(number) if number >= 1 && number <= self.values.len() => self.next = number - 1,
            _ => self.bad_index = true,
        }
        self.text = rest;
    }

    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next);
        self.next += 1;
        match value {
            Some(Value::Int(whole)) => Some(*whole),
            _ => None,
        }
    }

    fn digits(&mut self) -> Result<Option<usize>, String> {
        let length = self.text.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Ok(None);
        }
        let number = self.text[..length].parse().unwrap_or(u64::MAX);
        self.text = &self.text[length..];
        bounded(number).map(Some)
    }
}

fn bounded(number: u64) -> Result<usize, String> {
    match usize::try_from(number) {
        Ok(number) if number <= MAX_WIDTH => Ok(number),
        _ => Err(format!(
            "width {number} is too large, at most {MAX_WIDTH} is possible"
        )),
    }
}

/// Returns the fewest bytes that the fields of a value take: each item of a list has its own field.
fn least_size(value: &Value, flags: Flags) -> usize {
    let sum = |total: usize, size| total.saturating_add(size);
    match value {
        Value::List(list) => list.iter().map(|item| least_size(item, flags)).fold(0, sum),
        Value::Map(map) => map
            .values()
            .map(|item| least_size(item, flags))
            .fold(map.len().saturating_mul(flags.width.unwrap_or(0)), sum),
        Value::Int(_) | Value::Float(_) => flags.width.max(flags.precision).unwrap_or(0),
        _ => flags.width.unwrap_or(0),
    }
}

fn formatted(value: &Value, verb: char, flags: Flags) -> String {
    match (verb, value) {
        ('T', value) => padded(value.type_name(), flags),
        ('v', Value::Nil) => padded("<nil>", flags),
        (_, Value::Nil) => format!("%!{verb}(<nil>)"),
        ('v', value) if flags.sharp => padded(&syntax(value), flags),
        ('v', Value::Int(whole)) => integer(*whole, 10, flags, false),
        ('v', Value::Float(number)) => float(*number, 'g', flags),
        (
            's' | 'v' | 'q' | 'x' | 'X' | 'd' | 't' | 'f' | 'g' | 'e' | 'c' | 'b' | 'o' | 'F' | 'E'
            | 'G' | 'U' | 'O',
            Value::List(list),
        ) => {
            let items: Vec<String> = list.iter().map(|item| inner(item, verb, flags)).collect();
            format!("[{}]", items.join(" "))
        }
        (_, Value::Map(map)) => {
            let items: Vec<String> = map
                .iter()
                .map(|(key, item)| {
                    format!(
                        "{}:{}",
                        formatted(&Value::text(key.as_str()), verb, flags),
                        inner(item, verb, flags)
                    )
                })
                .collect();
            format!("map[{}]", items.join(" "))
        }
        ('v' | 's', Value::Time(_)) => padded(&print::printed(value), flags),
        ('t' | 'v', Value::Bool(flag)) => padded(if *flag { "true" } else { "false" }, flags),
        ('d', Value::Int(whole)) => integer(*whole, 10, flags, false),
        ('b', Value::Int(whole)) => integer(*whole, 2, flags, false),
        ('o', Value::Int(whole)) => integer(*whole, 8, flags, false),
        ('O', Value::Int(whole)) => padded(&format!("0o{whole:o}"), flags),
        ('x', Value::Int(whole)) => integer(*whole, 16, flags, false),
        ('X', Value::Int(whole)) => integer(*whole, 16, flags, true),
        ('c', Value::Int(whole)) => padded(&character(*whole).to_string(), flags),
        ('q', Value::Int(whole)) => {
            let mut inner = String::from("'");
            match character(*whole) {
                '\'' => inner.push_str("\\'"),
                other => print::escape(&mut inner, other),
            }
            inner.push('\'');
            padded(&inner, flags)
        }
        ('U', Value::Int(whole)) => padded(&format!("U+{whole:04X}"), flags),
        ('e' | 'E' | 'f' | 'F' | 'g' | 'G', Value::Float(number)) => float(*number, verb, flags),
        ('s' | 'v', Value::String(text)) => padded(&cut(text, flags), flags),
        ('q', Value::String(text)) => {
            let text = cut(text, flags);
            let raw = flags.sharp && !text.contains('`') && !text.contains(char::is_control);
            padded(
                &if raw {
                    format!("`{text}`")
                } else {
                    quoted(&text)
                },
                flags,
            )
        }
        ('x' | 'X', Value::String(text)) => {
            let bytes = text.bytes().take(flags.precision.unwrap_or(usize::MAX));
            let mut digits = String::with_capacity(text.len().saturating_mul(2));
            for byte in bytes {
                if flags.space && !digits.is_empty() {
                    digits.push(' ');
                }
                let _ = if verb == 'x' {
                    write!(digits, "{byte:02x}")
                } else {
                    write!(digits, "{byte:02X}")
                };
            }
            padded(&digits, flags)
        }
        // A value of another kind is still printed, at the requested width.
        (verb, value) => format!(
            "%!{verb}({}={})",
            value.type_name(),
            formatted(value, 'v', flags)
        ),
    }
}

/// Formats an item of a list or map; nil is printed as such, whatever the verb and the width.
fn inner(value: &Value, verb: char, flags: Flags) -> String {
    match value {
        Value::Nil => "<nil>".to_owned(),
        other => formatted(other, verb, flags),
    }
}

fn character(code: i64) -> char {
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn cut(text: &str, flags: Flags) -> String {
    text.chars()
        .take(flags.precision.unwrap_or(usize::MAX))
        .collect()
}

fn padded(text: &str, flags: Flags) -> String {
    let missing = flags
        .width
        .unwrap_or(0)
        .saturating_sub(text.chars().count());
    if missing == 0 {
        text.to_owned()
    } else if flags.minus {
        format!("{text}{}", " ".repeat(missing))
    } else if flags.zero {
        format!("{}{text}", "0".repeat(missing))
    } else {
        format!("{}{text}", " ".repeat(missing))
    }
}

fn sign(negative: bool, flags: Flags) -> &'static str {
    if negative {
        "-"
    } else if flags.plus {
        "+"
    } else if flags.space {
        " "
    } else {
        ""
    }
}

/// Puts the sign of a number before its zero padding.
fn numeric(sign: &str, digits: &str, flags: Flags) -> String {
    if flags.zero && flags.precision.is_none() {
        let width = flags.width.unwrap_or(0).saturating_sub(sign.len());
        let missing = width.saturating_sub(digits.len());
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    let flags = Flags {
        zero: false,
        ..flags
    };
    padded(&format!("{sign}{digits}"), flags)
}

fn integer(whole: i64, radix: u32, flags: Flags, upper: bool) -> String {
    let size = whole.unsigned_abs();
    let mut digits = match radix {
        2 => format!("{size:b}"),
        8 => format!("{size:o}"),
        16 if upper => format!("{size:X}"),
        16 => format!("{size:x}"),
        _ => size.to_string(),
    };
    if let Some(least) = flags.precision {
        if least == 0 && size == 0 {
            digits.clear();
        }
        digits = format!("{}{digits}", "0".repeat(least.saturating_sub(digits.len())));
    }
    if flags.sharp {
        let prefix = match radix {
            2 => "0b",
            8 => "0",
            16 if upper => "0X",
            16 => "0x",
            _ => "",
        };
        digits = format!("{prefix}{digits}");
    }
    numeric(sign(whole < 0, flags), &digits, flags)
}

fn float(number: f64, verb: char, flags: Flags) -> String {
    if let Some(special) = number::special(number) {
        let text = if flags.plus {
            special
        } else {
            special.trim_start_matches('+')
        };
        // Go prints an infinity of %v with its sign.
        let text = if verb == 'g' && flags.precision.is_none() {
            special
        } else {
            text
        };
        return padded(
            text,
            Flags {
                zero: false,
                ..flags
            },
        );
    }
    let size = number.abs();
    let digits = match verb {
        'f' | 'F' => number::fixed(size, flags.precision.unwrap_or(6)),
        'e' => number::scientific(size, Some(flags.precision.unwrap_or(6))),
        'E' => number::scientific(size, Some(flags.precision.unwrap_or(6))).to_uppercase(),
        _ => {
            let text = match flags.precision {
                None => number::general(size),
                Some(precision) => number::general_with(size, precision.max(1)),
            };
            if verb == 'G' {
                text.to_uppercase()
            } else {
                text
            }
        }
    };
    let flags_without_precision = Flags {
        precision: None,
        ..flags
    };
    numeric(
        sign(number.is_sign_negative(), flags),
        &digits,
        flags_without_precision,
    )
}

/// Prints a value in Go's syntax, as `%#v` does.
fn syntax(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Map(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(key, item)| format!("{}:{}", quoted(key), syntax(item)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Nil => "interface {}(nil)".to_owned(),
        other => print::printed(other),
    }
}
