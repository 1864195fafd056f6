//! HTML entities: characters written by name or number.
//!
//! The names are those of the HTML standard, in one sorted text. As a text they take a twentieth of
//! the space of a table of pointers, and are searched about as fast.

use std::borrow::Cow;

/// One name per line: name, space, code points; a star if the semicolon may be missing.
const NAMES: &str = include_str!("entities.txt");

/// The longest name, and the longest that may lack its semicolon.
const MAX_NAME: usize = 31;
const MAX_BARE_NAME: usize = 6;

/// The position of text in a page, which decides whether an entity may lack its semicolon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityContext {
    /// Between tags.
    Text,
    /// In an attribute, where `&copy=1` is part of a URL and not a character.
    Attribute,
}

/// Decodes entities; unknown ones stay as they are.
pub(super) fn decode(text: &str, context: EntityContext) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut decoded = String::with_capacity(text.len());
    decoded.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('&') {
        let used = match after.strip_prefix('#') {
            Some(digits) => numeric(digits, &mut decoded).map(|used| used + 1),
            None => named(after, context, &mut decoded),
        };
        if used.is_none() {
            decoded.push('&');
        }
        let after = &after[used.unwrap_or(0)..];
        let next = memchr::memchr(b'&', after.as_bytes()).unwrap_or(after.len());
        decoded.push_str(&after[..next]);
        rest = &after[next..];
    }
    Cow::Owned(decoded)
}

/// Decodes the text after `&#`; returns the number of bytes used.
fn numeric(text: &str, decoded: &mut String) -> Option<usize> {
    let (digits, radix) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let length = digits
        .bytes()
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    if length == 0 {
        return None;
    }
    // A number that is too long is not a character.
    let code = u32::from_str_radix(&digits[..length], radix).unwrap_or(u32::MAX);
    let character = match u8::try_from(code) {
        Ok(0) => None,
        Ok(byte @ 0x80..=0x9f) => encoding_rs::WINDOWS_1252
            .decode_without_bom_handling(&[byte])
            .0
            .chars()
            .next(),
        _ => char::from_u32(code),
    };
    decoded.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    let semicolon = usize::from(digits[length..].starts_with(';'));
    Some(text.len() - digits.len() + length + semicolon)
}

/// Decodes the text after `&`; returns the number of bytes used.
fn named(text: &str, context: EntityContext, decoded: &mut String) -> Option<usize> {
    let bytes = text.as_bytes();
    let length = bytes
        .iter()
        .take(MAX_NAME + 1)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    if bytes.get(length) == Some(&b';')
        && let Some(codes) = find(&text[..length])
    {
        return push(codes.trim_end_matches('*'), decoded).then_some(length + 1);
    }
    for end in (2..=length.min(MAX_BARE_NAME)).rev() {
        if let Some(codes) = find(&text[..end]).and_then(|codes| codes.strip_suffix('*')) {
            let next = bytes.get(end).copied().unwrap_or(b' ');
            if context == EntityContext::Attribute && (next == b'=' || next.is_ascii_alphanumeric())
            {
                return None;
            }
            return push(codes, decoded).then_some(end);
        }
    }
    None
}

fn push(codes: &str, decoded: &mut String) -> bool {
    let before = decoded.len();
    let codes = codes
        .split('+')
        .filter_map(|code| u32::from_str_radix(code, 16).ok());
    decoded.extend(codes.filter_map(char::from_u32));
    decoded.len() > before
}

/// Returns the entry of a name in the list.
fn find(name: &str) -> Option<&'static str> {
    let (mut low, mut high) = (0, NAMES.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = NAMES[..middle].rfind('\n').map_or(0, |at| at + 1).max(low);
        let line = NAMES[start..].lines().next()?;
        let (known, codes) = line.split_once(' ')?;
        match known.cmp(name) {
            std::cmp::Ordering::Equal => return Some(codes),
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_list_is_found() {
        let mut names = 0;
        for line in NAMES.lines() {
            let (name, codes) = line.split_once(' ').unwrap();
            assert_eq!(find(name), Some(codes));
            assert!(name.len() <= MAX_NAME);
            assert!(!codes.ends_with('*') || name.len() <= MAX_BARE_NAME);
            names += 1;
        }
        assert_eq!(names, 2125);
        assert_eq!(find("nosuch"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn names_numbers_and_what_is_neither() {
        let cases = [
            ("a &lt; b &amp;&amp; c", "a < b && c"),
            ("&copy 2024 &notit; &notin;", "© 2024 ¬it; ∉"),
            ("&#228;&#x20ac;&#X41&#66", "ä€AB"),
            (
                "&#128;&#0;&#xD800;&#99999999999;",
                "€\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("& &; &# &#x; &nosuch; &", "& &; &# &#x; &nosuch; &"),
            ("&NotEqualTilde;&alpha;&alpha", "≂̸α&alpha"),
            ("&ä", "&ä"),
        ];
        for (written, read) in cases {
            assert_eq!(decode(written, EntityContext::Text), read, "{written}");
        }
        assert_eq!(
            decode("/?a=1&copy=2&amp;b&lt", EntityContext::Attribute),
            "/?a=1&copy=2&b<"
        );
    }
}
