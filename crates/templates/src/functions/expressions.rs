//! Regular expressions, in Go's dialect.

use std::rc::Rc;
use std::time::{Duration, Instant};

use regex::Regex;

use super::{Arguments, Function, LONGEST, Outcome, Scope, bounded, countable, exactly, given};
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
        given(quote_meta(args.text(0)?))
    }),
    // The text comes first here, and a wrong expression leaves it as it is.
    exactly("replaceRegexp", 3, |scope, args| {
        let text = args.text(0)?;
        match compiled(scope, args.text(1)?, text) {
            Ok(expression) => replace_all(scope, &expression, text, args.text(2)?, false),
            Err(_) => given(text),
        }
    }),
];

/// The memory one compiled expression may take.
const SIZE: usize = 1 << 20;

/// How long all matches of one expression in one text may take. One match is found in linear time; to find all of them
/// can take quadratic time.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

/// How many compiled expressions are kept.
const KEPT: usize = 32;

/// Expressions that were compiled in this rendering.
pub(crate) type Compiled = std::collections::HashMap<String, Rc<Regex>>;

/// Compiles an expression, or finds it among those that were. Searching `text` is charged as far more work than
/// reading it.
fn compiled(scope: &mut Scope<'_>, expression: &str, text: &str) -> Result<Rc<Regex>, String> {
    scope.work += text.len() as u64 / 4;
    if let Some(known) = scope.expressions.get(expression) {
        return Ok(Rc::clone(known));
    }
    scope.work += 500 + 20 * expression.len() as u64;
    // A copy of a `Regex` would begin with empty caches.
    let regex = Rc::new(compile(expression)?);
    if scope.expressions.len() >= KEPT {
        scope.expressions.clear();
    }
    scope
        .expressions
        .insert(expression.to_owned(), Rc::clone(&regex));
    Ok(regex)
}

fn compile(expression: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(&translated(expression))
        .size_limit(SIZE)
        .dfa_size_limit(SIZE)
        .build()
        .map_err(|error| format!("{expression:?} is not a regular expression: {error}"))
}

/// Classes such as `\w` mean ASCII in Go, and `\z` is the only sign for the end of the text.
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
    given(
        expression
            .find(args.text(1)?)
            .map_or("", |found| found.as_str()),
    )
}

/// So many of them; all of them for a negative number.
fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The same items, and an error instead of the next one when they take too long.
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
    let wanted = count(args.int(2)?).min(LONGEST + 1);
    let found = within_time(expression.find_iter(text).take(wanted))
        .map(|found| found.map(|found| found.as_str()))
        .collect::<Result<Vec<_>, _>>()?;
    countable(found.len())?;
    Ok(Value::texts(found))
}

fn split(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let expression = compiled(scope, args.text(0)?, args.text(1)?)?;
    let text = args.text(1)?;
    let parts: Vec<&str> = match args.int(2)? {
        0 => Vec::new(),
        number => {
            let wanted = count(number).min(LONGEST + 1);
            within_time(expression.splitn(text, wanted)).collect::<Result<_, _>>()?
        }
    };
    countable(parts.len())?;
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
    // A match may be put in as often as the replacement names a group.
    let groups = 1 + with.matches('$').count();
    let mut matches = 0_usize;
    for found in within_time(expression.find_iter(text)) {
        found?;
        matches += 1;
    }
    bounded(
        scope,
        text.len()
            .saturating_mul(groups)
            .saturating_add(matches.saturating_mul(with.len())),
    )?;
    if literal {
        given(
            expression
                .replace_all(text, regex::NoExpand(with))
                .into_owned(),
        )
    } else {
        given(expression.replace_all(text, with).into_owned())
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
