//! Turns in a SQL database.

use serde_json::Value;

use super::schema::SCHEMA;
use super::{SavedTurn, Snapshot, TurnHeader, TurnQuery, TurnSave, TurnStore};
use crate::canonical::ALGORITHM;
use crate::sql::{self, Access, Arg, Database, Location, Row, Statements};
use crate::{Block, BlockKind, HistoryError, Map, Turn};

/// A [`TurnStore`] in SQLite or PostgreSQL.
#[derive(Debug)]
pub(crate) struct DatabaseTurns {
    database: Box<dyn Database>,
}

impl DatabaseTurns {
    pub(crate) fn open(location: Location, access: Access) -> Result<Self, HistoryError> {
        let database = sql::open(location, SCHEMA, access)?;
        Ok(Self { database })
    }

    /// Returns the problems of the database.
    pub(crate) fn problems(&mut self) -> Result<Vec<String>, HistoryError> {
        self.database.problems()
    }
}

const UPSERT_TURN: &str = "
    INSERT INTO turns (conv_id, session_id, turn_id, turn_created_at_ms, turn_metadata_json, turn_data_json,
        runtime_key, inference_id, updated_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (conv_id, session_id, turn_id) DO UPDATE SET
        turn_metadata_json = excluded.turn_metadata_json,
        turn_data_json = excluded.turn_data_json,
        turn_created_at_ms = CASE WHEN excluded.turn_created_at_ms < turns.turn_created_at_ms
            THEN excluded.turn_created_at_ms ELSE turns.turn_created_at_ms END,
        updated_at_ms = CASE WHEN excluded.updated_at_ms > turns.updated_at_ms
            THEN excluded.updated_at_ms ELSE turns.updated_at_ms END,
        runtime_key = CASE WHEN excluded.runtime_key <> '' THEN excluded.runtime_key ELSE turns.runtime_key END,
        inference_id = CASE WHEN excluded.inference_id <> '' THEN excluded.inference_id ELSE turns.inference_id END";

const DELETE_MEMBERS: &str = "
    DELETE FROM turn_block_membership
    WHERE conv_id = $1 AND session_id = $2 AND turn_id = $3 AND phase = $4 AND snapshot_created_at_ms = $5";

/// The hash determines a block's content, so only the time can differ.
const UPSERT_BLOCK: &str = "
    INSERT INTO blocks (block_id, content_hash, hash_algorithm, kind, role, payload_json, block_metadata_json,
        first_seen_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (block_id, content_hash) DO UPDATE SET first_seen_at_ms = excluded.first_seen_at_ms
    WHERE excluded.first_seen_at_ms < blocks.first_seen_at_ms";

const INSERT_MEMBER: &str = "
    INSERT INTO turn_block_membership (conv_id, session_id, turn_id, phase, snapshot_created_at_ms, ordinal,
        block_id, content_hash)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const FIND: &str = "
    SELECT m.conv_id, m.session_id, m.turn_id, m.phase, m.snapshot_created_at_ms, count(*)
    FROM turn_block_membership m
    WHERE ($1 = '' OR m.conv_id = $1) AND ($2 = '' OR m.session_id = $2) AND ($3 = '' OR m.phase = $3)
        AND m.snapshot_created_at_ms >= $4
    GROUP BY m.conv_id, m.session_id, m.turn_id, m.phase, m.snapshot_created_at_ms
    ORDER BY m.snapshot_created_at_ms DESC, m.conv_id, m.session_id, m.turn_id, m.phase
    LIMIT $5";

const FIND_LATEST: &str = "
    SELECT m.conv_id, m.session_id, m.turn_id, m.phase, m.snapshot_created_at_ms, count(*)
    FROM turn_block_membership m WHERE m.conv_id = $1 AND m.phase = $2
    GROUP BY m.conv_id, m.session_id, m.turn_id, m.phase, m.snapshot_created_at_ms
    ORDER BY m.snapshot_created_at_ms DESC, m.session_id, m.turn_id
    LIMIT 1";

const TURN: &str = "
    SELECT turn_metadata_json, turn_data_json, runtime_key, inference_id FROM turns
    WHERE conv_id = $1 AND session_id = $2 AND turn_id = $3";

const BLOCKS: &str = "
    SELECT b.block_id, b.kind, b.role, b.payload_json, b.block_metadata_json
    FROM turn_block_membership m
    JOIN blocks b ON b.block_id = m.block_id AND b.content_hash = m.content_hash
    WHERE m.conv_id = $1 AND m.session_id = $2 AND m.turn_id = $3 AND m.phase = $4
        AND m.snapshot_created_at_ms = $5
    ORDER BY m.ordinal";

fn write(statements: &mut dyn Statements, snapshot: &Snapshot<'_>) -> Result<(), HistoryError> {
    let key = [
        Arg::Text(snapshot.conversation),
        Arg::Text(snapshot.session),
        Arg::Text(snapshot.turn_id),
    ];
    let at = Arg::Int(snapshot.at_ms);
    let [conversation, session, turn_id] = key;
    statements.execute(
        UPSERT_TURN,
        &[
            conversation,
            session,
            turn_id,
            at,
            Arg::Text(&snapshot.metadata),
            Arg::Text(&snapshot.data),
            Arg::Text(snapshot.runtime_key),
            Arg::Text(snapshot.inference_id),
            at,
        ],
    )?;
    let phase = Arg::Text(snapshot.phase);
    statements.execute(DELETE_MEMBERS, &[conversation, session, turn_id, phase, at])?;
    let mut blocks = Vec::with_capacity(snapshot.blocks.len() * 8);
    let mut members = Vec::with_capacity(snapshot.blocks.len() * 8);
    for (ordinal, block) in (0i64..).zip(&snapshot.blocks) {
        let (id, hash) = (Arg::Text(&block.id), Arg::Text(&block.hash));
        blocks.extend([
            id,
            hash,
            Arg::Text(ALGORITHM),
            Arg::Text(block.kind),
            Arg::Text(block.role),
            Arg::Text(&block.payload),
            Arg::Text(&block.metadata),
            at,
        ]);
        members.extend(key);
        members.extend([phase, at, Arg::Int(ordinal), id, hash]);
    }
    statements.execute_each(UPSERT_BLOCK, 8, &blocks)?;
    statements.execute_each(INSERT_MEMBER, 8, &members)?;
    Ok(())
}

fn header(mut row: Row) -> TurnHeader {
    TurnHeader {
        conversation: row.text(0),
        session: row.text(1),
        turn_id: row.text(2),
        phase: row.text(3),
        at_ms: row.int(4),
        blocks: u64::try_from(row.int(5)).unwrap_or(0),
    }
}

fn read(
    statements: &mut dyn Statements,
    header: &TurnHeader,
) -> Result<Option<SavedTurn>, HistoryError> {
    let key = [
        Arg::Text(&header.conversation),
        Arg::Text(&header.session),
        Arg::Text(&header.turn_id),
        Arg::Text(&header.phase),
        Arg::Int(header.at_ms),
    ];
    let rows = statements.query(BLOCKS, &key)?;
    let facts = statements.query(TURN, &key[..3])?.into_iter().next();
    let (false, Some(mut facts)) = (rows.is_empty(), facts) else {
        return Ok(None);
    };
    Ok(Some(SavedTurn {
        conversation: header.conversation.clone(),
        session: header.session.clone(),
        phase: header.phase.clone(),
        at_ms: header.at_ms,
        runtime_key: facts.text(2),
        inference_id: facts.text(3),
        turn: Turn {
            id: header.turn_id.clone(),
            blocks: rows.into_iter().map(block).collect::<Result<_, _>>()?,
            metadata: map("turn_metadata_json", &facts.text(0))?,
            data: map("turn_data_json", &facts.text(1))?,
        },
    }))
}

fn block(mut row: Row) -> Result<Block, HistoryError> {
    Ok(Block {
        id: row.text(0),
        kind: BlockKind::from_name(&row.text(1)),
        role: row.text(2),
        payload: map("payload_json", &row.text(3))?,
        metadata: map("block_metadata_json", &row.text(4))?,
    })
}

fn map(column: &str, text: &str) -> Result<Map, HistoryError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        _ => Err(HistoryError::Turn(format!(
            "{column} holds something else than a JSON object"
        ))),
    }
}

impl TurnStore for DatabaseTurns {
    fn save(&mut self, save: &TurnSave<'_>) -> Result<(), HistoryError> {
        let snapshot = Snapshot::new(save)?;
        self.database
            .write(&mut |statements| write(statements, &snapshot))
    }

    fn latest(
        &mut self,
        conversation: &str,
        phase: &str,
    ) -> Result<Option<SavedTurn>, HistoryError> {
        let mut latest = None;
        self.database.read(&mut |statements| {
            let asked = [Arg::Text(conversation.trim()), Arg::Text(phase.trim())];
            let found = statements.query(FIND_LATEST, &asked)?.into_iter().next();
            let header = found.map(header);
            let read = header.map(|header| read(statements, &header));
            latest = read.transpose()?.flatten();
            Ok(())
        })?;
        Ok(latest)
    }

    fn headers(&mut self, query: &TurnQuery) -> Result<Vec<TurnHeader>, HistoryError> {
        fn any(wanted: &Option<String>) -> Arg<'_> {
            Arg::Text(wanted.as_deref().unwrap_or_default())
        }
        let asked = [
            any(&query.conversation),
            any(&query.session),
            any(&query.phase),
            Arg::Int(query.since_ms.unwrap_or(i64::MIN)),
            Arg::Int(i64::try_from(query.limit()).unwrap_or(i64::MAX)),
        ];
        let mut headers = Vec::new();
        self.database.read(&mut |statements| {
            let found = statements.query(FIND, &asked)?;
            headers = found.into_iter().map(header).collect();
            Ok(())
        })?;
        Ok(headers)
    }

    fn load(&mut self, header: &TurnHeader) -> Result<Option<SavedTurn>, HistoryError> {
        let mut loaded = None;
        self.database.read(&mut |statements| {
            loaded = read(statements, header)?;
            Ok(())
        })?;
        Ok(loaded)
    }
}
