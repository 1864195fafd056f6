//! Errors of PostgreSQL, converted to [`HistoryError`].

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Error};

use crate::HistoryError;

/// Returns the server and database of a DSN, without user and password.
pub(super) fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user());
    format!(
        "PostgreSQL at {host}:{port}/{}",
        database.unwrap_or_default()
    )
}

/// Returns the message of an error with all its causes.
pub(super) fn describe(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        let detail = said.detail().map(|detail| format!(" ({detail})"));
        return format!("{}{}", said.message(), detail.unwrap_or_default());
    }
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_words = inner.to_string();
        if !words.contains(&inner_words) {
            words = format!("{words}: {inner_words}");
        }
        source = inner.source();
    }
    words
}

/// Converts the error of an action on an open connection.
pub(super) fn convert(place: &str, action: &'static str, error: &Error) -> HistoryError {
    let place = place.to_owned();
    let detail = describe(error);
    let Some(code) = error.code() else {
        return if error.is_closed()
            || error
                .source()
                .is_some_and(|source| source.is::<std::io::Error>())
        {
            HistoryError::Connect { place, detail }
        } else {
            HistoryError::Database {
                action,
                place,
                detail,
            }
        };
    };
    const AGAIN: [&SqlState; 4] = [
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        &SqlState::LOCK_NOT_AVAILABLE,
        // Two processes created the same table at once.
        &SqlState::UNIQUE_VIOLATION,
    ];
    const GONE: [&SqlState; 4] = [
        &SqlState::ADMIN_SHUTDOWN,
        &SqlState::CRASH_SHUTDOWN,
        &SqlState::CANNOT_CONNECT_NOW,
        &SqlState::TOO_MANY_CONNECTIONS,
    ];
    if AGAIN.contains(&code) {
        let waited = Duration::ZERO;
        return HistoryError::Busy { place, waited };
    }
    if GONE.contains(&code) {
        return HistoryError::Connect { place, detail };
    }
    match *code {
        SqlState::DISK_FULL => HistoryError::Full { place },
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            HistoryError::ReadOnly { place, detail }
        }
        _ => HistoryError::Database {
            action,
            place,
            detail,
        },
    }
}
