//! Masks the values of HTTP headers that carry a key, in any text.

use super::{MASKED, MIN_KEY_LENGTH};

/// Headers that carry keys, in lower case.
const HEADERS: [&str; 4] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
];
/// Authentication schemes that may precede the key in such a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Masks the values of headers that carry keys; returns `None` if there is no such header.
pub fn mask_headers(text: &str) -> Option<String> {
    let small = text.to_ascii_lowercase();
    let mut masked = String::new();
    // The end of the part that is already copied.
    let mut copied = 0;
    for (at, name) in headers(&small) {
        if at < copied {
            continue;
        }
        if let Some((start, end)) = value_after(&small, at + name.len()) {
            masked.push_str(&text[copied..start]);
            masked.push_str(MASKED);
            copied = end;
        }
    }
    if copied == 0 {
        return None;
    }
    masked.push_str(&text[copied..]);
    Some(masked)
}

/// Returns the positions of such headers, in order.
fn headers(small: &str) -> Vec<(usize, &'static str)> {
    let mut found: Vec<_> = HEADERS
        .iter()
        .flat_map(|name| small.match_indices(name).map(|(at, _)| (at, *name)))
        .collect();
    found.sort_unstable();
    found
}

/// Returns the range of the key in the header whose name ends at `at`: after a colon or an equals sign, quotes and a
/// scheme.
fn value_after(small: &str, at: usize) -> Option<(usize, usize)> {
    let is_filling = |c: char| matches!(c, '"' | '\'' | '\\' | ' ' | '\t');
    let skip = |at: usize| small.len() - small[at..].trim_start_matches(is_filling).len();
    let at = skip(at);
    if !small[at..].starts_with([':', '=']) {
        return None;
    }
    let mut start = skip(at + 1);
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ',' | ';' | '}' | ')' | ']');
    let end_of = |at: usize| at + small[at..].find(is_end).unwrap_or(small.len() - at);
    let mut end = end_of(start);
    let has_scheme = SCHEMES.contains(&&small[start..end]);
    if has_scheme {
        start = skip(end);
        end = end_of(start);
    }
    // A short word after the colon is prose about the header, not a key.
    let is_key = if has_scheme {
        end > start
    } else {
        end - start >= MIN_KEY_LENGTH
    };
    is_key.then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_in_headers_are_masked() {
        for (text, masked) in [
            (
                "401: Authorization: Bearer sk-1 refused",
                Some("401: Authorization: Bearer *** refused"),
            ),
            (
                r#"{"authorization":"Basic YWJj","x":1}"#,
                Some(r#"{"authorization":"Basic ***","x":1}"#),
            ),
            (
                r#"\"Authorization\": \"Bearer abc\""#,
                Some(r#"\"Authorization\": \"Bearer ***\""#),
            ),
            (
                "x-api-key=sk-ant-12345678, next",
                Some("x-api-key=***, next"),
            ),
            (
                "Proxy-Authorization: Bearer a\nAuthorization: Bearer b",
                Some("Proxy-Authorization: Bearer ***\nAuthorization: Bearer ***"),
            ),
            ("invalid x-api-key", None),
            ("authorization: see the docs", None),
            ("Authorization:", None),
            ("Authorization: Bearer ", None),
            ("nothing", None),
        ] {
            assert_eq!(mask_headers(text).as_deref(), masked, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in "(authorization|x-api-key|[:=\" \\\\é,]|bearer|[a-z]{1,9}){0,12}") {
            let masked = mask_headers(&text);
            prop_assert!(masked.is_none_or(|masked| masked.contains(MASKED)));
        }
    }
}
