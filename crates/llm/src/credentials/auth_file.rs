//! `auth.json`: keys and logins that were stored for this user.
//!
//! The file belongs to the user and to other programs as well: it is read again when it has
//! changed, entries we do not understand are kept, and a file we cannot read is never replaced.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use pinion_message::{Millis, Secret};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Notice;
use crate::relaxed_json::{Problem, cleaned, members};

/// One stored credential.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Stored {
    /// A key, or how to get it.
    ApiKey { key: Secret },
    /// A login made by another program; we use it until it expires and never renew it.
    #[serde(rename = "oauth")]
    Login {
        access: Secret,
        #[serde(default)]
        expires: Millis,
    },
    /// A kind we do not know.
    #[serde(other)]
    Unknown,
}

/// The entries by provider.
pub(crate) type Entries = HashMap<String, Stored>;

/// The file and what it said when it was last read.
#[derive(Debug)]
pub(crate) struct AuthFile {
    path: PathBuf,
    last: Mutex<(Option<Stamp>, Arc<Entries>)>,
}

/// Tells one version of the file from another.
type Stamp = (SystemTime, u64);

impl AuthFile {
    /// Reads the file if there is one.
    pub(crate) fn open(path: PathBuf) -> (Self, Vec<Notice>) {
        let stamp = stamp(&path);
        let (entries, mut notices) = match stamp {
            Some(_) => read(&path),
            None => Default::default(),
        };
        if stamp.is_some() {
            notices.extend(readable_by_others(&path));
        }
        (
            Self {
                path,
                last: Mutex::new((stamp, Arc::new(entries))),
            },
            notices,
        )
    }

    /// The entries as they are now.
    pub(crate) fn entries(&self) -> Arc<Entries> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp != last.0 {
            let entries = if stamp.is_some() {
                read(&self.path).0
            } else {
                Entries::default()
            };
            *last = (stamp, Arc::new(entries));
        }
        Arc::clone(&last.1)
    }

    /// Stores a key, leaving every other entry as it is.
    pub(crate) fn store_key(&self, provider: &str, key: &Secret) -> io::Result<()> {
        let mut entries: Map<String, Value> = match fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str(&cleaned(&text)).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
            Err(error) => return Err(error),
        };
        let entry = json!({"type": "api_key", "key": key.expose_secret()});
        entries.insert(provider.to_owned(), entry);
        let text = serde_json::to_string_pretty(&entries).map_err(io::Error::other)?;
        replace_private(&self.path, text.as_bytes())
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Everything in the file that can be used, and what cannot.
fn read(path: &Path) -> (Entries, Vec<Notice>) {
    let text = match fs::read_to_string(path) {
        Ok(text) => cleaned(&text),
        Err(error) => {
            let notice = Notice::new(format!("{}: cannot be read: {error}", path.display()));
            return (Entries::new(), vec![notice]);
        }
    };
    let (members, problem) = members(&text, None);
    let mut entries = Entries::new();
    let mut notices = Vec::new();
    if let Some(problem) = problem {
        let rest = match members.len() {
            0 => "the file is ignored",
            _ => "the entries from here on are ignored",
        };
        notices.push(Notice::in_file(path, &problem, rest));
    }
    for (provider, raw) in members {
        match serde_json::from_str(raw.get()) {
            Ok(entry) => {
                entries.insert(provider, entry);
            }
            Err(error) => {
                let problem = Problem::from_error(&text, raw.get(), &error);
                let rest = format!("the entry for \"{provider}\" is ignored");
                notices.push(Notice::in_file(path, &problem, &rest));
            }
        }
    }
    (entries, notices)
}

/// Keys are nobody else's business.
fn readable_by_others(path: &Path) -> Option<Notice> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path).ok()?.permissions().mode();
        if mode & 0o077 != 0 {
            let file = path.display();
            let words = format!("{file}: other users may read it; run: chmod 600 {file}");
            return Some(Notice::new(words));
        }
    }
    None
}

/// Replaces a file in one step; only its owner may read it.
fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        builder.mode(0o700);
        options.mode(0o600);
    }
    builder.create(directory)?;
    // Unique enough: one process stores one key at a time, and `create_new` refuses a clash.
    let draft = path.with_extension(format!("json.{}", std::process::id()));
    let written = (|| {
        let mut file = options.open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.json");
        replace_private(&path, text.as_bytes()).unwrap();
        (directory, path)
    }

    #[test]
    fn a_broken_entry_costs_only_itself() {
        let (_directory, path) = file(
            "{\n \"a\": {\"type\":\"api_key\",\"key\":\"k\"},\n \"b\": {\"type\":\"api_key\",\n  \"key\":7},\n \"c\": {\"type\":\"later\",\"x\":1}\n}",
        );
        let (auth, notices) = AuthFile::open(path);
        assert!(matches!(auth.entries()["a"], Stored::ApiKey { .. }));
        assert!(matches!(auth.entries()["c"], Stored::Unknown));
        assert!(!auth.entries().contains_key("b"));
        let [notice] = notices.as_slice() else {
            panic!("{notices:?}")
        };
        assert!(notice.message.contains("auth.json: line "), "{notice:?}");
        assert!(
            notice.message.contains("the entry for \"b\" is ignored"),
            "{notice:?}"
        );
    }

    #[test]
    fn a_torn_file_says_where_and_keeps_what_came_before() {
        let (_directory, path) =
            file("{\"a\":{\"type\":\"api_key\",\"key\":\"k\"},\n \"b\":{\"type");
        let (auth, notices) = AuthFile::open(path.clone());
        assert!(auth.entries().contains_key("a"));
        assert!(notices[0].message.contains("line 2, column"), "{notices:?}");
        // What cannot be understood is not overwritten.
        assert!(auth.store_key("c", &Secret::from("k")).is_err());
        assert!(fs::read_to_string(path).unwrap().ends_with("{\"type"));
    }

    #[test]
    fn a_change_on_disk_is_seen() {
        let (_directory, path) = file("{}");
        let (auth, _) = AuthFile::open(path.clone());
        assert!(auth.entries().is_empty());
        fs::write(&path, r#"{"a":{"type":"oauth","access":"t","expires":5}}"#).unwrap();
        assert!(matches!(
            auth.entries()["a"],
            Stored::Login { expires: 5, .. }
        ));
        fs::remove_file(&path).unwrap();
        assert!(auth.entries().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_told_of() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_directory, path) = file("{}");
        assert_eq!(AuthFile::open(path.clone()).1, []);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let notices = AuthFile::open(path).1;
        assert!(notices[0].message.contains("chmod 600"), "{notices:?}");
    }

    #[cfg(unix)]
    #[test]
    fn stored_keys_are_private_and_other_entries_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_directory, path) = file(r#"{"other":{"type":"later","deep":{"x":[1,2]}}}"#);
        let (auth, _) = AuthFile::open(path.clone());
        auth.store_key("openai", &Secret::from("k-2")).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(
            value,
            json!({"other":{"type":"later","deep":{"x":[1,2]}},"openai":{"type":"api_key","key":"k-2"}})
        );
        assert!(matches!(auth.entries()["openai"], Stored::ApiKey { .. }));
    }
}
