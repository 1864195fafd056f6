//! The argument language of prompt templates: splitting a line, putting arguments into a text.
//!
//! The rules and their order are pi's, because templates written for it rely on both.

/// Bytes. A template may repeat its arguments many times; its expansion stays below this limit.
const MAX_EXPANSION_BYTES: usize = 32 * 1024 * 1024;

/// Splits at spaces and tabs. Quotes of either kind group and vanish; there are no escapes, an
/// open quote runs to the end, and an empty argument does not count.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current = String::new();
    let mut quote = None;
    for character in line.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => current.push(character),
            None => match character {
                '"' | '\'' => quote = Some(character),
                ' ' | '\t' => {
                    if !current.is_empty() {
                        arguments.push(std::mem::take(&mut current));
                    }
                }
                _ => current.push(character),
            },
        }
    }
    if !current.is_empty() {
        arguments.push(current);
    }
    arguments
}

/// Puts arguments into a template, in four passes over the whole text: `$1`, then `${@:2}` and
/// `${@:2:3}`, then `$ARGUMENTS`, then `$@`. A later pass also replaces in the text that an earlier
/// one put in.
pub(crate) fn substitute(template: &str, arguments: &[String]) -> String {
    if !template.contains('$') {
        return template.to_owned();
    }
    let all = arguments.join(" ");
    let text = replace(template, |rest| {
        let (number, length) = digits(rest)?;
        let argument = number.checked_sub(1).and_then(|index| arguments.get(index));
        Some((argument.map_or("", String::as_str).into(), length))
    });
    let text = replace(&text, |rest| slice(rest, arguments));
    let text = replace(&text, |rest| {
        rest.starts_with("ARGUMENTS")
            .then(|| (all.as_str().into(), "ARGUMENTS".len()))
    });
    replace(&text, |rest| {
        rest.starts_with('@').then(|| (all.as_str().into(), 1))
    })
}

type Replacement<'a> = std::borrow::Cow<'a, str>;

/// One pass: calls `answer` with the text after each `$`; the result is the replacement and the
/// number of bytes to skip.
fn replace<'a>(
    text: &str,
    mut answer: impl FnMut(&str) -> Option<(Replacement<'a>, usize)>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('$') {
        let after = &rest[position + 1..];
        out.push_str(&rest[..position]);
        match answer(after) {
            Some((put, skip)) if out.len() + put.len() <= MAX_EXPANSION_BYTES => {
                out.push_str(&put);
                rest = &after[skip..];
            }
            _ => {
                out.push('$');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The number at the start of the text and its length; too large a number names no argument.
fn digits(text: &str) -> Option<(usize, usize)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    (length > 0).then(|| (text[..length].parse().unwrap_or(usize::MAX), length))
}

/// `{@:N}` or `{@:N:L}`, counted from 1.
fn slice<'a>(text: &str, arguments: &[String]) -> Option<(Replacement<'a>, usize)> {
    let inside = text.strip_prefix("{@:")?;
    let (from, length) = digits(inside)?;
    let mut rest = &inside[length..];
    let mut count = usize::MAX;
    if let Some(after) = rest.strip_prefix(':') {
        let (number, length) = digits(after)?;
        count = number;
        rest = &after[length..];
    }
    let rest = rest.strip_prefix('}')?;
    let start = from.saturating_sub(1).min(arguments.len());
    let end = start.saturating_add(count).min(arguments.len());
    Some((
        arguments[start..end].join(" ").into(),
        text.len() - rest.len(),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_split_like_pi_does() {
        for (line, expected) in [
            ("", vec![]),
            ("  \t ", vec![]),
            ("a b", vec!["a", "b"]),
            ("Ann \"Bob Lee\" Cy", vec!["Ann", "Bob Lee", "Cy"]),
            ("'it \"is\"' x", vec!["it \"is\"", "x"]),
            ("a\"b c\"d", vec!["ab cd"]),
            ("\"\" '' x", vec!["x"]),
            ("\"open to the end", vec!["open to the end"]),
            ("back\\ slash", vec!["back\\", "slash"]),
            ("two\nlines x", vec!["two\nlines", "x"]),
            ("ä\u{2003}ö", vec!["ä\u{2003}ö"]),
        ] {
            assert_eq!(split(line), expected, "{line:?}");
        }
    }

    #[test]
    fn placeholders_are_replaced_like_pi_does() {
        let cases = [
            ("$1-$2-$3", "a b", "a-b-"),
            ("$10 $0 $99999999999999999999", "a b c d e f g h i j", "j  "),
            ("$1st", "a", "ast"),
            ("all: $@ / $ARGUMENTS", "a 'b c'", "all: a b c / a b c"),
            ("${@:2}", "a b c", "b c"),
            ("${@:0} ${@:1:2} ${@:9} ${@:2:0}|", "a b c", "a b c a b  |"),
            ("${@:2", "a b", "${@:2"),
            ("${@} ${1} $ $$ $x", "a", "${@} ${1} $ $$ $x"),
            ("$$1", "a", "$a"),
            ("$ARGUMENTSX", "a", "aX"),
            ("$1", "'$@' b", "$@ b"),
            ("$ARGUMENTS", "$1", "$1"),
            ("$@", "'$$' '$&'", "$$ $&"),
            ("no placeholder", "a", "no placeholder"),
        ];
        for (template, line, expected) in cases {
            assert_eq!(
                substitute(template, &split(line)),
                expected,
                "{template:?} {line:?}"
            );
        }
    }

    #[test]
    fn an_expansion_that_explodes_is_bounded() {
        let many = "$@".repeat(20_000);
        let text = substitute("$1", &[many]);
        assert!(text.len() <= MAX_EXPANSION_BYTES + 40_000);
        assert!(text.ends_with("$@"), "what does not fit stays as it was");
    }

    proptest! {
        #[test]
        fn text_without_a_dollar_is_unchanged(text in "[^$]*", line in ".*") {
            prop_assert_eq!(substitute(&text, &split(&line)), text);
        }

        #[test]
        fn anything_goes(template in "(\\$|[{}@:0-9 ]|ARGUMENTS|ä|.){0,40}", line in "([\"' \t]|\\$@|.){0,40}") {
            substitute(&template, &split(&line));
        }

        #[test]
        fn plain_words_survive_splitting(words in prop::collection::vec("[a-z]{1,8}", 0..8)) {
            prop_assert_eq!(split(&words.join(" ")), words.clone());
            prop_assert_eq!(substitute("$@", &words), words.join(" "));
        }

        #[test]
        fn quoting_keeps_a_word_together(word in "[^\"]{1,20}") {
            prop_assert_eq!(split(&format!("\"{word}\"")), vec![word]);
        }
    }
}
