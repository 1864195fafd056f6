//! A SQLite database: checked before it is opened, written in short transactions, with bounded
//! waits for locks.

mod errors;
mod open;

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};

use super::{Access, Arg, Cell, Database, Row, Schema, SqliteLocation, Statements, Work};
use crate::HistoryError;

/// The number of busy timeouts before a wait ends: 30 seconds with the default timeout.
const MAX_BUSY_TIMEOUTS: u32 = 6;
/// The pause between two attempts if SQLite itself did not wait.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The most prepared statements in the cache.
const MAX_PREPARED: usize = 32;

/// A [`Database`] in a SQLite file or in memory.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
    location: SqliteLocation,
    schema: Schema,
    access: Access,
    sharing: Sharing,
}

/// The presence of other connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Shared,
    /// No other process has it open, and reading it leaves no files behind.
    Alone,
}

impl Sqlite {
    /// Opens a database and upgrades it to `schema`; read-only access changes nothing.
    pub(crate) fn open(
        location: SqliteLocation,
        schema: Schema,
        access: Access,
    ) -> Result<Self, HistoryError> {
        open::open(location, schema, access)
    }

    fn lock_timeout(&self) -> Duration {
        self.location.busy_timeout * MAX_BUSY_TIMEOUTS
    }

    fn attempt(
        &mut self,
        behavior: TransactionBehavior,
        work: Work<'_>,
    ) -> Result<(), HistoryError> {
        let place = &self.location;
        let failed = |action| move |error| errors::convert(place, action, error);
        let transaction = self
            .connection
            .transaction_with_behavior(behavior)
            .map_err(failed("begin writing to"))?;
        work(&mut InTransaction {
            connection: &transaction,
            location: &self.location,
        })?;
        transaction.commit().map_err(failed("write to"))
    }

    /// Retries until it succeeds, fails for another reason, or the time limit passes.
    fn transact(
        &mut self,
        behavior: TransactionBehavior,
        work: Work<'_>,
    ) -> Result<(), HistoryError> {
        let timeout = self.lock_timeout();
        retry_while_locked(timeout, || self.attempt(behavior, work))
    }

    /// Reports whether another process began to write although this one had found itself alone.
    fn has_new_writer(&self) -> bool {
        self.sharing == Sharing::Alone && open::log_is_there(&self.location)
    }
}

/// Retries an action while the database is locked.
fn retry_while_locked<T>(
    timeout: Duration,
    mut work: impl FnMut() -> Result<T, HistoryError>,
) -> Result<T, HistoryError> {
    let started = Instant::now();
    loop {
        match work() {
            Err(HistoryError::Busy { place, .. }) => {
                let waited = started.elapsed();
                if waited >= timeout {
                    return Err(HistoryError::Busy { place, waited });
                }
                thread::sleep(RETRY_INTERVAL);
            }
            other => return other,
        }
    }
}

impl Database for Sqlite {
    fn read(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        let read = self.transact(TransactionBehavior::Deferred, work);
        if !self.has_new_writer() {
            return read;
        }
        // Pages may have changed during the read: read again, now as one of several processes.
        let reopened = open::shared(self.location.clone(), self.schema)?;
        *self = reopened;
        self.transact(TransactionBehavior::Deferred, work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        if self.access == Access::ReadOnly {
            return Err(HistoryError::ReadOnly {
                place: self.location.place(),
                detail: "it was opened for reading".to_owned(),
            });
        }
        // The lock is taken at once: a reader that becomes a writer may find its snapshot out of
        // date.
        self.transact(TransactionBehavior::Immediate, work)
    }

    fn problems(&mut self) -> Result<Vec<String>, HistoryError> {
        open::problems(&self.connection, &self.location)
    }
}

struct InTransaction<'a> {
    connection: &'a Connection,
    location: &'a SqliteLocation,
}

impl InTransaction<'_> {
    fn failed(&self, action: &'static str) -> impl Fn(rusqlite::Error) -> HistoryError {
        move |error| errors::convert(self.location, action, error)
    }
}

impl Statements for InTransaction<'_> {
    fn execute_each(
        &mut self,
        sql: &'static str,
        width: usize,
        args: &[Arg<'_>],
    ) -> Result<u64, HistoryError> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            if width == 0 {
                return statement.execute([]).map(|changed| changed as u64);
            }
            let mut changed = 0;
            for row in args.chunks_exact(width) {
                changed += statement.execute(params_from_iter(row))? as u64;
            }
            Ok(changed)
        };
        run().map_err(self.failed("write to"))
    }

    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError> {
        let run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let width = statement.column_count();
            let rows = statement.query_map(params_from_iter(args), |row| {
                let cells = (0..width).map(|column| row.get_ref(column).map(cell));
                cells.collect::<rusqlite::Result<_>>().map(Row)
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        run().map_err(self.failed("read"))
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Real(number) => Cell::Text(number.to_string()),
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Arg::Text(text) => ValueRef::Text(text.as_bytes()),
            Arg::Int(number) => ValueRef::Integer(*number),
            Arg::Bytes(bytes) => ValueRef::Blob(bytes),
            Arg::Null => ValueRef::Null,
        }))
    }
}
