//! Sources of registries: YAML files and SQLite databases, named in one line of text.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Notice, ProfileError};
use crate::locations::HostContext;
use crate::registry::{self, Registry};
use crate::sqlite;

/// The largest document, in bytes. Registries have a few kilobytes.
pub(crate) const MAX_BYTES: u64 = 8 << 20;

/// A source of registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One registry in a file.
    Yaml(PathBuf),
    /// A database file.
    Sqlite(PathBuf),
    /// A database, named by a SQLite URI.
    SqliteDsn(String),
}

impl Source {
    /// Parses a source: `yaml:PATH`, `yaml://PATH`, `sqlite:PATH`, `sqlite-dsn:DSN`, or a path
    /// whose file is inspected. Relative paths start at `base`.
    pub fn parse(text: &str, base: &Path, host: &HostContext<'_>) -> Option<Self> {
        let text = text.trim();
        let path = |text: &str| host.path(text.trim(), base);
        if let Some(dsn) = text.strip_prefix("sqlite-dsn:") {
            return (!dsn.trim().is_empty()).then(|| Self::SqliteDsn(dsn.trim().to_owned()));
        }
        let (kind, rest) = match text.split_once(':') {
            Some((kind @ ("yaml" | "sqlite"), rest)) => {
                (Some(kind), rest.strip_prefix("//").unwrap_or(rest))
            }
            _ => (None, text),
        };
        if rest.trim().is_empty() {
            return None;
        }
        Some(match kind {
            Some("yaml") => Self::Yaml(path(rest)),
            Some(_) => Self::Sqlite(path(rest)),
            None => {
                let path = path(rest);
                if looks_like_a_database(&path) {
                    Self::Sqlite(path)
                } else {
                    Self::Yaml(path)
                }
            }
        })
    }

    /// Reads the registries in order.
    pub(crate) fn open(&self, notices: &mut Vec<Notice>) -> Result<Vec<Registry>, ProfileError> {
        match self {
            Self::Yaml(path) => {
                let text = pinion_files::read_text(path, MAX_BYTES).map_err(|error| {
                    ProfileError::Unreadable {
                        what: "registry",
                        path: path.clone(),
                        reason: error.to_string(),
                    }
                })?;
                registry::read_yaml(&text, self, notices).map(|registry| vec![registry])
            }
            Self::Sqlite(path) => sqlite::read(path, path, self, notices),
            Self::SqliteDsn(dsn) => sqlite::read(Path::new(dsn), Path::new(dsn), self, notices),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Yaml(path) => write!(f, "{}", path.display()),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::SqliteDsn(dsn) => write!(f, "sqlite-dsn:{dsn}"),
        }
    }
}

/// Recognises a database by its file name, else by its first bytes.
fn looks_like_a_database(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| {
        ["db", "sqlite", "sqlite3"].contains(&extension.to_ascii_lowercase().as_str())
    }) {
        return true;
    }
    let mut start = [0; 16];
    pinion_files::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == *b"SQLite format 3\0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_by_prefix_name_and_header() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("odd"), b"SQLite format 3\0rest").unwrap();
        std::fs::write(directory.path().join("plain"), b"slug: x").unwrap();
        let host = HostContext {
            home: Path::new("/h"),
            cwd: Path::new("/w"),
            environment: &|_| None,
            trusts: &|_| false,
            system: Path::new("/etc"),
        };
        let base = directory.path();
        let yaml = |path: &str| Some(Source::Yaml(base.join(path)));
        let sqlite = |path: &str| Some(Source::Sqlite(base.join(path)));
        for (text, source) in [
            ("yaml:a.db", yaml("a.db")),
            ("yaml:///x/a", yaml("/x/a")),
            ("yaml://a.yaml", yaml("a.yaml")),
            ("sqlite:a.yaml", sqlite("a.yaml")),
            (
                "sqlite-dsn:file:a?x=1",
                Some(Source::SqliteDsn("file:a?x=1".into())),
            ),
            ("a.DB", sqlite("a.DB")),
            ("a.sqlite3", sqlite("a.sqlite3")),
            (" a.yaml ", yaml("a.yaml")),
            ("~/a.yaml", yaml("/h/a.yaml")),
            ("odd", sqlite("odd")),
            ("plain", yaml("plain")),
            ("none", yaml("none")),
            ("", None),
            ("yaml:", None),
            ("sqlite-dsn: ", None),
        ] {
            assert_eq!(Source::parse(text, base, &host), source, "{text}");
        }
    }
}
