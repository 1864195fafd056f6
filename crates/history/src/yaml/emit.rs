//! YAML as the original program prints it: indentation of four, lists inside their key, plain text
//! where it parses as text.

use std::fmt::Write;

use serde_json::Value;

const STEP: usize = 4;

/// Prints the value as a document.
pub(super) fn document(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => map(&mut out, members, 0, Start::Fresh),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0, Start::Fresh),
        other => {
            scalar(&mut out, other, 0, STEP);
            out.push('\n');
        }
    }
    out
}

/// The state of a block's first line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    Fresh,
    /// The line already begins with `- `.
    Inline,
}

fn map(out: &mut String, members: &serde_json::Map<String, Value>, indent: usize, start: Start) {
    let mut start = start;
    for (key, value) in members {
        if start == Start::Fresh {
            blanks(out, indent);
        }
        start = Start::Fresh;
        let long = key.len() > 128 || key.contains('\n');
        if long {
            // Long keys are marked, because a parser's lookahead is limited.
            out.push_str("? ");
            quoted(out, key);
            out.push('\n');
            blanks(out, indent);
        } else {
            word(out, key);
        }
        out.push(':');
        // Within a list item the map is indented by two more; its blocks continue at the next
        // multiple of four.
        let inner = (indent / STEP + 1) * STEP;
        match value {
            Value::Object(members) if !members.is_empty() => {
                out.push('\n');
                map(out, members, inner, Start::Fresh);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, inner, Start::Fresh);
            }
            other => {
                out.push(' ');
                scalar(out, other, indent, inner);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Value], indent: usize, start: Start) {
    let mut start = start;
    for item in items {
        if start == Start::Fresh {
            blanks(out, indent);
        }
        start = Start::Fresh;
        out.push_str("- ");
        match item {
            Value::Object(members) if !members.is_empty() => {
                map(out, members, indent + 2, Start::Inline);
            }
            Value::Array(items) if !items.is_empty() => list(out, items, indent + 2, Start::Inline),
            other => {
                scalar(out, other, indent, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn blanks(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// Prints a value on the line of its key, whose block is indented by `outer`; its further lines are
/// indented by `inner`.
fn scalar(out: &mut String, value: &Value, outer: usize, inner: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => self::float(out, float),
            // Writing to a String cannot fail.
            _ => drop(write!(out, "{number}")),
        },
        Value::String(text) if text.contains('\n') && literal_fits(text) => {
            literal(out, text, outer, inner);
        }
        Value::String(text) => word(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn float(out: &mut String, float: f64) {
    let size = float.abs();
    let text = if size == 0.0 || (1e-5..1e21).contains(&size) {
        format!("{float}")
    } else {
        let text = format!("{float:e}");
        match text.split_once('e') {
            // YAML 1.2 parsers need a sign; the original prints a sign and two digits.
            Some((digits, exponent)) => match exponent.strip_prefix('-') {
                Some(exponent) => format!("{digits}e-{exponent:0>2}"),
                None => format!("{digits}e+{exponent:0>2}"),
            },
            None => text,
        }
    };
    out.push_str(&text);
}

/// Prints text on one line: plain if it parses as the same text, otherwise in quotes.
fn word(out: &mut String, text: &str) {
    if looks_like_something_else(text) || text.chars().any(needs_escape) {
        quoted(out, text);
    } else if plain_fits(text) {
        out.push_str(text);
    } else {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            other if needs_escape(other) => {
                let code = u32::from(other);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02X}"),
                    0x100..=0xffff => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Reports whether a character is not allowed in a document, or would end a line of it.
fn needs_escape(character: char) -> bool {
    match character {
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => true,
        '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | ' '..='~' => false,
        other => matches!(u32::from(other) & 0xffff, 0xfffe | 0xffff),
    }
}

/// Reports whether some parser would read a plain scalar as a null, a boolean, a number or a date.
fn looks_like_something_else(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", "-.inf",
        "+.inf", ".nan", "<<", "=",
    ];
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
        // Numbers in every form and dates start like this and contain only these characters.
        || (text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
            && text.contains(|c: char| c.is_ascii_digit())
            && number_like(text))
}

fn number_like(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    let digits = |text: &str, radix| text.chars().all(|c| c == '_' || c.is_digit(radix));
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let lower = unsigned.to_ascii_lowercase();
    if let Some((prefix, radix)) = radix.iter().find(|(prefix, _)| lower.starts_with(prefix)) {
        return digits(&lower[prefix.len()..], *radix);
    }
    let allowed = |c: char| c.is_ascii_digit() || "._:eE+-TtZz ".contains(c);
    unsigned.chars().all(allowed)
}

/// Reports whether text can be written without quotes.
fn plain_fits(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let rest = &text[first.len_utf8()..];
    let starts_well = match first {
        '-' | '?' | ':' => !rest.is_empty() && !rest.starts_with([' ', '\t']),
        other => !"#,[]{}&*!|>'\"%@` ".contains(other),
    };
    starts_well
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.starts_with("---")
        && !text.starts_with("...")
}

/// Reports whether text of several lines can be written literally.
fn literal_fits(text: &str) -> bool {
    !text
        .chars()
        .any(|c| !matches!(c, '\n' | '\t') && needs_escape(c))
        && !text.contains(" \n")
        && !text.ends_with([' ', '\t'])
        && text.chars().any(|c| !matches!(c, '\n' | ' ' | '\t'))
}

fn literal(out: &mut String, text: &str, outer: usize, inner: usize) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        // Without it parsers would treat the blanks as indentation.
        let _ = write!(out, "{}", inner - outer);
    }
    let body = text.trim_end_matches('\n');
    match text.len() - body.len() {
        0 => out.push('-'),
        1 => {}
        _ => out.push('+'),
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            blanks(out, inner);
            out.push_str(line);
        }
    }
}
