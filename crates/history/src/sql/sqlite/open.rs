//! Opening of SQLite databases: existing files are inspected before anything is changed.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::errors::convert;
use super::{Access, MAX_PREPARED, Schema, Sharing, Sqlite, SqliteLocation, retry_while_locked};
use crate::HistoryError;
use crate::sql::Upgrade;
use crate::sql::location::Form;

/// The largest file that is checked when it is opened, in bytes; a larger one would take too long.
const MAX_CHECKED_BYTES: u64 = 64 * 1024 * 1024;
/// The most problems that are reported.
const MAX_PROBLEMS: usize = 20;

pub(super) fn open(
    location: SqliteLocation,
    schema: Schema,
    access: Access,
) -> Result<Sqlite, HistoryError> {
    let found = inspect(&location)?;
    match (access, found) {
        (Access::ReadOnly, FileState::Nothing) => Err(HistoryError::Missing {
            place: location.place(),
        }),
        // Reading would have to create a log. No process writes, so none needs it.
        (Access::ReadOnly, FileState::WithLog) if !log_is_there(&location) => {
            let target = location.uri_with("immutable=1");
            let connection = connect(&location, &target, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            finish(location, connection, schema, access, Sharing::Alone)
        }
        (Access::ReadOnly, _) => shared(location, schema),
        (Access::ReadWrite, _) => {
            make_directory(&location)?;
            let unclean = was_not_closed(&location);
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let connection = connect(&location, &location.target, flags)?;
            if unclean {
                quick_check(&connection, &location)?;
            }
            finish(location, connection, schema, access, Sharing::Shared)
        }
    }
}

/// Opens for reading while others write.
pub(super) fn shared(location: SqliteLocation, schema: Schema) -> Result<Sqlite, HistoryError> {
    let connection = connect(
        &location,
        &location.target,
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )?;
    finish(
        location,
        connection,
        schema,
        Access::ReadOnly,
        Sharing::Shared,
    )
}

fn finish(
    location: SqliteLocation,
    connection: Connection,
    schema: Schema,
    access: Access,
    sharing: Sharing,
) -> Result<Sqlite, HistoryError> {
    let timeout = location.busy_timeout * super::MAX_BUSY_TIMEOUTS;
    let sqlite = Sqlite {
        connection,
        location,
        schema,
        access,
        sharing,
    };
    retry_while_locked(timeout, || {
        sqlite.configure()?;
        sqlite.ensure_schema()
    })?;
    Ok(sqlite)
}

/// The state of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Nothing,
    /// A database that is changed in place, or one in memory.
    Plain,
    /// A database with a write-ahead log.
    WithLog,
}

/// Inspects a file without SQLite, which would create one, or write a journal beside a device.
fn inspect(location: &SqliteLocation) -> Result<FileState, HistoryError> {
    let Some(path) = &location.file else {
        return Ok(FileState::Plain);
    };
    let failed = |source| HistoryError::Io {
        action: "read",
        path: path.clone(),
        source,
    };
    // SQLite opens these without checking their types.
    for beside in ["-wal", "-shm", "-journal"]
        .iter()
        .filter_map(|suffix| location.beside(suffix))
    {
        pinion_files::is_regular(&beside).map_err(|source| HistoryError::Io {
            action: "read",
            path: beside,
            source,
        })?;
    }
    let file = match pinion_files::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileState::Nothing),
        Err(error) => return Err(failed(error)),
    };
    let mut header = Vec::with_capacity(20);
    file.take(20).read_to_end(&mut header).map_err(failed)?;
    match header.as_slice() {
        [] => Ok(FileState::Plain),
        [magic @ .., _, _, _, 2] if magic == MAGIC => Ok(FileState::WithLog),
        [magic @ .., _, _, _, _] if magic == MAGIC => Ok(FileState::Plain),
        _ => Err(HistoryError::NotADatabase {
            place: location.place(),
        }),
    }
}

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

fn make_directory(location: &SqliteLocation) -> Result<(), HistoryError> {
    let parent = match (&location.file, location.form) {
        (Some(file), Form::Path) => file.parent(),
        _ => None,
    };
    let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if parent.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(parent);
    made.map_err(|source| HistoryError::Io {
        action: "make the directory",
        path: parent.to_owned(),
        source,
    })
}

fn connect(
    location: &SqliteLocation,
    target: &str,
    flags: OpenFlags,
) -> Result<Connection, HistoryError> {
    let uri = location.form == Form::Uri || target != location.target;
    let flags = if uri {
        flags | OpenFlags::SQLITE_OPEN_URI
    } else {
        flags
    };
    let connect = || {
        let connection =
            Connection::open_with_flags(target, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(location.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(MAX_PREPARED);
        Ok(connection)
    };
    connect().map_err(|error| convert(location, "open", error))
}

/// Reports whether the last writer did not close the database.
fn was_not_closed(location: &SqliteLocation) -> bool {
    let holds_something = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    ["-wal", "-journal"]
        .iter()
        .filter_map(|suffix| location.beside(suffix))
        .any(|path| holds_something(&path))
}

/// Reports whether a log exists beside the database: another process has it open, or did not close
/// it.
pub(super) fn log_is_there(location: &SqliteLocation) -> bool {
    location.beside("-wal").is_some_and(|log| log.exists())
}

fn quick_check(connection: &Connection, location: &SqliteLocation) -> Result<(), HistoryError> {
    let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    if location.file.as_deref().map_or(0, size) > MAX_CHECKED_BYTES {
        return Ok(());
    }
    let check = || connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    let timeout = location.busy_timeout * super::MAX_BUSY_TIMEOUTS;
    let answer: String = retry_while_locked(timeout, || {
        check().map_err(|error| convert(location, "check", error))
    })?;
    match answer.as_str() {
        "ok" => Ok(()),
        _ => Err(HistoryError::Damaged {
            place: location.place(),
            detail: one_line(&answer),
        }),
    }
}

/// Returns everything that SQLite finds wrong.
pub(super) fn problems(
    connection: &Connection,
    location: &SqliteLocation,
) -> Result<Vec<String>, HistoryError> {
    let check = || -> rusqlite::Result<Vec<String>> {
        let sql = format!("PRAGMA integrity_check({MAX_PROBLEMS})");
        let mut statement = connection.prepare(&sql)?;
        let answers = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut problems: Vec<String> = answers.collect::<rusqlite::Result<_>>()?;
        problems.retain(|answer| answer != "ok");
        let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
        let dangling = statement.query_map([], |row| {
            let table: String = row.get(0)?;
            let number: Option<i64> = row.get(1)?;
            let parent: String = row.get(2)?;
            let number = number.map_or_else(String::new, |number| format!(" {number}"));
            Ok(format!(
                "row{number} of {table} names a missing row of {parent}"
            ))
        })?;
        for problem in dangling.take(MAX_PROBLEMS) {
            problems.push(problem?);
        }
        Ok(problems)
    };
    let problems = check().map_err(|error| convert(location, "check", error))?;
    Ok(problems.iter().map(|problem| one_line(problem)).collect())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Sqlite {
    /// Applies the settings of the connection and, with write access, of the file.
    fn configure(&self) -> Result<(), HistoryError> {
        let connection = &self.connection;
        let location = &self.location;
        let failed = |error| convert(location, "open", error);
        if self.access == Access::ReadWrite && connection.is_readonly("main").map_err(failed)? {
            return Err(HistoryError::ReadOnly {
                place: location.place(),
                detail: "permission denied".to_owned(),
            });
        }
        let settings = format!(
            "PRAGMA foreign_keys={}; PRAGMA synchronous={};",
            u8::from(location.foreign_keys),
            location.synchronous
        );
        connection.execute_batch(&settings).map_err(failed)?;
        if self.access == Access::ReadWrite && location.file.is_some() {
            let sql = format!("PRAGMA journal_mode={}", location.journal_mode);
            connection.query_row(&sql, [], |_| Ok(())).map_err(failed)?;
        }
        Ok(())
    }

    /// Creates or upgrades the tables, or fails.
    fn ensure_schema(&self) -> Result<(), HistoryError> {
        let failed = |error| convert(&self.location, "prepare", error);
        let schema = &self.schema;
        if let Some(version) = schema.user_version {
            let found = self.user_version().map_err(failed)?;
            if found > version {
                return Err(self.refused(format!(
                    "it was written by a newer program (version {found}, this one knows {version}); use that program, or another file"
                )));
            }
        }
        let missing = self.missing().map_err(failed)?;
        if self.access == Access::ReadOnly {
            let Some(table) = missing.into_iter().find(|name| is_table(schema, name)) else {
                return self.keys_fit();
            };
            return Err(self.refused(format!(
                "there is no table {table} in it; is this the right database?"
            )));
        }
        self.keys_fit()?;
        let outdated = (schema.upgrade)(&self.connection, Upgrade::Ask).map_err(failed)?;
        if missing.is_empty() && !outdated {
            return Ok(());
        }
        self.prepare().map_err(failed)?;
        self.keys_fit()
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let change = || {
            (self.schema.upgrade)(&self.connection, Upgrade::Do)?;
            for (_, statement) in self.schema.sqlite {
                self.connection.execute_batch(statement)?;
            }
            if let Some(version) = self.schema.user_version {
                self.connection
                    .pragma_update(None, "user_version", version)?;
            }
            self.connection.execute_batch("COMMIT")
        };
        change().inspect_err(|_| {
            // The first error is the one to report.
            let _ = self.connection.execute_batch("ROLLBACK");
        })
    }

    fn user_version(&self) -> rusqlite::Result<i64> {
        self.connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
    }

    fn missing(&self) -> rusqlite::Result<Vec<&'static str>> {
        let mut statement = self
            .connection
            .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'index', 'view')")?;
        let names = statement.query_map([], |row| row.get::<_, String>(0))?;
        let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
        let wanted = self.schema.sqlite.iter().map(|(name, _)| *name);
        Ok(wanted
            .filter(|name| !names.iter().any(|known| known == name))
            .collect())
    }

    /// Checks the primary keys. Different tables would otherwise fail later, during a conversation.
    fn keys_fit(&self) -> Result<(), HistoryError> {
        for (table, key) in self.schema.keys {
            let found = primary_key(&self.connection, table)
                .map_err(|error| convert(&self.location, "read", error))?;
            if !found.is_empty() && found != *key {
                return Err(self.refused(format!(
                    "the table {table} has the key ({}) and should have ({}); use another file",
                    found.join(", "),
                    key.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn refused(&self, detail: String) -> HistoryError {
        HistoryError::Schema {
            place: self.location.place(),
            detail,
        }
    }
}

fn is_table(schema: &Schema, name: &str) -> bool {
    schema.keys.iter().any(|(table, _)| *table == name)
}

/// Returns the columns of a primary key in order; none for a missing table.
fn primary_key(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}
