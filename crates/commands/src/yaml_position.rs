//! Finds the position in a YAML file of a byte of one of its strings.
//!
//! A YAML string differs from its source: blocks lose their indentation, folded lines are joined, quotes have escapes.
//! But the order of characters that are not blank stays the same. So the n-th such character of the string is the n-th
//! such character of the file after the beginning of the string.

/// The beginning of a string in its file: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StringStart {
    pub line: usize,
    pub column: usize,
}

/// The YAML style of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarStyle {
    Plain,
    Single,
    Double,
}

/// Returns the line and column in `file` of the byte at `offset` of `text`, which begins at `start`.
pub(crate) fn locate(file: &str, start: StringStart, text: &str, offset: usize) -> (usize, usize) {
    let mut from = byte_at(file, start);
    let mut style = ScalarStyle::Plain;
    match file[from..].chars().next() {
        Some('|' | '>') => {
            from += file[from..]
                .find('\n')
                .map_or(file.len() - from, |at| at + 1);
        }
        Some('"') => {
            style = ScalarStyle::Double;
            from += 1;
        }
        Some('\'') => {
            style = ScalarStyle::Single;
            from += 1;
        }
        _ => {}
    }
    let before = text.get(..offset).unwrap_or(text);
    let wanted = before.chars().filter(|c| !c.is_whitespace()).count();
    let at = nth_visible(&file[from..], style, wanted).map_or(from, |found| from + found);
    position(file, at)
}

/// Returns the byte offset of the n-th character that is not blank.
fn nth_visible(source: &str, style: ScalarStyle, wanted: usize) -> Option<usize> {
    let mut seen = 0;
    let mut characters = source.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let mut visible = !character.is_whitespace();
        match (style, character) {
            (ScalarStyle::Double, '\\') => {
                let escaped = characters.next().map(|(_, c)| c);
                let digits = match escaped {
                    Some('x') => 2,
                    Some('u') => 4,
                    Some('U') => 8,
                    _ => 0,
                };
                for _ in 0..digits {
                    characters.next();
                }
                visible = !matches!(
                    escaped,
                    Some('n' | 't' | 'r' | ' ' | '\n' | '_' | 'L' | 'P' | 'N' | 'v' | 'f')
                );
            }
            (ScalarStyle::Single, '\'') if characters.peek().is_some_and(|(_, c)| *c == '\'') => {
                characters.next();
            }
            _ => {}
        }
        if visible {
            if seen == wanted {
                return Some(at);
            }
            seen += 1;
        }
    }
    None
}

fn byte_at(file: &str, start: StringStart) -> usize {
    let mut line_start = 0;
    for _ in 1..start.line {
        match file[line_start..].find('\n') {
            Some(at) => line_start += at + 1,
            None => return file.len(),
        }
    }
    file[line_start..]
        .char_indices()
        .nth(start.column.saturating_sub(1))
        .map_or(file.len(), |(at, _)| line_start + at)
}

/// Returns the line and column of a byte, both from 1.
pub(crate) fn position(file: &str, at: usize) -> (usize, usize) {
    let before = file.get(..at).unwrap_or(file);
    let line_start = before.rfind('\n').map_or(0, |found| found + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
