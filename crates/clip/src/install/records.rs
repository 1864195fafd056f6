//! The records of installed clips in `config.json`. Other programs use other keys of that file; they are preserved.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::codec::DetectedDialect;
use crate::manifest::Manifest;
use crate::secret::{self, CallSecret};
use crate::{ClipError, files};

/// The record of an installed clip.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The alias.
    pub name: String,
    pub package: String,
    pub version: String,
    /// The source from which it was installed.
    pub source: String,
    /// The directory of the clip.
    pub path: String,
    /// The secret that callers must present, if there is one.
    #[serde(rename = "token_sha256", skip_serializing_if = "Option::is_none")]
    pub secret: Option<CallSecret>,
    /// The secret in clear, as other programs write it. It is read but never written.
    #[serde(skip_serializing)]
    pub(super) token: String,
    /// The owner of the installation; empty for the local user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The dialect of the clip, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc: Option<DetectedDialect>,
    /// The manifest that the clip registered when it was installed.
    pub manifest: Manifest,
    /// Keys that other programs store in the record.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Record {
    /// Reports whether callers must present a secret.
    pub fn is_token_protected(&self) -> bool {
        self.secret.is_some()
    }

    /// Checks the secret that a caller presented.
    pub fn check_secret(&self, given: Option<&str>) -> Result<(), ClipError> {
        secret::check(self.secret.as_ref(), given)
    }
}

/// Reads the records in `root`.
pub(super) fn read(root: &Path) -> Result<BTreeMap<String, Record>, ClipError> {
    let file = load(root)?;
    let clips = file.get("clips").and_then(Value::as_object);
    let mut records = BTreeMap::new();
    for (alias, value) in clips.into_iter().flatten() {
        let mut record: Record = serde_json::from_value(value.clone()).map_err(|error| {
            let path = root.join("config.json");
            let message = format!(
                "{}: the record of clip \"{alias}\" is wrong: {error}",
                path.display()
            );
            ClipError::invalid(message)
        })?;
        record.name.clone_from(alias);
        let plain = std::mem::take(&mut record.token);
        record.secret = record.secret.or_else(|| CallSecret::of(&plain));
        records.insert(alias.clone(), record);
    }
    Ok(records)
}

/// Changes the records in `root` under the lock.
pub(super) fn update(
    root: &Path,
    change: impl FnOnce(&mut BTreeMap<String, Record>),
) -> Result<(), ClipError> {
    let path = root.join("config.json");
    let io_error = |error: io::Error| ClipError::io(path.display(), &error);
    let _lock = lock(root)?;
    let mut records = read(root)?;
    let mut file = load(root)?;
    change(&mut records);
    let records = serde_json::to_value(records).map_err(io::Error::other);
    file.insert("clips".into(), records.map_err(io_error)?);
    files::replace(&path, &file).map_err(io_error)
}

/// Locks the installations in `root` against other processes until the result is dropped.
pub(super) fn lock(root: &Path) -> Result<File, ClipError> {
    let path = root.join("config.json.lock");
    files::lock(&path).map_err(|error| ClipError::io(path.display(), &error))
}

fn load(root: &Path) -> Result<Map<String, Value>, ClipError> {
    let path = root.join("config.json");
    match files::read_if_present(&path) {
        Ok(Some(text)) => serde_json::from_slice(&text).map_err(|error| {
            let message = format!(
                "{} is not a JSON object: {error}. Repair it or move it away",
                path.display()
            );
            ClipError::invalid(message)
        }),
        Ok(None) => Ok(Map::new()),
        Err(error) => Err(ClipError::io(path.display(), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_held_lock_ends_the_wait_with_an_error_that_names_the_file() {
        let root = tempfile::tempdir().unwrap();
        let _held = lock(root.path()).unwrap();
        let error = update(root.path(), |_| panic!("it is locked")).unwrap_err();
        let expected = "config.json.lock: has been locked by another process for 10 s. Try again";
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!root.path().join("config.json").exists());
    }

    #[test]
    fn keys_of_other_programs_are_preserved() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.json");
        let before = r#"{"super_token":"x","clips":{"old":{"name":"lies","package":"p","future":[1]}},"schedules":{}}"#;
        fs::write(&path, before).unwrap();
        update(root.path(), |records| {
            assert_eq!(records["old"].name, "old");
            records.insert("new".into(), Record::default());
        })
        .unwrap();
        let after: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(after["super_token"], "x");
        assert_eq!(after["clips"]["old"]["future"][0], 1);
        assert!(after["schedules"].is_object());
        assert_eq!(read(root.path()).unwrap().len(), 2);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn secrets_in_clear_are_honoured_and_become_hashes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.json");
        fs::write(
            &path,
            r#"{"clips":{"old":{"token":"sesame"},"open":{"token":""}}}"#,
        )
        .unwrap();
        let records = read(root.path()).unwrap();
        assert!(records["old"].is_token_protected() && !records["open"].is_token_protected());
        update(root.path(), |_| {}).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("sesame"));
        let record = &read(root.path()).unwrap()["old"];
        assert!(record.check_secret(Some("sesame")).is_ok());
        assert!(record.check_secret(Some("open")).is_err());
        assert!(record.check_secret(None).is_err());
    }

    #[test]
    fn a_broken_file_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.json");
        fs::write(&path, "{\"super_token\":").unwrap();
        assert!(update(root.path(), |_| {}).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"super_token\":");
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let root = root.path();
                scope.spawn(move || {
                    update(root, |records| {
                        records.insert(format!("clip{number}"), Record::default());
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(read(root.path()).unwrap().len(), 8);
    }
}
