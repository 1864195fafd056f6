//! What a store needs of a SQL database, and what a database needs to know of SQL.
//!
//! SQLite and PostgreSQL agree on `INSERT … ON CONFLICT` and, if they first appear in ascending order, on
//! parameters written `$1`; so each statement of a store is written once.

mod location;
mod postgres;
mod sqlite;

pub(crate) use location::{Dsn, Location, SqliteLocation};
use postgres::Postgres;
use sqlite::Sqlite;

use crate::HistoryError;

/// Whether a database may be changed and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Made if it is missing, upgraded if it is old.
    ReadWrite,
    /// Never made and never changed.
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

/// A row of an answer.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

impl Row {
    /// The text in a column; empty if there is none.
    pub(crate) fn text(&mut self, column: usize) -> String {
        self.optional_text(column).unwrap_or_default()
    }

    /// The text in a column, if there is one. It is taken out.
    pub(crate) fn optional_text(&mut self, column: usize) -> Option<String> {
        match std::mem::replace(self.0.get_mut(column)?, Cell::Null) {
            Cell::Text(text) => Some(text),
            Cell::Int(number) => Some(number.to_string()),
            Cell::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Cell::Null => None,
        }
    }

    /// The number in a column, if there is one.
    pub(crate) fn optional_int(&self, column: usize) -> Option<i64> {
        match self.0.get(column)? {
            Cell::Int(number) => Some(*number),
            Cell::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The number in a column; 0 if there is none.
    pub(crate) fn int(&self, column: usize) -> i64 {
        self.optional_int(column).unwrap_or(0)
    }

    /// The bytes in a column, if there are any. They are taken out.
    pub(crate) fn optional_bytes(&mut self, column: usize) -> Option<Vec<u8>> {
        match std::mem::replace(self.0.get_mut(column)?, Cell::Null) {
            Cell::Bytes(bytes) => Some(bytes),
            Cell::Text(text) => Some(text.into_bytes()),
            _ => None,
        }
    }
}

/// What can be said within a transaction.
pub(crate) trait Statements {
    /// Runs a statement for each `width` parameters; the number of rows changed.
    fn execute_each(
        &mut self,
        sql: &'static str,
        width: usize,
        args: &[Arg<'_>],
    ) -> Result<u64, HistoryError>;

    /// Runs a statement once; the number of rows changed.
    fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, HistoryError> {
        self.execute_each(sql, args.len(), args)
    }

    /// Asks for rows.
    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError>;
}

/// Something to do within a transaction; it may be done again when others were in the way.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut dyn Statements) -> Result<(), HistoryError>;

/// A database that is open.
pub(crate) trait Database: Send + std::fmt::Debug {
    /// Reads one state of the database.
    fn read(&mut self, work: Work<'_>) -> Result<(), HistoryError>;

    /// Changes the database, all or nothing.
    fn write(&mut self, work: Work<'_>) -> Result<(), HistoryError>;

    /// What is wrong with the database, in its own words; nothing if all is well.
    fn problems(&mut self) -> Result<Vec<String>, HistoryError>;
}

/// Opens a database and brings it to `schema`; reading leaves it as it is.
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

/// What a store keeps in a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema {
    /// Its name where versions are kept by name.
    pub(crate) component: &'static str,
    /// Statements for SQLite, each with the table or index it makes.
    pub(crate) sqlite: &'static [(&'static str, &'static str)],
    /// Statements for PostgreSQL.
    pub(crate) postgres: &'static [&'static str],
    /// Brings an older SQLite file up to date; runs before the statements. Says whether it is needed, or does it.
    pub(crate) upgrade: fn(&rusqlite::Connection, Upgrade) -> rusqlite::Result<bool>,
    /// `PRAGMA user_version`, where the store uses it.
    pub(crate) user_version: Option<i64>,
    /// The version of the tables in PostgreSQL.
    pub(crate) postgres_version: i64,
    /// Tables whose primary key must be as given for statements to work.
    pub(crate) keys: &'static [(&'static str, &'static [&'static str])],
}

/// What to do about an older file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// Only say whether it is needed.
    Ask,
    /// Do it.
    Do,
}
