//! A PostgreSQL server, used from its own thread.
//!
//! The thread owns the runtime and the connection; callers wait for its answers. A store can
//! therefore be used from any thread, also from one that runs async code. Statements of one kind
//! are sent together, not one by one.

mod channel;
mod errors;
mod tls;
mod values;

use std::thread;
use std::time::{Duration, Instant};

use tokio_postgres::Config;

use self::channel::{Channel, Request};
use self::tls::Encryption;
use self::values::owned;
use super::{Access, Arg, Database, Dsn, Row, Schema, Statements, Work};
use crate::HistoryError;

/// The default time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time for retrying a change after conflicts with other writers or during a restart of
/// the server.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The lock that every process takes to create schemas, so that only one does it at a time.
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
    channel: Channel,
    place: String,
}

impl Postgres {
    /// Connects and upgrades the tables to `schema`; read-only access changes nothing.
    pub(crate) fn open(dsn: &Dsn, schema: Schema, access: Access) -> Result<Self, HistoryError> {
        let (known, roots) = tls::take_tls_settings(&dsn.0);
        let mut config: Config = known.parse().map_err(|error| {
            HistoryError::Options(format!(
                "the PostgreSQL DSN cannot be read: {}",
                errors::describe(&error)
            ))
        })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("pinion");
        }
        let place = errors::place(&config);
        let encryption = Encryption::of(&config, roots);
        let channel = Channel::start(config, encryption, access, place.clone())?;
        let mut postgres = Self { channel, place };
        postgres.ensure_schema(&schema, access)?;
        Ok(postgres)
    }

    /// Creates the tables, or fails if others of their names exist.
    fn ensure_schema(&mut self, schema: &Schema, access: Access) -> Result<(), HistoryError> {
        let mut found = SchemaState::Nothing;
        self.read(&mut |statements| {
            found = inspect(statements, schema)?;
            Ok(())
        })?;
        match (found, access) {
            (SchemaState::Version(version), _) if version == schema.postgres_version => Ok(()),
            (SchemaState::Nothing, Access::ReadWrite) => self.prepare(schema),
            (found, _) => Err(self.refused(schema, found)),
        }
    }

    fn prepare(&mut self, schema: &Schema) -> Result<(), HistoryError> {
        let mut refused = None;
        self.write(&mut |statements| {
            refused = None;
            statements.query(LOCK, &[])?;
            // Another process may have created them.
            match inspect(statements, schema)? {
                SchemaState::Nothing => {}
                SchemaState::Version(version) if version == schema.postgres_version => {
                    return Ok(());
                }
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

    fn refused(&self, schema: &Schema, found: SchemaState) -> HistoryError {
        let component = schema.component;
        let detail = match found {
            SchemaState::Nothing => {
                format!("there are no {component} in it; is this the right database?")
            }
            SchemaState::Strange(table) => format!(
                "it has a table {table} that pinion did not make; use another database or schema"
            ),
            SchemaState::Version(version) => format!(
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
        self.channel.batch(begin)?;
        let worked = work(&mut InTransaction {
            channel: &self.channel,
        });
        match worked {
            Ok(()) => self.channel.batch("COMMIT"),
            Err(error) => {
                // The first error is the one to report.
                let _ = self.channel.batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Every change can be repeated, so it is retried after the connection was lost at its end.
    fn transact(&mut self, begin: &'static str, work: Work<'_>) -> Result<(), HistoryError> {
        let started = Instant::now();
        loop {
            match self.attempt(begin, work) {
                Err(HistoryError::Busy { place, .. }) if started.elapsed() >= RETRY_TIMEOUT => {
                    let waited = started.elapsed();
                    return Err(HistoryError::Busy { place, waited });
                }
                Err(HistoryError::Busy { .. }) => thread::sleep(RETRY_INTERVAL),
                Err(HistoryError::Connect { .. }) if started.elapsed() < RETRY_TIMEOUT => {
                    thread::sleep(RETRY_INTERVAL);
                }
                other => return other,
            }
        }
    }
}

/// The state of a schema on the server.
#[derive(Debug, Clone, Copy)]
enum SchemaState {
    Nothing,
    /// A foreign table with the name of one of the store's.
    Strange(&'static str),
    Version(i64),
}

fn inspect(statements: &mut dyn Statements, schema: &Schema) -> Result<SchemaState, HistoryError> {
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
            return Ok(SchemaState::Version(row.int(0)));
        }
    }
    Ok(strange.map_or(SchemaState::Nothing, SchemaState::Strange))
}

impl Database for Postgres {
    fn read(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        self.transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work)
    }

    fn write(&mut self, work: Work<'_>) -> Result<(), HistoryError> {
        self.transact("BEGIN", work)
    }

    fn problems(&mut self) -> Result<Vec<String>, HistoryError> {
        // A server checks its own files; opening has checked that the tables exist.
        Ok(Vec::new())
    }
}

struct InTransaction<'a> {
    channel: &'a Channel,
}

impl Statements for InTransaction<'_> {
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
            .channel
            .request(|reply| Request::Execute { sql, rows, reply })?;
        Ok(answer)
    }

    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError> {
        let args = owned(args);
        self.channel
            .request(|reply| Request::Query { sql, args, reply })
    }
}
