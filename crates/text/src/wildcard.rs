//! Patterns with `*`.

/// Reports whether `text` fits `pattern`, in which `*` stands for any characters. Takes time in proportion to the length
/// of the text for each `*`.
pub fn fits_wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("ab", "abc", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits_wildcard(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_multiply_the_time() {
        let (pattern, text) = ("*a".repeat(40) + "b", "a".repeat(10_000));
        assert!(!fits_wildcard(&pattern, &text));
    }
}
