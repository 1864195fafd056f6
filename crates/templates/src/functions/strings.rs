//! Sprig's functions on text.

use std::collections::HashSet;

use super::{
    Arguments, Function, Outcome, Scope, between, check_items, check_size, exactly, from,
    text_value,
};
use crate::print;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("upper", 1, |_, args| {
        text_value(args.text(0)?.to_uppercase())
    }),
    exactly("lower", 1, |_, args| {
        text_value(args.text(0)?.to_lowercase())
    }),
    exactly("trimAll", 2, trim_all),
    exactly("trimall", 2, trim_all),
    exactly("trimPrefix", 2, |_, args| {
        let text = args.text(1)?;
        text_value(text.strip_prefix(args.text(0)?).unwrap_or(text))
    }),
    exactly("trimSuffix", 2, |_, args| {
        let text = args.text(1)?;
        text_value(text.strip_suffix(args.text(0)?).unwrap_or(text))
    }),
    exactly("contains", 2, |_, args| {
        Ok(args.text(1)?.contains(args.text(0)?).into())
    }),
    exactly("hasPrefix", 2, |_, args| {
        Ok(args.text(1)?.starts_with(args.text(0)?).into())
    }),
    exactly("hasSuffix", 2, |_, args| {
        Ok(args.text(1)?.ends_with(args.text(0)?).into())
    }),
    exactly("replace", 3, replace),
    exactly("repeat", 2, repeat),
    exactly("substr", 3, substr),
    exactly("trunc", 2, trunc),
    exactly("nospace", 1, |_, args| {
        text_value(
            args.text(0)?
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect::<String>(),
        )
    }),
    exactly("indent", 2, |scope, args| {
        indent(scope, args).and_then(text_value)
    }),
    exactly("nindent", 2, |scope, args| {
        text_value(format!("\n{}", indent(scope, args)?))
    }),
    from("squote", 0, |_, args| {
        text_value(wrapped(args, |text| format!("'{text}'")))
    }),
    from("cat", 0, |_, args| {
        let words: Vec<String> = present(args.all()).map(print::printed).collect();
        text_value(words.join(" "))
    }),
    exactly("join", 2, join),
    exactly("split", 2, split),
    exactly("splitList", 2, |_, args| {
        parts(args.text(1)?, args.text(0)?).map(Value::texts)
    }),
    exactly("splitn", 3, splitn),
    exactly("sortAlpha", 1, |_, args| {
        let mut texts = texts(args.get(0));
        texts.sort_unstable();
        Ok(Value::texts(texts))
    }),
    exactly("toString", 1, |_, args| text_value(args.shown(0))),
    exactly("toStrings", 1, |_, args| {
        Ok(Value::texts(texts(args.get(0))))
    }),
    exactly("plural", 3, |_, args| {
        text_value(args.text(usize::from(args.int(2)? != 1))?)
    }),
    exactly("shuffle", 1, |scope, args| {
        let mut characters: Vec<char> = args.text(0)?.chars().collect();
        scope.random.shuffle(&mut characters);
        text_value(characters.into_iter().collect::<String>())
    }),
    exactly("env", 1, |scope, args| {
        text_value((scope.context.environment)(args.text(0)?).unwrap_or_default())
    }),
    exactly("expandenv", 1, expand),
    between("hello", 0, 0, |_, _| text_value("Hello!")),
];

fn present(values: &[Value]) -> impl Iterator<Item = &Value> {
    values.iter().filter(|value| !matches!(value, Value::Nil))
}

/// Applies `wrap` to each argument that is not nil and joins the results with blanks.
fn wrapped(args: &Arguments<'_>, wrap: fn(&str) -> String) -> String {
    let words: Vec<String> = present(args.all())
        .map(|value| wrap(&print::printed(value)))
        .collect();
    words.join(" ")
}

/// Returns the texts of a list, or the text of another value.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Nil => Vec::new(),
        Value::List(list) => present(list).map(print::printed).collect(),
        other => vec![print::printed(other)],
    }
}

fn join(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let separator = args.text(0)?;
    let texts = texts(args.get(1));
    let size = texts.iter().map(|text| text.len() + separator.len()).sum();
    check_size(scope, size)?;
    text_value(texts.join(separator))
}

fn replace(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (old, new, text) = (args.text(0)?, args.text(1)?, args.text(2)?);
    check_size(
        scope,
        text.len() + (text.matches(old).count()).saturating_mul(new.len()),
    )?;
    text_value(text.replace(old, new))
}

fn repeat(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (count, text) = (args.count(0)?, args.text(1)?);
    check_size(scope, text.len().saturating_mul(count))?;
    text_value(text.repeat(if text.is_empty() { 0 } else { count }))
}

/// Returns the byte offset of a character.
fn character(text: &str, index: usize) -> usize {
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

fn substr(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (start, end, text) = (args.int(0)?, args.int(1)?, args.text(2)?);
    let at = |index: i64| character(text, usize::try_from(index).unwrap_or(0));
    let length = text.chars().count() as i64;
    text_value(if start < 0 {
        &text[..at(end.max(0))]
    } else if end < 0 || end > length {
        &text[at(start)..]
    } else {
        &text[at(start.min(end))..at(end)]
    })
}

fn trunc(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (count, text) = (args.int(0)?, args.text(1)?);
    let length = text.chars().count();
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    text_value(if count >= 0 {
        &text[..character(text, size)]
    } else {
        &text[character(text, length.saturating_sub(size))..]
    })
}

fn indent(scope: &Scope<'_>, args: &Arguments<'_>) -> Result<String, String> {
    let (count, text) = (args.count(0)?, args.text(1)?);
    let lines = text.matches('\n').count() + 1;
    check_size(
        scope,
        text.len().saturating_add(lines.saturating_mul(count)),
    )?;
    let blanks = " ".repeat(count);
    Ok(format!(
        "{blanks}{}",
        text.replace('\n', &format!("\n{blanks}"))
    ))
}

fn trim_all(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    // A set, because each character of the text is looked up in it.
    let set: HashSet<char> = args.text(0)?.chars().collect();
    text_value(args.text(1)?.trim_matches(|c| set.contains(&c)))
}

/// Splits text at a separator; an empty separator splits it into characters.
fn parts(text: &str, separator: &str) -> Result<Vec<String>, String> {
    if separator.is_empty() {
        check_items(text.chars().count())?;
        return Ok(text.chars().map(String::from).collect());
    }
    check_items(text.matches(separator).count() + 1)?;
    Ok(text.split(separator).map(str::to_owned).collect())
}

fn numbered(parts: Vec<String>) -> Value {
    Value::object(
        parts
            .into_iter()
            .enumerate()
            .map(|(index, part)| (format!("_{index}"), Value::text(part))),
    )
}

fn split(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    parts(args.text(1)?, args.text(0)?).map(numbered)
}

fn splitn(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (separator, count, text) = (args.text(0)?, args.count(1)?, args.text(2)?);
    if separator.is_empty() {
        return parts(text, separator).map(numbered);
    }
    check_items(count.min(text.matches(separator).count() + 1))?;
    Ok(numbered(
        text.splitn(count, separator).map(str::to_owned).collect(),
    ))
}

fn expand(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut out = String::new();
    let mut rest = args.text(0)?;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, tail) = match after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        {
            Some(found) => found,
            None => {
                let length = after
                    .find(|c: char| !(c == '_' || c.is_ascii_alphanumeric()))
                    .unwrap_or(after.len());
                after.split_at(length)
            }
        };
        if name.is_empty() {
            out.push('$');
        } else {
            let value = (scope.context.environment)(name).unwrap_or_default();
            check_size(scope, out.len().saturating_add(value.len()))?;
            out.push_str(&value);
        }
        rest = tail;
    }
    out.push_str(rest);
    text_value(out)
}
