//! Rows of cells in columns, for lists.

use std::fmt::Write;

/// Lays out rows in columns with two spaces between them, one line for each row.
///
/// A column is as wide as its longest cell, in characters. Lines do not end in spaces. The cells may not contain line
/// breaks.
pub fn columns<R: AsRef<[C]>, C: AsRef<str>>(rows: &[R]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        let row = row.as_ref();
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.as_ref().chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let start = text.len();
        for (cell, &width) in row.as_ref().iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(text, "{:width$}  ", cell.as_ref());
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cells() {
        let rows = [["name", "n", "note"], ["größer", "10", ""], ["", "", ""]];
        assert_eq!(columns(&rows), "name    n   note\ngrößer  10\n\n");
        let ragged = [vec!["a"], vec!["bc", "d"]];
        assert_eq!(columns(&ragged), "a\nbc  d\n");
        assert_eq!(columns::<[&str; 2], _>(&[]), "");
    }
}
