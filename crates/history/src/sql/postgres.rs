//! A PostgreSQL server, spoken to on a thread of its own.
//!
//! The thread has the runtime and the connection; whoever calls waits for its answers. So a store can be used from
//! any thread, also from one that runs async code. Statements of one kind travel together, not one by one.

mod errors;
mod line;
mod tls;
mod values;

use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::Config;

use self::line::{Line, Request};
use self::tls::Encryption;
use self::values::owned;
use super::{Access, Arg, Database, Dsn, Row, Schema, Statements, Work};
use crate::HistoryError;

/// How long a server may take to accept us, unless the DSN says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a change is tried again when others are in the way or the server restarts.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// Schemas are made by one process at a time: the lock all of them take.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305808869231650104)";

const VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS pinion_schema_version (
        component TEXT PRIMARY KEY,
        schema_version BIGINT NOT NULL
    )";

const KNOWN_TABLE: &str = "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)";

const VERSION: &str = "SELECT schema_version FROM pinion_schema_version WHERE component = $1";

const SET_VERSION: &str =
    "INSERT INTO pinion_schema_version (component, schema_version) VALUES ($1, $2)";

/// A [`Database`] on a server.
#[derive(Debug)]
pub(crate) struct Postgres {
    line: Line,
    place: String,
}

impl Postgres {
    /// Connects and brings the tables to `schema`; reading leaves them as they are.
    pub(crate) fn open(dsn: &Dsn, schema: Schema, access: Access) -> Result<Self, HistoryError> {
        let (known, roots) = tls::settle(&dsn.0);
        let mut config: Config = known.parse().map_err(|error| {
            HistoryError::Options(format!(
                "the PostgreSQL DSN cannot be read: {}",
                errors::words(&error)
            ))
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("pinion");
        }
        let place = errors::place(&config);
        let encryption = Encryption::of(&config, roots);
        let line = Line::start(config, encryption, access, place.clone())?;
        let mut postgres = Self { line, place };
        postgres.agree(&schema, access)?;
        Ok(postgres)
    }

    /// Tables as the store wants them: made, or refused.
    fn agree(&mut self, schema: &Schema, access: Access) -> Result<(), HistoryError> {
        let mut found = Found::Nothing;
        self.read(&mut |statements| {
            found = look(statements, schema)?;
            Ok(())
        })?;
        match (found, access) {
            (Found::Version(version), _) if version == schema.postgres_version => Ok(()),
            (Found::Nothing, Access::ReadWrite) => self.prepare(schema),
            (found, _) => Err(self.refused(schema, found)),
        }
    }

    fn prepare(&mut self, schema: &Schema) -> Result<(), HistoryError> {
        let mut refused = None;
        self.write(&mut |statements| {
            refused = None;
            statements.query(LOCK, &[])?;
            // Another process may have been first.
            match look(statements, schema)? {
                Found::Nothing => {}
                Found::Version(version) if version == schema.postgres_version => return Ok(()),
                found => {
                    refused = Some(found);
                    return Ok(());
                }
            }
            statements.execute(VERSIONS, &[])?;
            for statement in schema.postgres {
                statements.execute(statement, &[])?;
            }
            let version = Arg::Int(schema.postgres_version);
            statements.execute(SET_VERSION, &[Arg::Text(schema.component), version])?;
            Ok(())
        })?;
        match refused {
            Some(found) => Err(self.refused(schema, found)),
            None => Ok(()),
        }
    }

    fn refused(&self, schema: &Schema, found: Found) -> HistoryError {
        let component = schema.component;
        let detail = match found {
            Found::Nothing => {
                format!("there are no {component} in it; is this the right database?")
            }
            Found::Strange(table) => format!(
                "it has a table {table} that pinion did not make; use another database or schema"
            ),
            Found::Version(version) => format!(
                "its {component} tables have version {version} and this program knows {}; use the program that made them, or another database",
                schema.postgres_version
            ),
        };
        HistoryError::Schema {
            place: self.place.clone(),
            detail,
        }
    }

    fn attempt(&mut self, begin: &'static str, work: Work<'_>) -> Result<(), HistoryError> {
        self.line.batch(begin)?;
        let worked = work(&mut Within { line: &self.line });
        match worked {
            Ok(()) => self.line.batch("COMMIT"),
            Err(error) => {
                // The first error is the one to tell.
                let _ = self.line.batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Every change can be made twice, so a connection lost at its end is no reason to give up.
    fn transact(&mut self, begin: &'static str, work: Work<'_>) -> Result<(), HistoryError> {
        let started = Instant::now();
        loop {
            match self.attempt(begin, work) {
                Err(HistoryError::Busy { place, .. }) if started.elapsed() >= PATIENCE => {
                    let waited = started.elapsed();
                    return Err(HistoryError::Busy { place, waited });
                }
                Err(HistoryError::Busy { .. }) => thread::sleep(PAUSE),
                Err(HistoryError::Connect { .. }) if started.elapsed() < PATIENCE => {
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }
}

/// What is on the server of a schema.
#[derive(Debug, Clone, Copy)]
enum Found {
    Nothing,
    /// A table of the name of one of ours.
    Strange(&'static str),
    Version(i64),
}

fn look(statements: &mut dyn Statements, schema: &Schema) -> Result<Found, HistoryError> {
    let mut there = |table: &str| -> Result<bool, HistoryError> {
        let rows = statements.query(KNOWN_TABLE, &[Arg::Text(table)])?;
        Ok(rows.first().is_some_and(|row| row.int(0) > 0))
    };
    let versioned = there("pinion_schema_version")?;
    let mut strange = None;
    for (table, _) in schema.keys {
        if there(table)? {
            strange = Some(*table);
            break;
        }
    }
    if versioned {
        let rows = statements.query(VERSION, &[Arg::Text(schema.component)])?;
        if let Some(row) = rows.first() {
            return Ok(Found::Version(row.int(0)));
        }
    }
    Ok(strange.map_or(Found::Nothing, Found::Strange))
}

impl Database for Postgres {
    fn read(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        self.transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        self.transact("BEGIN", work)
    }

    fn problems(&mut self) -> Result<Vec<String>, HistoryError> {
        // A server looks after its own files; that the tables are there was seen on the way in.
        Ok(Vec::new())
    }
}

/// A transaction.
struct Within<'a> {
    line: &'a Line,
}

impl Statements for Within<'_> {
    fn execute_each(
        &mut self,
        sql: &'static str,
        width: usize,
        args: &[Arg<'_>],
    ) -> Result<u64, HistoryError> {
        let rows = match width {
            0 => vec![Vec::new()],
            width => args.chunks_exact(width).map(owned).collect(),
        };
        if rows.is_empty() {
            return Ok(0);
        }
        let answer = self
            .line
            .ask(|reply| Request::Execute { sql, rows, reply })?;
        Ok(answer)
    }

    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError> {
        let args = owned(args);
        self.line.ask(|reply| Request::Query { sql, args, reply })
    }
}
