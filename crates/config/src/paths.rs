//! Path arithmetic that does not touch the disk.

use std::path::{Component, Path, PathBuf};

use serde::Serializer;

/// Replaces a leading `~` or `~/` with the home directory.
pub(crate) fn expand_home(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) => match rest.strip_prefix('/') {
            Some(inside) => home.join(inside.trim_start_matches('/')),
            None => PathBuf::from(text),
        },
        None => PathBuf::from(text),
    }
}

/// Removes `.` and `..` without reading the disk; never rises above the root.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// The absolute, normalised path of `text`, relative to `base`.
pub(crate) fn resolve(text: &str, base: &Path, home: &Path) -> PathBuf {
    normalize(&base.join(expand_home(text, home)))
}

/// Serialises a path as text, with U+FFFD for invalid bytes: one such name must not fail a listing.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Serialises an optional path like [`lossy`].
#[allow(clippy::ref_option, reason = "the signature serde calls")]
pub(crate) fn lossy_if_some<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy(path, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_resolve_against_home_and_base() {
        for (text, expected) in [
            ("~", "/home/u"),
            ("~/x", "/home/u/x"),
            ("~//x", "/home/u/x"),
            ("~x", "/proj/~x"),
            ("a/../b", "/proj/b"),
            ("../../../../etc", "/etc"),
            ("/abs/./f", "/abs/f"),
            (".", "/proj"),
        ] {
            let path = resolve(text, Path::new("/proj"), Path::new("/home/u"));
            assert_eq!(path, Path::new(expected), "{text}");
        }
    }
}
