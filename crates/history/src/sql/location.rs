//! Parsing of database locations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_text::percent;

use crate::HistoryError;

/// A database to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Sqlite(SqliteLocation),
    Postgres(Dsn),
}

/// A `postgres://` URL or settings such as `host=… user=…`. It may hold a password and is never
/// printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Dsn(pub(crate) String);

impl std::fmt::Debug for Dsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// A SQLite database to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteLocation {
    /// The string passed to SQLite.
    pub(crate) target: String,
    pub(crate) form: Form,
    /// The file; `None` for databases in memory.
    pub(crate) file: Option<PathBuf>,
    pub(crate) busy_timeout: Duration,
    pub(crate) journal_mode: String,
    pub(crate) synchronous: String,
    pub(crate) foreign_keys: bool,
}

/// The form of SQLite's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A literal path; its directory is created if it is missing.
    Path,
    /// A path from a DSN.
    DsnPath,
    /// A `file:` URI.
    Uri,
}

const BUSY_TIMEOUT: Duration = Duration::from_millis(5000);

impl SqliteLocation {
    /// Creates the location of a database file.
    pub(crate) fn path(path: &str) -> Self {
        Self {
            target: path.to_owned(),
            form: Form::Path,
            file: Some(PathBuf::from(path)),
            busy_timeout: BUSY_TIMEOUT,
            journal_mode: "WAL".to_owned(),
            synchronous: "NORMAL".to_owned(),
            foreign_keys: true,
        }
    }

    /// Parses a DSN: a `file:` URI or a path, with settings after `?`.
    pub(crate) fn dsn(dsn: &str) -> Result<Self, HistoryError> {
        let uri = dsn.starts_with("file:");
        let (path, settings) = dsn.split_once('?').unwrap_or((dsn, ""));
        let mut location = Self::path(path);
        location.form = if uri { Form::Uri } else { Form::DsnPath };
        if uri {
            dsn.clone_into(&mut location.target);
            location.file = Some(PathBuf::from(uri_path(path)));
        }
        let mut memory = path == ":memory:" || path == "file::memory:";
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match name {
                "_journal_mode" | "_journal" => location.journal_mode = word(name, value)?,
                "_synchronous" | "_sync" => location.synchronous = word(name, value)?,
                "_busy_timeout" | "_timeout" => {
                    let millis = value.parse().map_err(|_| bad(name, value))?;
                    location.busy_timeout = Duration::from_millis(millis);
                }
                "_foreign_keys" | "_fk" => location.foreign_keys = switch(name, value)?,
                "mode" if value == "memory" => memory = true,
                // SQLite applies the settings it supports and ignores the others.
                _ => {}
            }
        }
        if memory {
            location.file = None;
        }
        Ok(location)
    }

    /// Returns the name in messages.
    pub(crate) fn place(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => "the database in memory".to_owned(),
        }
    }

    /// Returns the path of a file that SQLite creates beside the database.
    pub(crate) fn beside(&self, suffix: &str) -> Option<PathBuf> {
        let mut name = self.file.clone()?.into_os_string();
        name.push(suffix);
        Some(PathBuf::from(name))
    }

    /// Returns the same file as a URI with one more setting.
    pub(crate) fn uri_with(&self, setting: &str) -> String {
        if self.form == Form::Uri {
            let glue = if self.target.contains('?') { '&' } else { '?' };
            return format!("{}{glue}{setting}", self.target);
        }
        let path = self.file.as_deref().unwrap_or(Path::new(""));
        let mut uri = "file:".to_owned();
        for character in path.to_string_lossy().chars() {
            match character {
                '?' => uri.push_str("%3f"),
                '#' => uri.push_str("%23"),
                '%' => uri.push_str("%25"),
                other => uri.push(other),
            }
        }
        format!("{uri}?{setting}")
    }
}

/// Returns the path in a `file:` URI, without its settings.
fn uri_path(uri: &str) -> String {
    let path = uri.strip_prefix("file:").unwrap_or(uri);
    let path = path.split('#').next().unwrap_or_default();
    let path = match path.strip_prefix("//") {
        // An authority, empty or `localhost`.
        Some(rest) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => path,
    };
    String::from_utf8_lossy(&percent::decode(path.as_bytes())).into_owned()
}

/// Parses a setting. It becomes part of a statement, so only a word is accepted.
fn word(name: &str, value: &str) -> Result<String, HistoryError> {
    if !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric()) {
        Ok(value.to_owned())
    } else {
        Err(bad(name, value))
    }
}

fn switch(name: &str, value: &str) -> Result<bool, HistoryError> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        _ => Err(bad(name, value)),
    }
}

fn bad(name: &str, value: &str) -> HistoryError {
    HistoryError::Options(format!(
        "the DSN sets {name} to \"{value}\", which it cannot be"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(dsn: &str) -> Option<String> {
        let location = SqliteLocation::dsn(dsn).unwrap();
        location.file.map(|file| file.display().to_string())
    }

    #[test]
    fn the_file_is_found_in_every_form() {
        for (dsn, path) in [
            ("a/b.db", Some("a/b.db")),
            ("a.db?_busy_timeout=1", Some("a.db")),
            ("file:a.db", Some("a.db")),
            ("file:/x/a%20b.db?cache=shared", Some("/x/a b.db")),
            ("file:///x/a.db#f", Some("/x/a.db")),
            ("file://localhost/x/a.db", Some("/x/a.db")),
            (":memory:", None),
            ("file:name?mode=memory&cache=shared", None),
            ("file::memory:", None),
        ] {
            assert_eq!(file(dsn).as_deref(), path, "{dsn}");
        }
    }

    #[test]
    fn settings_are_taken_over() {
        let location =
            SqliteLocation::dsn("file:a.db?_journal_mode=DELETE&_fk=off&_busy_timeout=250&_sync=2")
                .unwrap();
        assert_eq!(location.journal_mode, "DELETE");
        assert_eq!(location.synchronous, "2");
        assert!(!location.foreign_keys);
        assert_eq!(location.busy_timeout, Duration::from_millis(250));
        for dsn in ["a?_journal_mode=x;drop", "a?_fk=maybe", "a?_timeout=-1"] {
            assert_eq!(
                SqliteLocation::dsn(dsn).unwrap_err().code(),
                "history_options"
            );
        }
    }

    #[test]
    fn a_path_becomes_an_address_letter_by_letter() {
        let location = SqliteLocation::path("a?b#c%d.db");
        assert_eq!(
            location.uri_with("immutable=1"),
            "file:a%3fb%23c%25d.db?immutable=1"
        );
        let location = SqliteLocation::dsn("file:a.db?x=1").unwrap();
        assert_eq!(location.uri_with("y=2"), "file:a.db?x=1&y=2");
    }

    proptest! {
        #[test]
        fn any_dsn_is_read_or_refused(dsn in "(file:)?\\PC{0,20}(\\?[a-z_=&%]{0,20})?") {
            let _ = SqliteLocation::dsn(&dsn);
        }
    }
}
