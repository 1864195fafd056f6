//! Lists paths and inserts them at the cursor.

use std::path::Path;

use super::listing;
use super::matching::Marker;
use super::popup::Entry;
use super::token::Token;
use crate::editor::Editor;

/// The words that Tab completes when no list is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TabCompletes {
    /// Any word that is the start of a name.
    Words,
    /// Only words that look like a path, for a chat in which Tab has another effect.
    Paths,
}

/// The result of completing a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathCompletion {
    Nothing,
    Whole,
    /// As far as it is unambiguous; the start of the word.
    Partly(usize),
}

/// Completes the path before the cursor like a shell.
pub(super) fn complete(
    editor: &mut Editor,
    root: &Path,
    completes: TabCompletes,
) -> PathCompletion {
    let Some(token) =
        Token::word(editor.before_cursor()).filter(|token| is_meant(token, completes))
    else {
        return PathCompletion::Nothing;
    };
    let paths = starting(&token.query, root);
    match paths.as_slice() {
        [] => PathCompletion::Nothing,
        [path] => {
            write(editor, &token, path);
            PathCompletion::Whole
        }
        [first, rest @ ..] => {
            let common = rest.iter().fold(first.len(), |length, path| {
                common_length(&first[..length], path)
            });
            if common > token.query.len() {
                write_start(editor, &token, &first[..common]);
            }
            let before = editor.before_cursor();
            PathCompletion::Partly(before.len() - Token::word(before).map_or(0, |word| word.length))
        }
    }
}

fn is_meant(token: &Token, completes: TabCompletes) -> bool {
    let looks_like_path = token.query.contains('/') || token.query.starts_with(['~', '.']);
    !token.query.starts_with('@') && (looks_like_path || completes == TabCompletes::Words)
}

/// The paths that start as written.
pub(super) fn starting(query: &str, root: &Path) -> Vec<String> {
    let (directory, name) = listing::split(query);
    let names = listing::list_directory(&directory, name, root).into_iter();
    names
        .filter(|found| found.starts_with(name))
        .map(|found| directory.clone() + &found)
        .collect()
}

/// Paths as entries, with the matching characters marked.
pub(super) fn entries(paths: Vec<String>, query: &str) -> Vec<Entry> {
    let mut marker = Marker::new(query);
    let entry = |name: String| Entry {
        marks: marker.marks(&name),
        name,
        hint: String::new(),
        about: String::new(),
    };
    paths.into_iter().map(entry).collect()
}

/// Replaces the token by a path; a file is followed by a space.
pub(super) fn write(editor: &mut Editor, token: &Token, path: &str) {
    if path.ends_with('/') {
        write_start(editor, token, path);
        return;
    }
    let behind = closing_quote_behind(editor, token);
    let has_space = editor.after_cursor()[behind..].starts_with(char::is_whitespace);
    let space = if has_space { "" } else { " " };
    editor.replace_around_cursor(
        token.length,
        behind,
        &format!("{}{space}", token.written(path)),
    );
}

/// Inserts the start of a path; within quotes the cursor stays inside them.
fn write_start(editor: &mut Editor, token: &Token, path: &str) {
    let behind = closing_quote_behind(editor, token);
    let text = token.written(path);
    editor.replace_around_cursor(token.length, behind, &text);
    editor.step_back(usize::from(text.ends_with('"')));
}

fn closing_quote_behind(editor: &Editor, token: &Token) -> usize {
    usize::from(token.is_quoted && editor.after_cursor().starts_with('"'))
}

/// Bytes that two texts have in common at their start, whole characters only.
fn common_length(first: &str, second: &str) -> usize {
    let same = first
        .chars()
        .zip(second.chars())
        .take_while(|(one, other)| one == other);
    same.map(|(one, _)| one.len_utf8()).sum()
}
