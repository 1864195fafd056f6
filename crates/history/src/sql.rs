//! The interface between stores and SQL databases.
//!
//! SQLite and PostgreSQL agree on `INSERT … ON CONFLICT` and, if they first appear in ascending
//! order, on parameters written `$1`; so each statement of a store is written once.

mod location;
mod postgres;
mod sqlite;

pub(crate) use location::{Dsn, Location, SqliteLocation};
use postgres::Postgres;
use sqlite::Sqlite;

use crate::HistoryError;

/// The permission to create and change a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The database is created if it is missing and upgraded if it is old.
    ReadWrite,
    /// The database is never created and never changed.
    ReadOnly,
}

/// A parameter of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arg<'a> {
    Text(&'a str),
    Int(i64),
    Bytes(&'a [u8]),
    Null,
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
    Null,
}

/// A row of a result.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    /// Takes the text of a column; empty if there is none.
    pub(crate) fn text(&mut self, column: usize) -> String {
        self.optional_text(column).unwrap_or_default()
    }

    /// Takes the text of a column, if there is one.
    pub(crate) fn optional_text(&mut self, column: usize) -> Option<String> {
        match std::mem::replace(self.0.get_mut(column)?, Cell::Null) {
            Cell::Text(text) => Some(text),
            Cell::Int(number) => Some(number.to_string()),
            Cell::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Cell::Null => None,
        }
    }

    /// Returns the number in a column, if there is one.
    pub(crate) fn optional_int(&self, column: usize) -> Option<i64> {
        match self.0.get(column)? {
            Cell::Int(number) => Some(*number),
            Cell::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the number in a column; 0 if there is none.
    pub(crate) fn int(&self, column: usize) -> i64 {
        self.optional_int(column).unwrap_or(0)
    }

    /// Takes the bytes of a column, if there are any.
    pub(crate) fn optional_bytes(&mut self, column: usize) -> Option<Vec<u8>> {
        match std::mem::replace(self.0.get_mut(column)?, Cell::Null) {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Text(text) => Some(text.into_bytes()),
            _ => None,
        }
    }
}

/// The statements of a transaction.
pub(crate) trait Statements {
    /// Runs a statement for each `width` parameters; returns the number of changed rows.
    fn execute_each(
        &mut self,
        sql: &'static str,
        width: usize,
        args: &[Arg<'_>],
    ) -> Result<u64, HistoryError>;

    /// Runs a statement once; returns the number of changed rows.
    fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, HistoryError> {
        self.execute_each(sql, args.len(), args)
    }

    /// Returns the rows of a query.
    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError>;
}

/// The body of a transaction; it runs again after a conflict with other writers.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut dyn Statements) -> Result<(), HistoryError>;

/// An open database.
pub(crate) trait Database: Send + std::fmt::Debug {
    /// Runs a read transaction on one state of the database.
    fn read(&mut self, work: Work<'_>) -> Result<(), HistoryError>;

    /// Runs a write transaction, all or nothing.
    fn write(&mut self, work: Work<'_>) -> Result<(), HistoryError>;

    /// Returns the problems that the database itself reports; empty if there are none.
    fn problems(&mut self) -> Result<Vec<String>, HistoryError>;
}

/// Opens a database and upgrades it to `schema`; read-only access changes nothing.
pub(crate) fn open(
    location: Location,
    schema: Schema,
    access: Access,
) -> Result<Box<dyn Database>, HistoryError> {
    Ok(match location {
        Location::Sqlite(location) => Box::new(Sqlite::open(location, schema, access)?),
        Location::Postgres(dsn) => Box::new(Postgres::open(&dsn, schema, access)?),
    })
}

/// The tables of a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    /// The name under which PostgreSQL stores the version.
    pub(crate) component: &'static str,
    /// Statements for SQLite, each with the table or index it creates.
    pub(crate) sqlite: &'static [(&'static str, &'static str)],
    /// Statements for PostgreSQL.
    pub(crate) postgres: &'static [&'static str],
    /// Upgrades an older SQLite file before the statements run. Depending on [`Upgrade`] it only
    /// reports whether that is needed.
    pub(crate) upgrade: fn(&rusqlite::Connection, Upgrade) -> rusqlite::Result<bool>,
    /// `PRAGMA user_version`, if the store uses it.
    pub(crate) user_version: Option<i64>,
    /// The version of the tables in PostgreSQL.
    pub(crate) postgres_version: i64,
    /// Tables whose primary key must be as given, because the statements rely on it.
    pub(crate) keys: &'static [(&'static str, &'static [&'static str])],
}

/// The mode of an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// Only report whether it is needed.
    Ask,
    Do,
}
