//! The tables of timelines.

use rusqlite::Connection;

use crate::sql::{Schema, Upgrade};

/// The schema of the original program's files and of pinion's.
pub(super) const SCHEMA: Schema = Schema {
    component: "timeline",
    sqlite: SQLITE,
    postgres: POSTGRES,
    upgrade,
    user_version: Some(2),
    postgres_version: 1,
    keys: &[
        ("sessionstream_sessions", &["session_id"]),
        ("sessionstream_events", &["session_id", "ordinal"]),
        (
            "sessionstream_entities",
            &["session_id", "kind", "entity_id"],
        ),
        (
            "sessionstream_entity_versions",
            &["session_id", "kind", "entity_id", "ordinal"],
        ),
        (
            "sessionstream_projection_cursors",
            &["projector", "session_id"],
        ),
        ("sessionstream_errors", &["id"]),
    ],
};

const SQLITE: &[(&str, &str)] = &[
    (
        "sessionstream_sessions",
        "CREATE TABLE IF NOT EXISTS sessionstream_sessions (
            session_id TEXT PRIMARY KEY,
            snapshot_ordinal INTEGER NOT NULL DEFAULT 0
        )",
    ),
    (
        "sessionstream_events",
        "CREATE TABLE IF NOT EXISTS sessionstream_events (
            session_id TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            name TEXT NOT NULL,
            payload_json TEXT NOT NULL,
            created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
            PRIMARY KEY (session_id, ordinal)
        )",
    ),
    (
        "sessionstream_entities",
        "CREATE TABLE IF NOT EXISTS sessionstream_entities (
            session_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            entity_id TEXT NOT NULL,
            created_ordinal INTEGER NOT NULL,
            last_event_ordinal INTEGER NOT NULL,
            payload_json TEXT NOT NULL,
            PRIMARY KEY (session_id, kind, entity_id)
        )",
    ),
    (
        "sessionstream_entity_versions",
        "CREATE TABLE IF NOT EXISTS sessionstream_entity_versions (
            session_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            entity_id TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            created_ordinal INTEGER NOT NULL,
            last_event_ordinal INTEGER NOT NULL,
            tombstone INTEGER NOT NULL DEFAULT 0,
            payload_json TEXT NOT NULL,
            PRIMARY KEY (session_id, kind, entity_id, ordinal)
        )",
    ),
    (
        "sessionstream_projection_cursors",
        "CREATE TABLE IF NOT EXISTS sessionstream_projection_cursors (
            projector TEXT NOT NULL,
            session_id TEXT NOT NULL,
            cursor INTEGER NOT NULL DEFAULT 0,
            updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
            PRIMARY KEY (projector, session_id)
        )",
    ),
    (
        "sessionstream_errors",
        "CREATE TABLE IF NOT EXISTS sessionstream_errors (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
            kind TEXT NOT NULL,
            session_id TEXT,
            ordinal INTEGER,
            event_name TEXT,
            error TEXT NOT NULL,
            raw_message BLOB,
            metadata_json TEXT NOT NULL DEFAULT '{}'
        )",
    ),
    (
        "sessionstream_events_by_session",
        "CREATE INDEX IF NOT EXISTS sessionstream_events_by_session ON sessionstream_events (session_id, ordinal)",
    ),
    (
        "sessionstream_entities_by_session",
        "CREATE INDEX IF NOT EXISTS sessionstream_entities_by_session ON sessionstream_entities (session_id, created_ordinal, last_event_ordinal)",
    ),
    (
        "sessionstream_entity_versions_by_session",
        "CREATE INDEX IF NOT EXISTS sessionstream_entity_versions_by_session ON sessionstream_entity_versions (session_id, ordinal)",
    ),
    (
        "sessionstream_entity_versions_ordering",
        "CREATE INDEX IF NOT EXISTS sessionstream_entity_versions_ordering ON sessionstream_entity_versions (session_id, created_ordinal, last_event_ordinal)",
    ),
    (
        "sessionstream_projection_cursors_by_session",
        "CREATE INDEX IF NOT EXISTS sessionstream_projection_cursors_by_session ON sessionstream_projection_cursors (session_id, cursor)",
    ),
    (
        "sessionstream_errors_by_session",
        "CREATE INDEX IF NOT EXISTS sessionstream_errors_by_session ON sessionstream_errors (session_id, ordinal)",
    ),
];

/// Without the index that repeats a primary key.
const POSTGRES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS sessionstream_sessions (
        session_id TEXT PRIMARY KEY,
        snapshot_ordinal BIGINT NOT NULL DEFAULT 0
    )",
    "CREATE TABLE IF NOT EXISTS sessionstream_events (
        session_id TEXT NOT NULL,
        ordinal BIGINT NOT NULL,
        name TEXT NOT NULL,
        payload_json TEXT NOT NULL,
        created_at TEXT NOT NULL DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
        PRIMARY KEY (session_id, ordinal)
    )",
    "CREATE TABLE IF NOT EXISTS sessionstream_entities (
        session_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        entity_id TEXT NOT NULL,
        created_ordinal BIGINT NOT NULL,
        last_event_ordinal BIGINT NOT NULL,
        payload_json TEXT NOT NULL,
        PRIMARY KEY (session_id, kind, entity_id)
    )",
    "CREATE TABLE IF NOT EXISTS sessionstream_entity_versions (
        session_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        entity_id TEXT NOT NULL,
        ordinal BIGINT NOT NULL,
        created_ordinal BIGINT NOT NULL,
        last_event_ordinal BIGINT NOT NULL,
        tombstone BIGINT NOT NULL DEFAULT 0,
        payload_json TEXT NOT NULL,
        PRIMARY KEY (session_id, kind, entity_id, ordinal)
    )",
    "CREATE TABLE IF NOT EXISTS sessionstream_projection_cursors (
        projector TEXT NOT NULL,
        session_id TEXT NOT NULL,
        cursor BIGINT NOT NULL DEFAULT 0,
        updated_at TEXT NOT NULL DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
        PRIMARY KEY (projector, session_id)
    )",
    "CREATE TABLE IF NOT EXISTS sessionstream_errors (
        id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
        created_at TEXT NOT NULL DEFAULT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),
        kind TEXT NOT NULL,
        session_id TEXT,
        ordinal BIGINT,
        event_name TEXT,
        error TEXT NOT NULL,
        raw_message BYTEA,
        metadata_json TEXT NOT NULL DEFAULT '{}'
    )",
    "CREATE INDEX IF NOT EXISTS sessionstream_entities_by_session ON sessionstream_entities (session_id, created_ordinal, last_event_ordinal)",
    "CREATE INDEX IF NOT EXISTS sessionstream_entity_versions_by_session ON sessionstream_entity_versions (session_id, ordinal)",
    "CREATE INDEX IF NOT EXISTS sessionstream_entity_versions_ordering ON sessionstream_entity_versions (session_id, created_ordinal, last_event_ordinal)",
    "CREATE INDEX IF NOT EXISTS sessionstream_projection_cursors_by_session ON sessionstream_projection_cursors (session_id, cursor)",
    "CREATE INDEX IF NOT EXISTS sessionstream_errors_by_session ON sessionstream_errors (session_id, ordinal)",
];

/// Adds two columns to the table of errors in older files; the version is set last.
fn upgrade(connection: &Connection, upgrade: Upgrade) -> rusqlite::Result<bool> {
    let columns = columns(connection, "sessionstream_errors")?;
    let lacks = |name: &str| !columns.is_empty() && !columns.iter().any(|column| column == name);
    let (raw, metadata) = (lacks("raw_message"), lacks("metadata_json"));
    if upgrade == Upgrade::Do {
        if raw {
            connection
                .execute_batch("ALTER TABLE sessionstream_errors ADD COLUMN raw_message BLOB")?;
        }
        if metadata {
            connection.execute_batch(
                "ALTER TABLE sessionstream_errors ADD COLUMN metadata_json TEXT NOT NULL DEFAULT '{}'",
            )?;
        }
    }
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(raw || metadata || version < 2)
}

/// Returns the columns of a table; none if it does not exist.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    names.collect()
}
