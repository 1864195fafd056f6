//! One JSON object in one file: reads it, or changes members of it without losing changes of other
//! programs.
//!
//! A change takes a lock that pi respects too (a directory next to the file), reads the file again,
//! and replaces it in one rename. A file that does not parse is never written.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use pinion_files::{Durability, LockDirectory, Replace};
use serde_json::{Map, Value};

use crate::{ConfigError, Notice, text_file};

/// The longest wait for another process, as in pi.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
/// A lock this old was left behind by a process that died.
const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);

/// Takes the lock that pi uses for `path`.
pub(crate) fn lock(path: &Path) -> Result<LockDirectory, ConfigError> {
    LockDirectory::take(path, LOCK_TIMEOUT, LOCK_STALE_AFTER).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => ConfigError::Locked {
            path: path.to_owned(),
        },
        _ => ConfigError::io("lock", path)(error),
    })
}

/// A JSON object, or the error of the file.
enum Parsed {
    Object(Map<String, Value>),
    Broken {
        line: usize,
        column: usize,
        message: String,
    },
}

fn parse(text: &str) -> Parsed {
    // An empty file holds nothing that could be lost.
    if text.trim().is_empty() {
        return Parsed::Object(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Parsed::Object(object),
        Ok(_) => Parsed::Broken {
            line: 1,
            column: 1,
            message: "a JSON object is expected here".into(),
        },
        Err(error) => Parsed::Broken {
            line: error.line(),
            column: error.column(),
            message: pinion_jsonl::explain(&error),
        },
    }
}

/// Reads the object in `path`. An absent file is an empty object; a broken one is empty and
/// reported.
pub fn read(path: &Path, notices: &mut Vec<Notice>) -> Map<String, Value> {
    let text = match text_file::read_text_if_present(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Map::new(),
        Err(error) => {
            let message = format!("could not be read ({error}); it is ignored");
            notices.push(Notice::about(path, "unreadable_file", message));
            return Map::new();
        }
    };
    match parse(&text) {
        Parsed::Object(object) => object,
        Parsed::Broken {
            line,
            column,
            message,
        } => {
            let message = format!("{message}; the file is ignored and not changed");
            notices.push(Notice::about(path, "broken_file", message).at(line, column));
            Map::new()
        }
    }
}

/// Calls `change` with the object in `path` and writes it back if it became different.
pub fn update(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), ConfigError> {
    // A settings file that is a link into a dotfiles directory stays a link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = path.parent().unwrap_or(Path::new("/"));
    pinion_files::create_private_directory(parent).map_err(ConfigError::io("create", parent))?;

    let _lock = lock(path)?;
    let text = text_file::read_text_if_present(path).map_err(ConfigError::io("read", path))?;
    let mut object = match parse(text.as_deref().unwrap_or_default()) {
        Parsed::Object(object) => object,
        Parsed::Broken {
            line,
            column,
            message,
        } => {
            return Err(ConfigError::Broken {
                path: path.clone(),
                line,
                column,
                message,
            });
        }
    };
    let before = object.clone();
    change(&mut object);
    if object == before {
        return Ok(());
    }
    let mut out = serde_json::to_string_pretty(&object)
        .map_err(|error| ConfigError::io("write", path)(error.into()))?;
    if text.is_some_and(|text| text.ends_with('\n')) {
        out.push('\n');
    }
    let options = Replace {
        mode: 0o600,
        durability: Durability::Power,
        ..Replace::USER
    };
    pinion_files::replace(path, out.as_bytes(), options).map_err(ConfigError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;

    use serde_json::json;

    use super::*;

    fn set(path: &Path, key: &str, value: Value) -> Result<(), ConfigError> {
        update(path, |object| {
            object.insert(key.to_owned(), value);
        })
    }

    #[test]
    fn a_broken_file_is_reported_with_its_place_and_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.json");
        fs::write(&file, "{\n  \"a\": 1,\n  oops\n}").unwrap();
        let mut notices = Vec::new();
        assert!(read(&file, &mut notices).is_empty());
        assert_eq!(notices[0].code, "broken_file");
        assert_eq!(notices[0].position, Some((3, 3)));
        assert!(
            notices[0]
                .message
                .starts_with("the name of a member must be in quotes"),
            "{notices:?}"
        );
        let error = set(&file, "a", json!(2)).unwrap_err();
        assert_eq!(error.code(), "broken_file");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "{\n  \"a\": 1,\n  oops\n}"
        );
        assert!(!dir.path().join("s.json.lock").exists());
    }

    #[test]
    fn a_file_that_holds_no_object_is_broken_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.json");
        fs::write(&file, "[1]").unwrap();
        let mut notices = Vec::new();
        assert!(read(&file, &mut notices).is_empty());
        assert_eq!(notices.len(), 1);
        assert_eq!(set(&file, "a", json!(2)).unwrap_err().code(), "broken_file");
    }

    #[test]
    fn mode_link_and_final_newline_survive_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.json");
        let link = dir.path().join("link.json");
        fs::write(&real, "{\"z\": 1, \"a\": 2}\n").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        set(&link, "m", json!(3)).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let text = fs::read_to_string(&real).unwrap();
        assert_eq!(text, "{\n  \"z\": 1,\n  \"a\": 2,\n  \"m\": 3\n}\n");
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 2, "no temporary file or lock is left: {left:?}");
    }

    #[test]
    fn a_held_lock_is_respected_and_a_stale_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.json");
        let lock = dir.path().join("s.json.lock");
        fs::create_dir(&lock).unwrap();
        assert_eq!(set(&file, "a", json!(1)).unwrap_err().code(), "locked");
        assert!(lock.exists(), "the lock of somebody else stays");
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&lock).unwrap().set_modified(old).unwrap();
        set(&file, "a", json!(1)).unwrap();
        assert!(!lock.exists());
    }

    #[test]
    fn what_is_not_a_regular_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.json");
        symlink("/dev/null", &file).unwrap();
        let mut notices = Vec::new();
        assert!(read(&file, &mut notices).is_empty());
        assert_eq!(notices[0].code, "unreadable_file");
        assert!(set(&file, "a", json!(1)).is_err());
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep").join("s.json");
        thread::scope(|scope| {
            for writer in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    // The lock times out after a fifth of a second, which a loaded machine may
                    // need.
                    while let Err(error) = set(file, &format!("k{writer}"), json!(writer)) {
                        assert_eq!(error.code(), "locked");
                    }
                });
            }
        });
        assert_eq!(read(&file, &mut Vec::new()).len(), 4);
    }
}
