//! Sprig's functions on words: cases, abbreviations, wrapping, random text.

use super::{Arguments, Function, Outcome, Scope, check_size, exactly, text_value};

pub(super) const TABLE: &[Function] = &[
    exactly("title", 1, |_, args| {
        text_value(each_first(args.text(0)?, upper_first, |c| {
            c == '_' || c.is_alphanumeric()
        }))
    }),
    exactly("untitle", 1, |_, args| {
        text_value(each_first(args.text(0)?, lower_first, |c| {
            !c.is_whitespace()
        }))
    }),
    exactly("initials", 1, |_, args| {
        text_value(
            args.text(0)?
                .split_whitespace()
                .filter_map(|word| word.chars().next())
                .collect::<String>(),
        )
    }),
    exactly("swapcase", 1, |_, args| {
        text_value(swap_case(args.text(0)?))
    }),
    exactly("snakecase", 1, |_, args| {
        text_value(separated(args.text(0)?, '_'))
    }),
    exactly("kebabcase", 1, |_, args| {
        text_value(separated(args.text(0)?, '-'))
    }),
    exactly("camelcase", 1, |_, args| text_value(camel(args.text(0)?))),
    exactly("abbrev", 2, |_, args| {
        text_value(abbreviated(args.int(0)?, args.text(1)?))
    }),
    exactly("abbrevboth", 3, abbreviate_both),
    exactly("wrap", 2, |scope, args| {
        wrapped(scope, args.count(0)?, "\n", args.text(1)?).and_then(text_value)
    }),
    exactly("wrapWith", 3, |scope, args| {
        wrapped(scope, args.count(0)?, args.text(1)?, args.text(2)?).and_then(text_value)
    }),
    exactly("randAlpha", 1, |scope, args| random(scope, args, LETTERS)),
    exactly("randAlphaNum", 1, |scope, args| {
        random(scope, args, LETTERS_AND_DIGITS)
    }),
    exactly("randNumeric", 1, |scope, args| {
        random(scope, args, "0123456789")
    }),
    exactly("randAscii", 1, |scope, args| {
        let all: String = (b' '..=b'~').map(char::from).collect();
        random(scope, args, &all)
    }),
    exactly("uuidv4", 0, |scope, _| {
        let bits = (u128::from(scope.random.bits()) << 64) | u128::from(scope.random.bits());
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let digits = format!("{bits:032x}");
        text_value(format!(
            "{}-{}-{}-{}-{}",
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..]
        ))
    }),
];

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(super) const LETTERS_AND_DIGITS: &str =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

fn random(scope: &mut Scope<'_>, args: &Arguments<'_>, from: &str) -> Outcome {
    let count = args.count(0)?;
    text_value(random_text(scope, count, from)?)
}

pub(super) fn random_text(
    scope: &mut Scope<'_>,
    count: usize,
    from: &str,
) -> Result<String, String> {
    check_size(scope, count)?;
    let letters = from.as_bytes();
    Ok((0..count)
        .map(|_| char::from(letters[scope.random.below(letters.len() as u64) as usize]))
        .collect())
}

fn upper_first(character: char) -> String {
    character.to_uppercase().collect()
}

fn lower_first(character: char) -> String {
    character.to_lowercase().collect()
}

/// Changes the first letter of every word. `inside` returns true for characters that do not end a
/// word.
fn each_first(text: &str, change: fn(char) -> String, inside: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for character in text.chars() {
        if within {
            out.push(character);
        } else {
            out.push_str(&change(character));
        }
        within = inside(character);
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_uppercase() {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
    }
    out
}

/// `FirstName` and `first name` become `first_name`.
fn separated(text: &str, separator: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let characters: Vec<char> = text.chars().collect();
    for (index, character) in characters.iter().enumerate() {
        if matches!(character, '_' | '-' | ' ' | '.') {
            if !out.is_empty() && !out.ends_with(separator) {
                out.push(separator);
            }
            continue;
        }
        let before = index.checked_sub(1).map(|at| characters[at]);
        let after_lower = characters.get(index + 1).is_some_and(|c| c.is_lowercase());
        let begins = character.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase() || b.is_numeric() || (b.is_uppercase() && after_lower)
            });
        if begins && !out.ends_with(separator) {
            out.push(separator);
        }
        out.extend(character.to_lowercase());
    }
    out
}

fn camel(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for character in text.chars() {
        if matches!(character, '_' | '-' | ' ') {
            begins = true;
        } else if begins {
            out.extend(character.to_uppercase());
            begins = false;
        } else {
            out.push(character);
        }
    }
    out
}

fn abbreviated(width: i64, text: &str) -> String {
    let length = text.chars().count();
    match usize::try_from(width) {
        Ok(width) if width >= 4 && length > width => {
            let kept: String = text.chars().take(width - 3).collect();
            format!("{kept}...")
        }
        _ => text.to_owned(),
    }
}

fn abbreviate_both(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (left, right, text) = (args.count(0)?, args.count(1)?, args.text(2)?);
    let length = text.chars().count();
    if right < 4 || (left > 0 && right < 7) || length <= right {
        return text_value(text);
    }
    if left <= 4 {
        return text_value(abbreviated(right as i64, text));
    }
    if left + right - 3 >= length {
        let kept: String = text.chars().skip(length - (right - 3)).collect();
        return text_value(format!("...{kept}"));
    }
    let rest: String = text.chars().skip(left).collect();
    text_value(format!("...{}", abbreviated(right as i64 - 3, &rest)))
}

/// Breaks lines at blanks so that they are at most `width` characters long; longer words stay whole.
fn wrapped(scope: &Scope<'_>, width: usize, separator: &str, text: &str) -> Result<String, String> {
    check_size(scope, text.len().saturating_mul(1 + separator.len()))?;
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 {
            if column + 1 + length > width.max(1) {
                out.push_str(separator);
                column = 0;
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column = match word.rsplit_once('\n') {
            Some((_, tail)) => tail.chars().count(),
            None => column + length,
        };
    }
    Ok(out)
}
