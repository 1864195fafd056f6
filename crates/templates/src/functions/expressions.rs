//! Regular expressions, in Go's dialect.

use std::rc::Rc;
use std::time::{Duration, Instant};

use regex::Regex;

use super::{
    Arguments, Function, MAX_ITEMS, Outcome, Scope, check_items, check_size, exactly, text_value,
};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("regexMatch", 2, matches),
    exactly("mustRegexMatch", 2, matches),
    exactly("regexFind", 2, find),
    exactly("mustRegexFind", 2, find),
    exactly("regexFindAll", 3, find_all),
    exactly("mustRegexFindAll", 3, find_all),
    exactly("regexReplaceAll", 3, |scope, args| {
        replaced(scope, args, false)
    }),
    exactly("mustRegexReplaceAll", 3, |scope, args| {
        replaced(scope, args, false)
    }),
    exactly("regexReplaceAllLiteral", 3, |scope, args| {
        replaced(scope, args, true)
    }),
    exactly("mustRegexReplaceAllLiteral", 3, |scope, args| {
        replaced(scope, args, true)
    }),
    exactly("regexSplit", 3, split),
    exactly("mustRegexSplit", 3, split),
    exactly("regexQuoteMeta", 1, |_, args| {
        text_value(quote_meta(args.text(0)?))
    }),
    // This function takes the text first, and an invalid expression leaves it unchanged.
    exactly("replaceRegexp", 3, |scope, args| {
        let text = args.text(0)?;
        match compiled(scope, args.text(1)?, text) {
            Ok(expression) => replace_all(scope, &expression, text, args.text(2)?, false),
            Err(_) => text_value(text),
        }
    }),
];

/// The largest compiled expression, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// The longest search for all matches of one expression in one text. One match is found in linear
/// time; finding all of them can take quadratic time.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

/// The most compiled expressions in the cache.
const MAX_CACHED: usize = 32;

/// Expressions compiled in this rendering.
pub(crate) type Compiled = std::collections::HashMap<String, Rc<Regex>>;

/// Returns a compiled expression, from the cache if it is there. Searching `text` counts as far
/// more work than reading it.
fn compiled(scope: &mut Scope<'_>, expression: &str, text: &str) -> Result<Rc<Regex>, String> {
    scope.work += text.len() as u64 / 4;
    if let Some(known) = scope.expressions.get(expression) {
        return Ok(Rc::clone(known));
    }
    scope.work += 500 + 20 * expression.len() as u64;
    // A copy of a `Regex` would start with empty caches.
    let regex = Rc::new(compile(expression)?);
    if scope.expressions.len() >= MAX_CACHED {
        scope.expressions.clear();
    }
    scope
        .expressions
        .insert(expression.to_owned(), Rc::clone(&regex));
    Ok(regex)
}

fn compile(expression: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(&translated(expression))
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| format!("{expression:?} is not a regular expression: {error}"))
}

/// Translates Go's dialect: classes such as `\w` are ASCII, and only `\z` is the end of the text.
fn translated(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut characters = expression.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str("[\\t\\n\\f\\r ]"),
            Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
            Some('b') => out.push_str("(?-u:\\b)"),
            Some('Q') => {
                let rest = characters.as_str();
                let (literal, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                out.push_str(&regex::escape(literal));
                characters = after.chars();
            }
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

fn matches(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    Ok(expression.is_match(args.text(1)?).into())
}

fn find(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    text_value(
        expression
            .find(args.text(1)?)
            .map_or("", |found| found.as_str()),
    )
}

/// Converts a limit of matches; a negative number means all.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Passes items through, and returns an error in place of the next one after [`SEARCH_TIMEOUT`].
fn within_time<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = Result<T, String>> {
    let started = Instant::now();
    items.map(move |item| {
        if started.elapsed() > SEARCH_TIMEOUT {
            return Err(format!(
                "the search takes longer than {} seconds",
                SEARCH_TIMEOUT.as_secs()
            ));
        }
        Ok(item)
    })
}

fn find_all(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    let text = args.text(1)?;
    let wanted = count(args.int(2)?).min(MAX_ITEMS + 1);
    let found = within_time(expression.find_iter(text).take(wanted))
        .map(|found| found.map(|found| found.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    check_items(found.len())?;
    Ok(Value::texts(found))
}

fn split(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    let text = args.text(1)?;
    let parts: Vec<&str> = match args.int(2)? {
        0 => Vec::new(),
        number => {
            let wanted = count(number).min(MAX_ITEMS + 1);
            within_time(expression.splitn(text, wanted)).collect::<Result<_, _>>()?
        }
    };
    check_items(parts.len())?;
    Ok(Value::texts(parts))
}

fn replaced(scope: &mut Scope<'_>, args: &Arguments<'_>, literal: bool) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    replace_all(scope, &expression, args.text(1)?, args.text(2)?, literal)
}

fn replace_all(
    scope: &Scope<'_>,
    expression: &Regex,
    text: &str,
    with: &str,
    literal: bool,
) -> Outcome {
    // A replacement inserts the match as often as it names a group.
    let groups = 1 + with.matches('$').count();
    let mut matches = 0_usize;
    for found in within_time(expression.find_iter(text)) {
        found?;
        matches += 1;
    }
    check_size(
        scope,
        text.len()
            .saturating_mul(groups)
            .saturating_add(matches.saturating_mul(with.len())),
    )?;
    if literal {
        text_value(
            expression
                .replace_all(text, regex::NoExpand(with))
                .into_owned(),
        )
    } else {
        text_value(expression.replace_all(text, with).into_owned())
    }
}

fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\.+*?()|[]{}^$".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
