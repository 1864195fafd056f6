//! Functions that Pinocchio adds to sprig: Markdown, padding and random choices.

use super::conversion::{to_float, to_int};
use super::words::{LETTERS_AND_DIGITS, random_text};
use super::{Arguments, Function, Outcome, Scope, check_size, exactly, text_value};
use crate::print;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("bold", 1, |_, args| {
        text_value(format!("**{}**", args.text(0)?))
    }),
    exactly("underline", 1, |_, args| {
        text_value(format!("__{}__", args.text(0)?))
    }),
    exactly("italic", 1, |_, args| {
        text_value(format!("*{}*", args.text(0)?))
    }),
    exactly("strikethrough", 1, |_, args| {
        text_value(format!("~~{}~~", args.text(0)?))
    }),
    exactly("code", 1, |_, args| {
        text_value(format!("`{}`", args.text(0)?))
    }),
    exactly("codeBlock", 2, |_, args| {
        text_value(format!("```{}\n{}\n```", args.text(1)?, args.text(0)?))
    }),
    exactly("styleBold", 1, |_, args| {
        text_value(format!("\u{1b}[1m{}\u{1b}[0m", args.text(0)?))
    }),
    exactly("padLeft", 2, |scope, args| {
        let (text, width) = sized(scope, args)?;
        text_value(format!("{text:>width$}"))
    }),
    exactly("padRight", 2, |scope, args| {
        let (text, width) = sized(scope, args)?;
        text_value(format!("{text:<width$}"))
    }),
    exactly("rpad", 2, |scope, args| {
        let (text, width) = sized(scope, args)?;
        text_value(format!("{text:<width$}"))
    }),
    exactly("padCenter", 2, |scope, args| {
        let (text, width) = sized(scope, args)?;
        let (before, after) = (
            (width + text.len()) / 2,
            width.saturating_sub(text.len()) / 2,
        );
        text_value(format!("{text:>before$}{:after$}", ""))
    }),
    exactly("indentBlock", 2, indent_block),
    exactly("trimRightSpace", 1, |_, args| {
        text_value(args.text(0)?.trim_end())
    }),
    exactly("trimTrailingWhitespaces", 1, |_, args| {
        text_value(args.text(0)?.trim_end())
    }),
    exactly("stripNewlines", 1, |_, args| {
        text_value(args.text(0)?.replace('\n', " "))
    }),
    exactly("quoteNewlines", 1, |_, args| {
        text_value(args.text(0)?.replace('\n', "\\n"))
    }),
    exactly("toUpper", 1, |_, args| {
        text_value(args.text(0)?.to_uppercase())
    }),
    exactly("toLower", 1, |_, args| {
        text_value(args.text(0)?.to_lowercase())
    }),
    exactly("currency", 1, |_, args| {
        text_value(match args.get(0) {
            Value::Int(whole) => format!("{whole}.00"),
            Value::Float(number) => format!("{number:.2}"),
            _ => String::new(),
        })
    }),
    exactly("toUrlField", 1, url_field),
    exactly("toUrlParameter", 1, url_field),
    exactly("randomChoice", 1, |scope, args| {
        let list = filled(args)?;
        let index = scope.random.below(list.len() as u64) as usize;
        Ok(list[index].clone())
    })
    .shallow(),
    exactly("randomSubset", 2, |scope, args| {
        let mut items = filled(args)?.to_vec();
        let count = usize::try_from(args.int(1)?)
            .map_err(|_| "the size of a subset cannot be negative".to_owned())?;
        scope.random.shuffle(&mut items);
        items.truncate(count);
        Ok(Value::list(items))
    })
    .shallow(),
    exactly("randomPermute", 1, |scope, args| {
        let mut items = filled(args)?.to_vec();
        scope.random.shuffle(&mut items);
        Ok(Value::list(items))
    })
    .shallow(),
    exactly("randomInt", 2, |scope, args| {
        Ok(random_int(scope, to_int(args.get(0)), to_int(args.get(1))).into())
    }),
    exactly("randomFloat", 2, |scope, args| {
        let (least, most) = (to_float(args.get(0)), to_float(args.get(1)));
        Ok(if least >= most {
            least
        } else {
            least + scope.random.unit() * (most - least)
        }
        .into())
    }),
    exactly("randomBool", 0, |scope, _| {
        Ok((scope.random.below(2) == 1).into())
    }),
    exactly("randomString", 1, |scope, args| {
        let count = args.count(0)?;
        text_value(random_text(scope, count, LETTERS_AND_DIGITS)?)
    }),
    exactly("randomStringList", 3, |scope, args| {
        let (count, least, most) = (args.count(0)?, args.int(1)?, args.int(2)?);
        let longest = usize::try_from(most.max(least).max(1)).unwrap_or(usize::MAX);
        check_size(scope, count.saturating_mul(longest.saturating_add(32)))?;
        let mut texts = Vec::with_capacity(count);
        for _ in 0..count {
            let length = usize::try_from(random_int(scope, least, most)).unwrap_or(0);
            texts.push(random_text(scope, length, LETTERS_AND_DIGITS)?);
        }
        Ok(Value::texts(texts))
    }),
];

fn sized<'a>(scope: &Scope<'_>, args: &Arguments<'a>) -> Result<(&'a str, usize), String> {
    let width = usize::try_from(to_int(args.get(1)).max(0)).unwrap_or(usize::MAX);
    // The widest field of Rust's formatter.
    if width > usize::from(u16::MAX) {
        return Err(format!(
            "a width of {width} is too large, at most {} is possible",
            u16::MAX
        ));
    }
    check_size(scope, width)?;
    Ok((args.text(0)?, width))
}

fn indent_block(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (count, text) = (args.count(0)?, args.text(1)?);
    let lines = text.matches('\n').count() + 1;
    check_size(
        scope,
        text.len()
            .saturating_add(lines.saturating_mul(count.saturating_add(1))),
    )?;
    let blanks = " ".repeat(count);
    text_value(
        text.split('\n')
            .map(|line| format!("{blanks}{line}\n"))
            .collect::<String>(),
    )
}

fn url_field(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    text_value(match args.get(0) {
        Value::String(text) => text.to_string(),
        Value::Time(time) => crate::layout::format(time, "2006-01-02"),
        Value::Float(number) => format!("{number:.6}"),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(print::printed).collect();
            items.join(",")
        }
        other => print::printed(other),
    })
}

fn filled<'a>(args: &Arguments<'a>) -> Result<&'a [Value], String> {
    let list = args.list(0)?;
    if list.is_empty() {
        return Err("the list is empty".to_owned());
    }
    Ok(list)
}

/// Returns a random number from `least` to `most`, both included.
fn random_int(scope: &mut Scope<'_>, least: i64, most: i64) -> i64 {
    if least >= most {
        return least;
    }
    let width = most.abs_diff(least).saturating_add(1);
    least.wrapping_add(scope.random.below(width) as i64)
}
