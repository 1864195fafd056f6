//! One database: its limits, and the files that its statements may open.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinion_files::FileKind;
use rquickjs::Ctx;
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use serde::Deserialize;
use serde_json::json;

use super::thrown;
use super::value::SqlValue;
use crate::ops::bytes::MAX_BYTES;
use crate::ops::syscall_error::SyscallError;
use crate::script::Host;

/// Pages of a database in memory and of temporary tables: 256 MiB of pages with 4 KiB each.
const MAX_MEMORY_PAGES: u32 = 65_536;

/// Steps of SQLite's machine between two checks of the time.
const STEPS_PER_CHECK: i32 = 4_000;

/// Prepared statements that a connection stores.
const STORED_STATEMENTS: usize = 64;

/// Bytes that a row takes besides its texts and blobs.
const CELL_BYTES: usize = 32;

/// Settings that would lift a limit or write elsewhere.
const DENIED_PRAGMAS: &[&str] = &[
    "data_store_directory",
    "hard_heap_limit",
    "max_page_count",
    "soft_heap_limit",
    "temp_store_directory",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenOptions {
    read_only: bool,
    foreign_keys: bool,
    quoted_strings: bool,
    /// Milliseconds to wait for a lock.
    timeout: f64,
}

/// A failure, in the form that Node reports it.
#[derive(Debug)]
pub(super) enum SqlError {
    Sqlite(rusqlite::Error),
    File(SyscallError),
    TooManyRows,
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl SqlError {
    pub(super) fn throw(self, ctx: &Ctx<'_>) -> rquickjs::Error {
        match self {
            Self::File(error) => error.throw(ctx),
            Self::TooManyRows => {
                let message = format!("The rows take more than {} MiB", MAX_BYTES >> 20);
                thrown(ctx, &message, "ERR_SQLITE_ERROR", None)
            }
            Self::Sqlite(error) => {
                let number = error
                    .sqlite_error()
                    .map_or(1, |details| details.extended_code);
                let words = rusqlite::ffi::code_to_str(number);
                let message = match &error {
                    rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
                    rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
                    other => other.to_string(),
                };
                thrown(ctx, &message, "ERR_SQLITE_ERROR", Some((number, words)))
            }
        }
    }
}

/// The time at which the running statement is interrupted, in milliseconds since the connection was opened.
#[derive(Debug)]
struct Deadline {
    opened: Instant,
    at: AtomicU64,
}

impl Deadline {
    fn set(&self, left: Duration) {
        let at = (self.opened.elapsed() + left).as_millis();
        self.at
            .store(u64::try_from(at).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.opened.elapsed().as_millis() >= u128::from(self.at.load(Ordering::Relaxed))
    }
}

pub(super) struct Database {
    connection: Connection,
    deadline: Arc<Deadline>,
    host: Host,
    lock_timeout: Duration,
    /// The file that an `ATTACH` was refused for.
    refused: Arc<Mutex<Option<io::Error>>>,
}

impl Database {
    pub(super) fn open(path: &str, options: OpenOptions, host: &Host) -> Result<Self, SqlError> {
        let in_memory = path == ":memory:" || path.is_empty();
        if !in_memory {
            require_database(Path::new(path))
                .map_err(|error| SqlError::File(SyscallError::new(error, "open").at(path)))?;
        }
        let access = if options.read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, options.foreign_keys)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, options.quoted_strings)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, options.quoted_strings)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_BYTES as i32)?;
        connection.set_prepared_statement_cache_capacity(STORED_STATEMENTS);
        let schemas: &[&str] = if in_memory {
            &["main", "temp"]
        } else {
            &["temp"]
        };
        for schema in schemas {
            let limit = format!("PRAGMA {schema}.max_page_count = {MAX_MEMORY_PAGES}");
            connection.query_row(&limit, [], |_| Ok(()))?;
        }
        let deadline = Arc::new(Deadline {
            opened: Instant::now(),
            at: AtomicU64::new(0),
        });
        let shared = Arc::clone(&deadline);
        connection.progress_handler(STEPS_PER_CHECK, Some(move || shared.is_over()))?;
        let refused = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&refused);
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            authorize(&context, in_memory, &noted)
        }))?;
        Ok(Self {
            connection,
            deadline,
            host: host.clone(),
            lock_timeout: Duration::from_secs_f64(options.timeout.clamp(0.0, 3.6e6) / 1000.0),
            refused,
        })
    }

    /// Runs `work` within the time that the script has left.
    fn run<T>(&self, work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
        let left = self.host.time_left();
        self.deadline.set(left);
        self.connection.busy_timeout(self.lock_timeout.min(left))?;
        let result = work();
        self.host.waited();
        let refused = self
            .refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match (result, refused) {
            (Err(SqlError::Sqlite(error)), Some(refused))
                if error.sqlite_error_code()
                    == Some(ErrorCode::AuthorizationForStatementDenied) =>
            {
                Err(SqlError::File(SyscallError::new(refused, "open")))
            }
            (result, _) => result,
        }
    }

    /// Runs all statements of `sql` and drops their rows.
    pub(super) fn execute(&self, sql: &str) -> Result<(), SqlError> {
        self.run(|| {
            let mut batch = rusqlite::Batch::new(&self.connection, sql);
            while let Some(mut statement) = batch.next()? {
                let mut rows = statement.raw_query();
                while rows.next()?.is_some() {}
            }
            Ok(())
        })
    }

    /// Returns `{parameters, columns}` of a statement: names, with `null` for parameters without one.
    pub(super) fn describe(&self, sql: &str) -> Result<String, SqlError> {
        self.run(|| {
            let statement = self.connection.prepare_cached(sql)?;
            let parameters: Vec<Option<&str>> = (1..=statement.parameter_count())
                .map(|at| statement.parameter_name(at))
                .collect();
            let columns: Vec<_> = statement
                .columns()
                .map(|column| json!({ "name": column.name(), "type": column.decl_type() }))
                .collect();
            Ok(json!({ "parameters": parameters, "columns": columns }).to_string())
        })
    }

    /// Returns the first `most` rows. A statement that changes the database runs to its end.
    pub(super) fn query(
        &self,
        sql: &str,
        parameters: &[SqlValue],
        most: usize,
    ) -> Result<Vec<Vec<Cell>>, SqlError> {
        self.run(|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            let count = statement.column_count();
            let reads_only = statement.readonly();
            let mut rows = statement.query(params_from_iter(parameters))?;
            let (mut found, mut size) = (Vec::new(), 0_usize);
            while let Some(row) = rows.next()? {
                if found.len() >= most {
                    if reads_only {
                        break;
                    }
                    continue;
                }
                let mut cells = Vec::with_capacity(count);
                for column in 0..count {
                    let cell: Cell = row.get(column)?;
                    size += CELL_BYTES
                        + match &cell {
                            Cell::Text(text) => text.len(),
                            Cell::Blob(bytes) => bytes.len(),
                            _ => 0,
                        };
                    cells.push(cell);
                }
                if size > MAX_BYTES {
                    return Err(SqlError::TooManyRows);
                }
                found.push(cells);
            }
            Ok(found)
        })
    }

    /// Returns the number of rows that the last statement changed, and the row that was inserted last.
    pub(super) fn changes(&self) -> (i64, i64) {
        let changes = i64::try_from(self.connection.changes()).unwrap_or(i64::MAX);
        (changes, self.connection.last_insert_rowid())
    }

    pub(super) fn expanded(
        &self,
        sql: &str,
        parameters: &[SqlValue],
    ) -> Result<Option<String>, SqlError> {
        self.run(|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            for (at, parameter) in parameters.iter().enumerate() {
                statement.raw_bind_parameter(at + 1, parameter)?;
            }
            Ok(statement.expanded_sql())
        })
    }

    pub(super) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Returns the file of the attached database `name`; `None` for one in memory.
    pub(super) fn location(&self, name: &str) -> Result<Option<String>, SqlError> {
        self.run(|| {
            let mut statement = self.connection.prepare_cached("PRAGMA database_list")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (known, file): (String, Option<String>) = (row.get(1)?, row.get(2)?);
                if known == name {
                    return Ok(file.filter(|file| !file.is_empty()));
                }
            }
            Ok(None)
        })
    }
}

/// Fails for a path that leads to something else than a regular file or nothing.
fn require_database(path: &Path) -> io::Result<()> {
    match pinion_files::locate(path) {
        Ok(target) if FileKind::of(&target.metadata) == FileKind::Regular => Ok(()),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a database must be a regular file",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            pinion_files::reject_process_files(path)
        }
        Err(error) => Err(error),
    }
}

fn authorize(
    context: &AuthContext<'_>,
    in_memory: bool,
    refused: &Mutex<Option<io::Error>>,
) -> Authorization {
    match context.action {
        AuthAction::Attach { filename } => {
            // A further database in memory would have no limit. `VACUUM` attaches one without a name.
            if filename.is_empty() {
                return Authorization::Allow;
            }
            let checked = if filename == ":memory:" {
                Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "a database in memory cannot be attached",
                ))
            } else {
                require_database(Path::new(filename))
            };
            match checked {
                Ok(()) => Authorization::Allow,
                Err(error) => {
                    *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Authorization::Deny
                }
            }
        }
        AuthAction::Pragma {
            pragma_name,
            pragma_value: Some(_),
        } => {
            if DENIED_PRAGMAS.contains(&pragma_name) {
                Authorization::Deny
            } else if in_memory && pragma_name == "page_size" {
                // The limit of a database in memory counts pages.
                Authorization::Ignore
            } else {
                Authorization::Allow
            }
        }
        _ => Authorization::Allow,
    }
}
