//! Paths as bytes.

use std::ffi::CString;
use std::fmt::Write as _;

/// Returns a text for the system; `None` if it contains NUL.
pub(crate) fn c_text(bytes: &[u8]) -> Option<CString> {
    CString::new(bytes).ok()
}

/// Reports whether `name` is `place` or below it.
pub(crate) fn is_within(place: &[u8], name: &[u8]) -> bool {
    match name.strip_prefix(place) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || place.ends_with(b"/"),
        None => false,
    }
}

/// Joins a directory and a name.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = directory.to_vec();
    if !joined.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// Returns bytes as text; those that are not text, and control characters, are escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || c == '\\' {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Folds the characters of a name that file systems without case may treat as equal, and removes those that they ignore.
/// Protected names are compared in this form, whatever the file system.
pub(crate) fn folded(bytes: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return bytes.to_ascii_lowercase();
    };
    if text.is_ascii() {
        return bytes.to_ascii_lowercase();
    }
    let folded: String = text
        .chars()
        .filter(|&c| !is_ignorable(c))
        .flat_map(|c| match c {
            // Both are lower-cased to themselves, and fold to ASCII letters.
            '\u{17f}' => 's'.to_lowercase(),
            '\u{212a}' => 'k'.to_lowercase(),
            c => c.to_lowercase(),
        })
        .collect();
    folded.into_bytes()
}

fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_the_text_is_not_a_place() {
        assert!(is_within(b"/work", b"/work"));
        assert!(is_within(b"/work", b"/work/a"));
        assert!(is_within(b"/", b"/etc"));
        assert!(!is_within(b"/work", b"/workshop"));
        assert!(!is_within(b"/work/a", b"/work"));
    }

    #[test]
    fn names_that_some_file_system_treats_as_equal_are_equal() {
        for name in [".GIT", ".g\u{200c}it", ".Git\u{feff}"] {
            assert_eq!(folded(name.as_bytes()), b".git", "{name}");
        }
        assert_eq!(folded("hoo\u{212a}\u{17f}".as_bytes()), b"hooks");
        assert_ne!(folded(b".gitx"), b".git");
    }

    #[test]
    fn bytes_that_are_not_text_are_escaped() {
        assert_eq!(shown(b"/a\xff\n\\b\xc3\xbc"), "/a\\xff\\n\\\\b\u{fc}");
    }
}
