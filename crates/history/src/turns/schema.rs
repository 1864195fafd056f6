//! The tables of turns.

use rusqlite::Connection;

use crate::sql::{Schema, Upgrade};

/// The schema of the original program's files and of pinion's.
pub(super) const SCHEMA: Schema = Schema {
    component: "turns",
    sqlite: SQLITE,
    postgres: POSTGRES,
    upgrade,
    user_version: None,
    postgres_version: 1,
    keys: &[
        ("turns", &["conv_id", "session_id", "turn_id"]),
        ("blocks", &["block_id", "content_hash"]),
        (
            "turn_block_membership",
            &[
                "conv_id",
                "session_id",
                "turn_id",
                "phase",
                "snapshot_created_at_ms",
                "ordinal",
            ],
        ),
    ],
};

const SQLITE: &[(&str, &str)] = &[
    (
        "turns",
        "CREATE TABLE IF NOT EXISTS turns (
            conv_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            turn_id TEXT NOT NULL,
            turn_created_at_ms INTEGER NOT NULL,
            turn_metadata_json TEXT NOT NULL DEFAULT '{}',
            turn_data_json TEXT NOT NULL DEFAULT '{}',
            runtime_key TEXT NOT NULL DEFAULT '',
            inference_id TEXT NOT NULL DEFAULT '',
            updated_at_ms INTEGER NOT NULL,
            PRIMARY KEY (conv_id, session_id, turn_id)
        )",
    ),
    (
        "blocks",
        "CREATE TABLE IF NOT EXISTS blocks (
            block_id TEXT NOT NULL,
            content_hash TEXT NOT NULL,
            hash_algorithm TEXT NOT NULL DEFAULT 'sha256-canonical-json-v1',
            kind TEXT NOT NULL,
            role TEXT NOT NULL DEFAULT '',
            payload_json TEXT NOT NULL DEFAULT '{}',
            block_metadata_json TEXT NOT NULL DEFAULT '{}',
            first_seen_at_ms INTEGER NOT NULL,
            PRIMARY KEY (block_id, content_hash)
        )",
    ),
    (
        "turn_block_membership",
        "CREATE TABLE IF NOT EXISTS turn_block_membership (
            conv_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            turn_id TEXT NOT NULL,
            phase TEXT NOT NULL,
            snapshot_created_at_ms INTEGER NOT NULL,
            ordinal INTEGER NOT NULL,
            block_id TEXT NOT NULL,
            content_hash TEXT NOT NULL,
            PRIMARY KEY (conv_id, session_id, turn_id, phase, snapshot_created_at_ms, ordinal),
            FOREIGN KEY (conv_id, session_id, turn_id) REFERENCES turns (conv_id, session_id, turn_id) ON DELETE CASCADE,
            FOREIGN KEY (block_id, content_hash) REFERENCES blocks (block_id, content_hash)
        )",
    ),
    ("turns_by_conv_session", TURNS_BY_CONV_SESSION),
    ("turns_by_session", TURNS_BY_SESSION),
    ("turns_by_conv_runtime_updated", TURNS_BY_CONV_RUNTIME),
    ("turns_by_conv_inference_updated", TURNS_BY_CONV_INFERENCE),
    ("blocks_by_kind_role", BLOCKS_BY_KIND_ROLE),
    ("turn_block_membership_by_turn_phase", MEMBERSHIP_BY_PHASE),
    ("turn_block_membership_by_block", MEMBERSHIP_BY_BLOCK),
];

const POSTGRES: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS turns (
        conv_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        turn_created_at_ms BIGINT NOT NULL,
        turn_metadata_json TEXT NOT NULL DEFAULT '{}',
        turn_data_json TEXT NOT NULL DEFAULT '{}',
        runtime_key TEXT NOT NULL DEFAULT '',
        inference_id TEXT NOT NULL DEFAULT '',
        updated_at_ms BIGINT NOT NULL,
        PRIMARY KEY (conv_id, session_id, turn_id)
    )",
    "CREATE TABLE IF NOT EXISTS blocks (
        block_id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        hash_algorithm TEXT NOT NULL DEFAULT 'sha256-canonical-json-v1',
        kind TEXT NOT NULL,
        role TEXT NOT NULL DEFAULT '',
        payload_json TEXT NOT NULL DEFAULT '{}',
        block_metadata_json TEXT NOT NULL DEFAULT '{}',
        first_seen_at_ms BIGINT NOT NULL,
        PRIMARY KEY (block_id, content_hash)
    )",
    "CREATE TABLE IF NOT EXISTS turn_block_membership (
        conv_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        phase TEXT NOT NULL,
        snapshot_created_at_ms BIGINT NOT NULL,
        ordinal BIGINT NOT NULL,
        block_id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        PRIMARY KEY (conv_id, session_id, turn_id, phase, snapshot_created_at_ms, ordinal),
        FOREIGN KEY (conv_id, session_id, turn_id) REFERENCES turns (conv_id, session_id, turn_id) ON DELETE CASCADE,
        FOREIGN KEY (block_id, content_hash) REFERENCES blocks (block_id, content_hash)
    )",
    TURNS_BY_CONV_SESSION,
    TURNS_BY_SESSION,
    TURNS_BY_CONV_RUNTIME,
    TURNS_BY_CONV_INFERENCE,
    BLOCKS_BY_KIND_ROLE,
    MEMBERSHIP_BY_PHASE,
    MEMBERSHIP_BY_BLOCK,
];

const TURNS_BY_CONV_SESSION: &str = "CREATE INDEX IF NOT EXISTS turns_by_conv_session ON turns (conv_id, session_id, updated_at_ms DESC)";
const TURNS_BY_SESSION: &str =
    "CREATE INDEX IF NOT EXISTS turns_by_session ON turns (session_id, updated_at_ms DESC)";
const TURNS_BY_CONV_RUNTIME: &str = "CREATE INDEX IF NOT EXISTS turns_by_conv_runtime_updated ON turns (conv_id, runtime_key, updated_at_ms DESC)";
const TURNS_BY_CONV_INFERENCE: &str = "CREATE INDEX IF NOT EXISTS turns_by_conv_inference_updated ON turns (conv_id, inference_id, updated_at_ms DESC)";
const BLOCKS_BY_KIND_ROLE: &str =
    "CREATE INDEX IF NOT EXISTS blocks_by_kind_role ON blocks (kind, role)";
const MEMBERSHIP_BY_PHASE: &str = "CREATE INDEX IF NOT EXISTS turn_block_membership_by_turn_phase ON turn_block_membership (conv_id, session_id, turn_id, phase, snapshot_created_at_ms DESC, ordinal)";
const MEMBERSHIP_BY_BLOCK: &str = "CREATE INDEX IF NOT EXISTS turn_block_membership_by_block ON turn_block_membership (block_id, content_hash)";

/// Columns of `turns` that older files may lack, with their initial values.
const ADDED_COLUMNS: &[(&str, &str)] = &[
    ("turn_created_at_ms", "INTEGER NOT NULL DEFAULT 0"),
    ("turn_metadata_json", "TEXT NOT NULL DEFAULT '{}'"),
    ("turn_data_json", "TEXT NOT NULL DEFAULT '{}'"),
    ("runtime_key", "TEXT NOT NULL DEFAULT ''"),
    ("inference_id", "TEXT NOT NULL DEFAULT ''"),
    ("updated_at_ms", "INTEGER NOT NULL DEFAULT 0"),
];

/// Times and keys that can be derived from the same row: a condition that selects the rows, and the
/// value.
const BACKFILLS: &[(&str, &str, &str)] = &[
    (
        "updated_at_ms",
        "updated_at_ms = 0 AND turn_created_at_ms <> 0",
        "turn_created_at_ms",
    ),
    (
        "runtime_key",
        "runtime_key = '' AND json_valid(turn_metadata_json) AND json_type(turn_metadata_json, '$.\"geppetto.runtime@v1\".runtime_key') = 'text' AND trim(json_extract(turn_metadata_json, '$.\"geppetto.runtime@v1\".runtime_key')) <> ''",
        "trim(json_extract(turn_metadata_json, '$.\"geppetto.runtime@v1\".runtime_key'))",
    ),
    (
        "inference_id",
        "inference_id = '' AND json_valid(turn_metadata_json) AND json_type(turn_metadata_json, '$.\"geppetto.inference_id@v1\"') = 'text' AND trim(json_extract(turn_metadata_json, '$.\"geppetto.inference_id@v1\"')) <> ''",
        "trim(json_extract(turn_metadata_json, '$.\"geppetto.inference_id@v1\"'))",
    ),
    (
        "inference_id",
        "inference_id = '' AND json_valid(turn_metadata_json) AND json_type(turn_metadata_json, '$.inference_id') = 'text' AND trim(json_extract(turn_metadata_json, '$.inference_id')) <> ''",
        "trim(json_extract(turn_metadata_json, '$.inference_id'))",
    ),
];

/// Checks for a column with the time under its old name, which is required but no longer written.
const OLD_TIME_COLUMN: &str = "SELECT EXISTS (SELECT 1 FROM pragma_table_info('turns')
    WHERE name = 'created_at_ms' AND \"notnull\" AND dflt_value IS NULL)";

fn upgrade(connection: &Connection, upgrade: Upgrade) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('turns')")?;
    let names = statement.query_map([], |row| row.get(0))?;
    let columns: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    if columns.is_empty() {
        return Ok(false);
    }
    let has = |name: &str| columns.iter().any(|column| column == name);
    let missing: Vec<_> = ADDED_COLUMNS
        .iter()
        .filter(|(name, _)| !has(name))
        .collect();
    let in_the_way: bool = connection.query_row(OLD_TIME_COLUMN, [], |row| row.get(0))?;
    if upgrade == Upgrade::Ask {
        if !missing.is_empty() || in_the_way {
            return Ok(true);
        }
        for (_, rows, _) in BACKFILLS {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM turns WHERE {rows})");
            if connection.query_row(&sql, [], |row| row.get(0))? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    for (name, column) in &missing {
        connection.execute_batch(&format!("ALTER TABLE turns ADD COLUMN {name} {column}"))?;
        if has("created_at_ms") && name.ends_with("_at_ms") {
            connection.execute_batch(&format!("UPDATE turns SET {name} = created_at_ms"))?;
        }
    }
    for (name, rows, value) in BACKFILLS {
        connection.execute_batch(&format!("UPDATE turns SET {name} = {value} WHERE {rows}"))?;
    }
    if in_the_way {
        connection.execute_batch("ALTER TABLE turns DROP COLUMN created_at_ms")?;
    }
    Ok(true)
}
