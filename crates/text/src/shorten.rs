//! Beginnings of texts that are too long to show.

/// Returns the text, or its first `most` characters without spaces at their end and `…`.
pub fn shorten(text: &str, most: usize) -> String {
    let start = start(text, most);
    if start.len() == text.len() {
        text.to_owned()
    } else {
        format!("{}…", start.trim_end())
    }
}

/// Returns at most the first `most` characters.
pub fn start(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Returns the text, or at most its first `most` bytes, in whole characters, and `…`.
pub fn shorten_bytes(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_texts_are_cut() {
        for (text, most, characters, bytes) in [
            ("short", 5, "short", "short"),
            ("longer", 5, "longe…", "longe…"),
            ("two words", 4, "two…", "two …"),
            ("größe", 3, "grö…", "gr…"),
            ("größe", 5, "größe", "grö…"),
            ("x", 0, "…", "…"),
            ("", 0, "", ""),
        ] {
            assert_eq!(shorten(text, most), characters, "{text} {most}");
            assert_eq!(shorten_bytes(text.to_owned(), most), bytes, "{text} {most}");
            assert!(start(text, most).chars().count() <= most);
        }
    }
}
