//! Where in a YAML file a byte of one of its texts is.
//!
//! A text of YAML is not what stands in the file: blocks lose their indentation, folded lines are joined,
//! quotes have escapes. But what is not blank keeps its order, so the n-th such character of the text is the
//! n-th such character of the file from the text's beginning.

/// Where a text begins in its file: line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub line: usize,
    pub column: usize,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
}

/// Line and column in `file` of the byte at `offset` of `text`, which begins at `start`.
pub(crate) fn locate(file: &str, start: Start, text: &str, offset: usize) -> (usize, usize) {
    let mut from = byte_at(file, start);
    let mut style = Style::Plain;
    match file[from..].chars().next() {
        Some('|' | '>') => {
            from += file[from..]
                .find('\n')
                .map_or(file.len() - from, |at| at + 1);
        }
        Some('"') => {
            style = Style::Double;
            from += 1;
        }
        Some('\'') => {
            style = Style::Single;
            from += 1;
        }
        _ => {}
    }
    let before = text.get(..offset).unwrap_or(text);
    let wanted = before.chars().filter(|c| !c.is_whitespace()).count();
    let at = nth_visible(&file[from..], style, wanted).map_or(from, |found| from + found);
    position(file, at)
}

/// The byte of the n-th character that is not blank.
fn nth_visible(source: &str, style: Style, wanted: usize) -> Option<usize> {
    let mut seen = 0;
    let mut characters = source.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let mut visible = !character.is_whitespace();
        match (style, character) {
            (Style::Double, '\\') => {
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
            (Style::Single, '\'') if characters.peek().is_some_and(|(_, c)| *c == '\'') => {
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

fn byte_at(file: &str, start: Start) -> usize {
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

/// Line and column of a byte, both from 1.
pub(crate) fn position(file: &str, at: usize) -> (usize, usize) {
    let before = file.get(..at).unwrap_or(file);
    let line_start = before.rfind('\n').map_or(0, |found| found + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
