//! Registries in a database, one JSON text per row. Access is read-only.

use std::path::Path;

use pinion_yaml::{Node, Problem};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use serde_json::Value;

use crate::check::Findings;
use crate::error::{Notice, ProfileError};
use crate::profile::ProfileFormat;
use crate::registry::{self, Registry};
use crate::slug::Slug;
use crate::source::Source;

const ROWS: &str = "SELECT slug, payload_json FROM profile_registries ORDER BY slug";
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Reads the registries of a database, sorted by name.
pub(crate) fn read(
    file: &Path,
    shown: &Path,
    source: &Source,
    notices: &mut Vec<Notice>,
) -> Result<Vec<Registry>, ProfileError> {
    let unreadable = |reason: String| ProfileError::Unreadable {
        what: "registry database",
        path: shown.to_owned(),
        reason,
    };
    if matches!(source, Source::Sqlite(_)) {
        pinion_files::is_regular(file).map_err(|error| unreadable(error.to_string()))?;
    }
    let rows = rows(file, source).map_err(|error| unreadable(explain(&error)))?;
    let mut registries = Vec::with_capacity(rows.len());
    for (slug, payload) in rows {
        registries.push(row(&slug, &payload, source, notices)?);
    }
    Ok(registries)
}

/// Explains an error of SQLite in plain words.
fn explain(error: &rusqlite::Error) -> String {
    let plain = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database",
        Some(ErrorCode::DatabaseCorrupt) => "it is damaged",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process uses it; try again"
        }
        Some(ErrorCode::CannotOpen) => "there is no such file, or it cannot be opened",
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            "you are not permitted to read it"
        }
        Some(ErrorCode::SystemIoFailure) => "the disk reported an error",
        _ if error.to_string().contains("no such table") => {
            "it has no table \"profile_registries\", so it is not a registry of profiles"
        }
        _ => {
            "its table \"profile_registries\" does not have the texts \"slug\" and \"payload_json\""
        }
    };
    plain.to_owned()
}

fn rows(file: &Path, source: &Source) -> rusqlite::Result<Vec<(String, String)>> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if matches!(source, Source::SqliteDsn(_)) {
        flags |= OpenFlags::SQLITE_OPEN_URI;
    }
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let mut statement = connection.prepare(ROWS)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn row(
    slug: &str,
    payload: &str,
    source: &Source,
    notices: &mut Vec<Notice>,
) -> Result<Registry, ProfileError> {
    let origin = format!("{source} (row {slug})");
    let named = Slug::new(slug).ok_or_else(|| ProfileError::Slug {
        origin: source.to_string(),
        what: "registry",
        text: slug.to_owned(),
    })?;
    let value: Value = serde_json::from_str(payload).map_err(|error| ProfileError::Registry {
        origin: origin.clone(),
        problems: vec![Problem {
            line: error.line() as u64,
            column: error.column() as u64,
            message: "payload_json is not valid JSON".to_owned(),
        }],
    })?;
    let mut findings = Findings::default();
    let node = Node::from_value(&value);
    let read = registry::read(
        &node,
        Some(&named),
        ProfileFormat::SqliteRegistry,
        &origin,
        &mut findings,
    );
    registry::finish(read, findings, &origin, notices)
}
