//! `auth.json`: keys and logins that were stored for this user.
//!
//! The file belongs to the user and to other programs as well: pinion reads it again when it has
//! changed, preserves unknown entries, and never replaces a file it cannot read.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_files::{LockDirectory, Replace};
use pinion_logins::Login;
use pinion_message::Secret;
use serde_json::{Map, Value, json};

use crate::Notice;
use crate::relaxed_json::{Problem, cleaned, members};

/// More than any number of keys needs; a larger file is a mistake.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The longest wait for the lock of pi or another pinion, and the age at which their lock is stale,
/// as in pi.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts to read a file that another program is writing, and the delay between them.
const READ_ATTEMPTS: u32 = 10;
const READ_DELAY: Duration = Duration::from_millis(20);
/// The valid forms of an entry, for messages.
const ENTRY_FORMS: &str = r#"an entry is {"type":"api_key","key":"…"}, {"type":"api_key","env":{"NAME":"…"}} or a login of pi ({"type":"oauth","access":"…","expires":…})"#;

/// One stored credential. While it exists, no other source of the provider's key is used.
#[derive(Debug, Clone)]
pub(crate) enum Stored {
    /// A key, or the way to get it; without one, `env` has the variables of the provider.
    ApiKey {
        key: Option<Secret>,
        env: BTreeMap<String, Secret>,
    },
    /// A login; all its members stay together.
    Login(Login),
    /// An entry of an unknown type or form.
    Unusable,
}

impl Stored {
    /// Parses an entry. The error describes what is wrong with it.
    fn parse(text: &str) -> Result<Self, String> {
        let Ok(Value::Object(entry)) = serde_json::from_str(text) else {
            return Err(ENTRY_FORMS.to_owned());
        };
        let text = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("\"{name}\" must be a text; {ENTRY_FORMS}")),
        };
        match text("type")? {
            Some("api_key") => {
                let env = match entry.get("env") {
                    None | Some(Value::Null) => Some(BTreeMap::new()),
                    Some(Value::Object(env)) => env
                        .iter()
                        .map(|(name, value)| Some((name.clone(), Secret::from(value.as_str()?))))
                        .collect(),
                    Some(_) => None,
                };
                Ok(Self::ApiKey {
                    key: text("key")?.map(Secret::from),
                    env: env.ok_or_else(|| {
                        format!("\"env\" must be an object of texts; {ENTRY_FORMS}")
                    })?,
                })
            }
            Some("oauth") => Login::from_entry(entry.clone())
                .map(Self::Login)
                .map_err(|wrong| format!("{wrong}; {ENTRY_FORMS}")),
            // Later versions of pi may have more types.
            Some(_) => Ok(Self::Unusable),
            None => Err(format!("\"type\" is missing; {ENTRY_FORMS}")),
        }
    }
}

/// The entries by provider.
pub(crate) type Entries = HashMap<String, Stored>;

/// The file and its entries when it was last read.
#[derive(Debug)]
pub(crate) struct AuthFile {
    path: PathBuf,
    last: Mutex<(Option<FileVersion>, Arc<Entries>)>,
}

/// Identifies a version of the file: device, inode, length, and the times of modification and change in nanoseconds.
type FileVersion = [i128; 5];

impl AuthFile {
    /// Reads the file if there is one.
    pub(crate) fn open(path: PathBuf) -> (Self, Vec<Notice>) {
        let mut found = (None, Read::default());
        for attempt in 0..READ_ATTEMPTS {
            if attempt > 0 {
                // pi writes in place, so the file may be half written.
                std::thread::sleep(READ_DELAY);
            }
            let version = file_version(&path);
            let content = version.map(|_| read(&path)).unwrap_or_default();
            found = (version, content);
            if !found.1.is_torn {
                break;
            }
        }
        let (version, mut content) = found;
        if version.is_some() {
            content.notices.extend(readable_by_others(&path));
        }
        (
            Self {
                path,
                last: Mutex::new((version, Arc::new(content.entries))),
            },
            content.notices,
        )
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The entries as they are now. While another program writes the file, the entries before that.
    pub(crate) fn entries(&self) -> Arc<Entries> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let version = file_version(&self.path);
        if version != last.0 {
            let content = version.map(|_| read(&self.path)).unwrap_or_default();
            if !content.is_torn {
                *last = (version, Arc::new(content.entries));
            }
        }
        Arc::clone(&last.1)
    }

    /// Reports whether the file ends early or is not JSON.
    pub(crate) fn is_torn(&self) -> bool {
        self.path.exists() && read(&self.path).is_torn
    }

    /// Stores a key, leaving every other entry as it is. Blocks on the lock that all programs share.
    pub(crate) fn store_key(&self, provider: &str, key: &Secret) -> io::Result<()> {
        use secrecy::ExposeSecret;
        let entry = json!({"type": "api_key", "key": key.expose_secret()});
        self.store(provider, entry)
    }

    /// Stores an entry, leaving every other entry as it is. Blocks on the lock that all programs share.
    pub(crate) fn store(&self, provider: &str, entry: Value) -> io::Result<()> {
        make_directory(&self.path)?;
        let lock = LockDirectory::take(&self.path, LOCK_TIMEOUT, LOCK_TIMEOUT)?;
        self.change(&lock, |entries| {
            entries.insert(provider.to_owned(), entry);
            true
        })
        .map(drop)
    }

    /// Removes an entry. Returns `false` if there is none. Blocks on the lock that all programs share.
    pub(crate) fn remove(&self, provider: &str) -> io::Result<bool> {
        if !self.path.try_exists()? {
            return Ok(false);
        }
        let lock = LockDirectory::take(&self.path, LOCK_TIMEOUT, LOCK_TIMEOUT)?;
        self.change(&lock, |entries| entries.shift_remove(provider).is_some())
    }

    /// Changes the entries under `lock`, unless `change` returns `false`. A file that cannot be parsed is not
    /// overwritten.
    pub(super) fn change(
        &self,
        lock: &LockDirectory,
        change: impl FnOnce(&mut Map<String, Value>) -> bool,
    ) -> io::Result<bool> {
        let mut entries = self.parse()?;
        if !change(&mut entries) {
            return Ok(false);
        }
        let text = serde_json::to_string_pretty(&entries).map_err(io::Error::other)?;
        if !lock.is_held() {
            return Err(io::Error::other("another program took its lock over"));
        }
        pinion_files::replace(&self.path, text.as_bytes(), Replace::PRIVATE)?;
        Ok(true)
    }

    /// The whole file as it is now.
    fn parse(&self) -> io::Result<Map<String, Value>> {
        match pinion_files::read_text(&self.path, MAX_FILE_BYTES) {
            Ok(text) if text.trim().is_empty() => Ok(Map::new()),
            Ok(text) => serde_json::from_str(&cleaned(&text)).map_err(|error| {
                let why = pinion_jsonl::explain_with_position(&error);
                io::Error::other(format!("{}: {why}", self.path.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(error),
        }
    }
}

fn file_version(path: &Path) -> Option<FileVersion> {
    let metadata = fs::metadata(path).ok()?;
    let time = |seconds: i64, nanoseconds: i64| {
        i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
    };
    Some([
        metadata.dev().into(),
        metadata.ino().into(),
        metadata.len().into(),
        time(metadata.mtime(), metadata.mtime_nsec()),
        time(metadata.ctime(), metadata.ctime_nsec()),
    ])
}

/// The content of the file.
#[derive(Debug, Default)]
struct Read {
    entries: Entries,
    notices: Vec<Notice>,
    /// The file ends early or is not JSON.
    is_torn: bool,
}

/// The valid entries of the file, and a notice for each invalid one.
fn read(path: &Path) -> Read {
    let text = match pinion_files::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => cleaned(&text),
        Err(error) => {
            let notice = Notice::new(format!("{}: cannot be read: {error}", path.display()));
            return Read {
                notices: vec![notice],
                ..Read::default()
            };
        }
    };
    let (members, problem) = members(&text, None);
    let is_torn = problem.is_some();
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
        let entry = Stored::parse(raw.get()).unwrap_or_else(|wrong| {
            let problem = Problem::with_part(&text, raw.get(), wrong);
            let rest =
                format!("\"{provider}\" cannot be used until its entry is repaired or removed");
            notices.push(Notice::in_file(path, &problem, &rest));
            Stored::Unusable
        });
        entries.insert(provider, entry);
    }
    Read {
        entries,
        notices,
        is_torn,
    }
}

/// Warns if other users can read the keys.
fn readable_by_others(path: &Path) -> Option<Notice> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path).ok()?.permissions().mode();
        if mode & 0o077 != 0 {
            let file = path.display();
            let message = format!("{file}: other users may read it; run: chmod 600 {file}");
            return Some(Notice::new(message));
        }
    }
    None
}

fn make_directory(file: &Path) -> io::Result<()> {
    pinion_files::create_private_directory(file.parent().unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.json");
        pinion_files::replace(&path, text.as_bytes(), Replace::PRIVATE).unwrap();
        (directory, path)
    }

    #[test]
    fn a_broken_entry_is_ignored() {
        let (_directory, path) = file(
            "{\n \"a\": {\"type\":\"api_key\",\"key\":\"k\"},\n \"b\": {\"type\":\"api_key\",\n  \"key\":7},\n \"c\": {\"type\":\"later\",\"x\":1}\n}",
        );
        let (auth, notices) = AuthFile::open(path);
        assert!(matches!(auth.entries()["a"], Stored::ApiKey { .. }));
        assert!(matches!(auth.entries()["c"], Stored::Unusable));
        assert!(matches!(auth.entries()["b"], Stored::Unusable));
        let [notice] = notices.as_slice() else {
            panic!("{notices:?}")
        };
        assert!(notice.message.contains("auth.json: line "), "{notice:?}");
        assert!(
            notice
                .message
                .contains("\"key\" must be a text; an entry is {"),
            "{notice:?}"
        );
        assert!(
            notice
                .message
                .ends_with("\"b\" cannot be used until its entry is repaired or removed"),
            "{notice:?}"
        );
    }

    #[test]
    fn a_torn_file_is_reported_with_its_position_and_read_up_to_there() {
        let (_directory, path) =
            file("{\"a\":{\"type\":\"api_key\",\"key\":\"k\"},\n \"b\":{\"type");
        let (auth, notices) = AuthFile::open(path.clone());
        assert!(auth.entries().contains_key("a"));
        assert!(notices[0].message.contains("line 2, column"), "{notices:?}");
        // A file that cannot be parsed is not overwritten.
        assert!(auth.store_key("c", &Secret::from("k")).is_err());
        assert!(fs::read_to_string(path).unwrap().ends_with("{\"type"));
    }

    #[test]
    fn a_pipe_or_a_device_is_not_read_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("auth.json");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let (auth, notices) = AuthFile::open(path.clone());
        assert!(auth.entries().is_empty());
        assert!(
            notices[0]
                .message
                .contains("is a device, not a regular file"),
            "{notices:?}"
        );
        auth.store_key("openai", &Secret::from("k")).unwrap_err();
        assert!(path.is_symlink() && !path.is_file());
        assert!(!directory.path().join("auth.json.lock").exists());
    }

    #[test]
    fn a_change_on_disk_is_seen() {
        let (_directory, path) = file("{}");
        let (auth, _) = AuthFile::open(path.clone());
        assert!(auth.entries().is_empty());
        fs::write(&path, r#"{"a":{"type":"oauth","access":"t","expires":5}}"#).unwrap();
        let entries = auth.entries();
        assert!(matches!(&entries["a"], Stored::Login(login) if login.expires() == 5));
        fs::remove_file(&path).unwrap();
        assert!(auth.entries().is_empty());
    }

    #[test]
    fn a_half_written_file_does_not_replace_the_last_good_view() {
        let (_directory, path) = file(r#"{"a":{"type":"api_key","key":"k"}}"#);
        let (auth, _) = AuthFile::open(path.clone());
        fs::write(&path, r#"{"b":{"type":"api_"#).unwrap();
        assert!(auth.entries().contains_key("a"));
        fs::write(&path, r#"{"b":{"type":"api_key","key":"k"}}"#).unwrap();
        assert!(auth.entries().contains_key("b") && !auth.entries().contains_key("a"));
    }

    #[test]
    fn entries_are_removed_and_the_rest_is_written_as_pi_writes_it() {
        let (directory, path) =
            file("\u{feff}{\"a\":{\"type\":\"later\",\"x\":1},\"b\":{\"type\":\"api_key\"}}");
        let (auth, _) = AuthFile::open(path.clone());
        assert!(auth.remove("b").unwrap());
        assert!(!auth.remove("b").unwrap());
        let expected = "{\n  \"a\": {\n    \"type\": \"later\",\n    \"x\": 1\n  }\n}";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert!(!directory.path().join("auth.json.lock").exists());
        let (nothing, _) = AuthFile::open(directory.path().join("none.json"));
        assert!(!nothing.remove("a").unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_reported() {
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
