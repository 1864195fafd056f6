//! Finds the files that a text refers to with `@`.

use std::path::{Path, PathBuf};

use super::unit::is_marker;

/// References that are looked up at most; a pasted log may have thousands of words that look like
/// one.
const MAX_LOOKUPS: usize = 200;

/// Characters that often follow a path in a sentence without being part of it.
const PUNCTUATION: [char; 14] = [
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '\'', '"', '`', '*',
];

/// Returns the files a text refers to as `@path` or `@"path with spaces"`, each once, in order.
/// Omits those that do not exist or are not files.
pub(crate) fn references(text: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked_up = 0;
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find('@') {
        before = rest[..at].chars().next_back().or(before);
        rest = &rest[at + 1..];
        if !before.is_none_or(starts_reference) {
            before = Some('@');
            continue;
        }
        before = Some('@');
        if looked_up == MAX_LOOKUPS {
            break;
        }
        looked_up += 1;
        let Some((path, taken)) = existing(rest, cwd) else {
            continue;
        };
        if !found.contains(&path) {
            found.push(path);
        }
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    found
}

/// Reports whether a reference may follow this character: `name@host` does not contain one.
pub(crate) fn starts_reference(before: char) -> bool {
    !(before.is_alphanumeric() || matches!(before, '@' | '_' | '-' | '.' | '/' | '+' | '%' | '\\'))
}

/// Finds the file named at the start of the text after an `@`, and the length of its name.
fn existing(text: &str, cwd: &Path) -> Option<(PathBuf, usize)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, taken) = unquoted(quoted)?;
        return file(&name, cwd).map(|path| (path, taken + 1));
    }
    let is_end = |character: char| character.is_whitespace() || is_marker(character);
    let word = text.split(is_end).next()?;
    let mut name = word;
    loop {
        if let Some(path) = file(name, cwd) {
            return Some((path, name.len()));
        }
        name = name.strip_suffix(PUNCTUATION)?;
    }
}

/// Returns the text before the closing quote, and its length including the quote.
fn unquoted(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((name, at + 1)),
            '\n' => return None,
            '\\' => match characters.next()?.1 {
                escaped @ ('"' | '\\') => name.push(escaped),
                other => {
                    name.push('\\');
                    name.push(other);
                }
            },
            _ => name.push(character),
        }
    }
    None
}

fn file(name: &str, cwd: &Path) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    let path = resolve(name, cwd);
    path.is_file().then_some(path)
}

/// Resolves a path as people write it, with `~` for the home directory.
pub(crate) fn resolve(name: &str, cwd: &Path) -> PathBuf {
    match (name.strip_prefix('~'), std::env::home_dir()) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => cwd.join(name),
    }
}

#[cfg(test)]
mod tests {
    use pinion_message::image_type;

    use super::*;

    #[test]
    fn files_are_found_where_people_name_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let cwd = directory.path();
        std::fs::create_dir(cwd.join("src")).expect("a directory");
        for name in ["a.png", "my file.txt", "src/main.rs", "odd\"name"] {
            std::fs::write(cwd.join(name), "x").expect("a file");
        }
        let cases: [(&str, &[&str]); 14] = [
            ("@a.png", &["a.png"]),
            ("look at @a.png, please", &["a.png"]),
            ("(@src/main.rs)", &["src/main.rs"]),
            ("@\"my file.txt\" and @a.png.", &["my file.txt", "a.png"]),
            ("@\"odd\\\"name\"", &["odd\"name"]),
            ("@a.png @a.png", &["a.png"]),
            ("@./a.png", &["./a.png"]),
            ("mail me@a.png", &[]),
            ("@src is a directory", &[]),
            ("@missing @", &[]),
            ("@\"a.png", &[]),
            ("@@a.png", &[]),
            ("x\n@a.png\ny", &["a.png"]),
            ("„@a.png“ → @src/main.rs!?", &["src/main.rs"]),
        ];
        for (text, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(|name| cwd.join(name)).collect();
            assert_eq!(references(text, cwd), expected, "{text}");
        }
        let absolute = cwd.join("a.png");
        assert_eq!(
            references(&format!("@{}", absolute.display()), Path::new("/")),
            [absolute]
        );
    }

    #[test]
    fn lookups_of_references_are_limited() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("last"), "x").expect("a file");
        let text = " @nothing".repeat(MAX_LOOKUPS) + " @last";
        assert_eq!(references(&text, directory.path()), Vec::<PathBuf>::new());
    }

    #[test]
    fn images_are_recognised_by_their_first_bytes() {
        assert_eq!(image_type(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(image_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"RIFF....WAVE"), None);
        assert_eq!(image_type(b"text"), None);
    }
}
