//! Resolves the paths that models write.
//!
//! Paths are not judged here: absolute paths and `..` lead where they point.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// Resolves `path` as a model writes it: a leading `@` is dropped, unusual spaces become plain
/// ones, `~` is the home directory, and relative paths start at `cwd`.
pub fn resolve(path: &str, cwd: &Path) -> PathBuf {
    resolve_from_home(path, cwd, std::env::home_dir().as_deref())
}

fn resolve_from_home(path: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let path = path.strip_prefix('@').unwrap_or(path);
    let path = plain_spaces(path);
    let expanded = match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(&*path),
    };
    if expanded.is_absolute() {
        expanded
    } else {
        normalise(&cwd.join(expanded))
    }
}

/// Like [`resolve`], but if no file has that name it also tries the spellings in which macOS stores
/// screenshots and accented names.
pub fn resolve_existing(path: &str, cwd: &Path) -> PathBuf {
    let plain = resolve(path, cwd);
    if exists(&plain) {
        return plain;
    }
    let Some(text) = plain.to_str() else {
        return plain;
    };
    let decomposed: String = text.nfd().collect();
    let spellings = [
        narrow_space_before_meridiem(text),
        decomposed.clone(),
        text.replace('\'', "\u{2019}"),
        decomposed.replace('\'', "\u{2019}"),
    ];
    spellings
        .into_iter()
        .filter(|spelling| spelling != text)
        .map(PathBuf::from)
        .find(|spelling| exists(spelling))
        .unwrap_or(plain)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_odd_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

fn plain_spaces(path: &str) -> Cow<'_, str> {
    if path.contains(is_odd_space) {
        Cow::Owned(path.replace(is_odd_space, " "))
    } else {
        Cow::Borrowed(path)
    }
}

fn narrow_space_before_meridiem(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 2);
    let mut rest = path;
    while let Some(at) = rest.find(' ') {
        let after = &rest[at + 1..];
        let meridiem = after.get(..3).is_some_and(|word| {
            word.eq_ignore_ascii_case("am.") || word.eq_ignore_ascii_case("pm.")
        });
        out.push_str(&rest[..at]);
        out.push(if meridiem { '\u{202f}' } else { ' ' });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Removes `.` and `..` without reading the file system.
fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The path of `path` below `root`, as text with `/`; the base name when it is `root` itself.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_string_lossy().into_owned(),
        _ => path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_go_where_the_model_means() {
        for (written, meant) in [
            ("a.txt", "/proj/a.txt"),
            ("@a.txt", "/proj/a.txt"),
            ("@@a.txt", "/proj/@a.txt"),
            ("./a/../b", "/proj/b"),
            ("../../../x", "/x"),
            (".", "/proj"),
            ("", "/proj"),
            ("/abs/../kept", "/abs/../kept"),
            ("~", "/home/me"),
            ("~/n\u{a0}b", "/home/me/n b"),
            ("~other/x", "/proj/~other/x"),
            ("wide\u{3000}space", "/proj/wide space"),
        ] {
            let resolved =
                resolve_from_home(written, Path::new("/proj"), Some(Path::new("/home/me")));
            assert_eq!(resolved, Path::new(meant), "{written}");
        }
    }

    #[test]
    fn names_as_macos_stores_them_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "Shot at 9.41.00\u{202f}AM.png",
            "cafe\u{301}.txt",
            "it\u{2019}s.txt",
        ];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for (written, stored) in ["Shot at 9.41.00 AM.png", "café.txt", "it's.txt"]
            .iter()
            .zip(names)
        {
            assert_eq!(
                resolve_existing(written, dir.path()),
                dir.path().join(stored)
            );
        }
        assert_eq!(
            resolve_existing("none.txt", dir.path()),
            dir.path().join("none.txt")
        );
    }

    proptest! {
        #[test]
        fn a_resolved_path_is_absolute_and_resolves_to_itself(written in "[a-z./~ @é]{0,20}") {
            let cwd = Path::new("/proj/here");
            let once = resolve_from_home(&written, cwd, None);
            prop_assert!(once.is_absolute());
            let text = once.to_str().unwrap();
            prop_assert_eq!(resolve_from_home(text, cwd, None), once.clone());
        }
    }
}
