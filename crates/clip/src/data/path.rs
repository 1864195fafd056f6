//! Paths of clips' files, and their `pinix://` addresses.

use crate::{ClipError, alias};

/// The longest path, in bytes.
const MAX_PATH: usize = 1024;
/// The longest name in a path, in bytes; the limit of Linux file systems.
const MAX_NAME: usize = 255;
const SCHEME: &str = "pinix://";

/// Returns the address of a clip's file.
pub fn uri(alias: &str, path: &str) -> String {
    format!("{SCHEME}{alias}/{path}")
}

/// Splits an address into the alias and the path.
pub fn parse_uri(uri: &str) -> Result<(&str, &str), ClipError> {
    let rest = uri.trim().strip_prefix(SCHEME);
    let parts = rest.map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    parts
        .filter(|(name, _)| alias::is_alias(name))
        .ok_or_else(|| {
            ClipError::invalid(format!(
                "\"{uri}\" is not an address like pinix://alias/path"
            ))
        })
}

/// Returns `path` with single slashes and without `.` and `..`; empty for the root.
pub(crate) fn clean(path: &str) -> Result<String, ClipError> {
    let path = path.trim();
    if path.len() > MAX_PATH {
        return Err(ClipError::invalid(format!(
            "path is longer than {MAX_PATH} bytes"
        )));
    }
    if path.contains('\0') {
        return Err(ClipError::invalid("path contains a NUL character"));
    }
    if path.starts_with('/') {
        return Err(ClipError::invalid(format!(
            "path \"{path}\" is absolute; paths start in the clip's own directory"
        )));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if names.pop().is_none() {
                    return Err(ClipError::invalid(format!(
                        "path \"{path}\" escapes data directory"
                    )));
                }
            }
            name if name.len() > MAX_NAME => {
                return Err(ClipError::invalid(format!(
                    "a name in the path is longer than {MAX_NAME} bytes"
                )));
            }
            name => names.push(name),
        }
    }
    Ok(names.join("/"))
}

pub(crate) fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_cleaned() {
        for (path, clean_path) in [
            ("", ""),
            (".", ""),
            ("a", "a"),
            (" a//./b/ ", "a/b"),
            ("a/../b", "b"),
            ("a/b/../..", ""),
            ("..a/b..", "..a/b.."),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(clean(path).unwrap(), clean_path, "{path}");
        }
        for path in ["/a", "..", "../a", "a/../../b", "a\0", "./..", "//"] {
            assert!(clean(path).is_err(), "{path:?}");
        }
        assert!(clean(&"a".repeat(256)).is_err());
        assert!(clean(&"a/".repeat(600)).is_err());
    }

    #[test]
    fn addresses_are_read_back() {
        assert_eq!(
            parse_uri("pinix://todo/a/b c.txt").unwrap(),
            ("todo", "a/b c.txt")
        );
        assert_eq!(parse_uri("pinix://todo").unwrap(), ("todo", ""));
        for wrong in [
            "http://todo/a",
            "pinix:///a",
            "pinix://To Do/a",
            "todo/a",
            "pinix://../a",
        ] {
            assert!(parse_uri(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_clean_path_never_leads_up(path in "[a./]{0,20}") {
            if let Ok(cleaned) = clean(&path) {
                prop_assert!(!cleaned.split('/').any(|name| name == ".." || name == "."));
                prop_assert!(!cleaned.starts_with('/') && !cleaned.ends_with('/'));
                prop_assert_eq!(clean(&cleaned).unwrap(), cleaned);
            }
        }
    }
}
