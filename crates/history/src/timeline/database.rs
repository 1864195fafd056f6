//! Timelines in a SQL database.

use std::collections::HashMap;
use std::sync::Arc;

use super::schema::SCHEMA;
use super::{
    EntityChange, Fault, GONE, TimelineEntity, TimelineEvent, TimelineSession, TimelineSnapshot,
    TimelineStore, check_session, last_ordinal, same_payload, signed, sort_entities, unsigned,
};
use crate::HistoryError;
use crate::sql::{self, Access, Arg, Database, Location, Row, Statements};

/// The one projection whose progress is stored.
const PROJECTOR: &str = "timeline";

/// A [`TimelineStore`] in SQLite or PostgreSQL.
#[derive(Debug)]
pub(crate) struct DatabaseTimeline {
    database: Box<dyn Database>,
}

impl DatabaseTimeline {
    pub(crate) fn open(location: Location, access: Access) -> Result<Self, HistoryError> {
        let database = sql::open(location, SCHEMA, access)?;
        Ok(Self { database })
    }

    /// Returns the problems of the database and of the timelines in it.
    pub(crate) fn problems(&mut self) -> Result<Vec<String>, HistoryError> {
        let mut problems = self.database.problems()?;
        self.database.read(&mut |statements| {
            for mut row in statements.query(BEHIND, &[Arg::Text(PROJECTOR)])? {
                problems.push(format!(
                    "session {}: {} events are stored, entities only of the first {}",
                    row.text(0),
                    row.int(1),
                    row.int(2)
                ));
            }
            Ok(())
        })?;
        Ok(problems)
    }

    fn query(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<Row>, HistoryError> {
        let mut rows = Vec::new();
        self.database.read(&mut |statements| {
            rows = statements.query(sql, args)?;
            Ok(())
        })?;
        Ok(rows)
    }

    fn number(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, HistoryError> {
        let rows = self.query(sql, args)?;
        Ok(rows.first().map_or(0, |row| unsigned(row.int(0))))
    }
}

const BEHIND: &str = "
    SELECT e.session_id, max(e.ordinal), coalesce(max(c.cursor), 0)
    FROM sessionstream_events e
    LEFT JOIN sessionstream_projection_cursors c ON c.session_id = e.session_id AND c.projector = $1
    GROUP BY e.session_id HAVING max(e.ordinal) > coalesce(max(c.cursor), 0)";

const LAST_EVENT: &str = "SELECT max(ordinal) FROM sessionstream_events WHERE session_id = $1";

const INSERT_EVENT: &str = "
    INSERT INTO sessionstream_events (session_id, ordinal, name, payload_json)
    VALUES ($1, $2, $3, $4) ON CONFLICT (session_id, ordinal) DO NOTHING";

const EVENTS_FROM: &str = "
    SELECT ordinal, name, payload_json FROM sessionstream_events
    WHERE session_id = $1 AND ordinal > $2 ORDER BY ordinal LIMIT $3";

const CREATED: &str = "
    SELECT created_ordinal FROM sessionstream_entities
    WHERE session_id = $1 AND kind = $2 AND entity_id = $3";

const UPSERT_VERSION: &str = "
    INSERT INTO sessionstream_entity_versions
        (session_id, kind, entity_id, ordinal, created_ordinal, last_event_ordinal, tombstone, payload_json)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (session_id, kind, entity_id, ordinal) DO UPDATE SET
        created_ordinal = excluded.created_ordinal,
        last_event_ordinal = excluded.last_event_ordinal,
        tombstone = excluded.tombstone,
        payload_json = excluded.payload_json";

const UPSERT_ENTITY: &str = "
    INSERT INTO sessionstream_entities
        (session_id, kind, entity_id, created_ordinal, last_event_ordinal, payload_json)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (session_id, kind, entity_id) DO UPDATE SET
        created_ordinal = excluded.created_ordinal,
        last_event_ordinal = excluded.last_event_ordinal,
        payload_json = excluded.payload_json";

const DELETE_ENTITY: &str = "
    DELETE FROM sessionstream_entities WHERE session_id = $1 AND kind = $2 AND entity_id = $3";

const ADVANCE_SESSION: &str = "
    INSERT INTO sessionstream_sessions (session_id, snapshot_ordinal) VALUES ($1, $2)
    ON CONFLICT (session_id) DO UPDATE SET snapshot_ordinal = excluded.snapshot_ordinal
    WHERE excluded.snapshot_ordinal > sessionstream_sessions.snapshot_ordinal";

const ADVANCE_CURSOR: &str = "
    INSERT INTO sessionstream_projection_cursors (projector, session_id, cursor) VALUES ($1, $2, $3)
    ON CONFLICT (projector, session_id) DO UPDATE SET cursor = excluded.cursor
    WHERE excluded.cursor > sessionstream_projection_cursors.cursor";

const SNAPSHOT_ORDINAL: &str =
    "SELECT snapshot_ordinal FROM sessionstream_sessions WHERE session_id = $1";

const ENTITIES_NOW: &str = "
    SELECT kind, entity_id, created_ordinal, last_event_ordinal, payload_json
    FROM sessionstream_entities WHERE session_id = $1";

const ENTITIES_THEN: &str = "
    SELECT v.kind, v.entity_id, v.created_ordinal, v.last_event_ordinal, v.payload_json
    FROM sessionstream_entity_versions v
    JOIN (
        SELECT kind, entity_id, max(ordinal) AS newest FROM sessionstream_entity_versions
        WHERE session_id = $1 AND ordinal <= $2 GROUP BY kind, entity_id
    ) n ON n.kind = v.kind AND n.entity_id = v.entity_id AND n.newest = v.ordinal
    WHERE v.session_id = $1 AND v.tombstone = 0";

const PROJECTED: &str = "
    SELECT cursor FROM sessionstream_projection_cursors WHERE projector = $1 AND session_id = $2";

const SESSIONS: &str = "
    SELECT s.session_id,
        (SELECT max(e.ordinal) FROM sessionstream_events e WHERE e.session_id = s.session_id),
        (SELECT count(*) FROM sessionstream_events e WHERE e.session_id = s.session_id),
        (SELECT count(*) FROM sessionstream_entities n WHERE n.session_id = s.session_id),
        (SELECT e.created_at FROM sessionstream_events e WHERE e.session_id = s.session_id ORDER BY e.ordinal LIMIT 1),
        (SELECT e.created_at FROM sessionstream_events e WHERE e.session_id = s.session_id ORDER BY e.ordinal DESC LIMIT 1)
    FROM (SELECT session_id FROM sessionstream_sessions UNION SELECT session_id FROM sessionstream_events) s";

const INSERT_FAULT: &str = "
    INSERT INTO sessionstream_errors (kind, session_id, ordinal, event_name, error, raw_message, metadata_json)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const FAULTS: &str = "
    SELECT kind, session_id, ordinal, event_name, error, raw_message, metadata_json
    FROM sessionstream_errors WHERE session_id = $1 ORDER BY id";

/// Stores events; the same event again is accepted, another one with its number is a conflict.
fn insert_events(
    statements: &mut dyn Statements,
    session: &str,
    events: &[TimelineEvent],
) -> Result<(), HistoryError> {
    let mut args = Vec::with_capacity(events.len() * 4);
    for event in events {
        args.extend([
            Arg::Text(session),
            Arg::Int(signed(event.ordinal)?),
            Arg::Text(&event.name),
            Arg::Text(&event.payload),
        ]);
    }
    let inserted = statements.execute_each(INSERT_EVENT, 4, &args)?;
    if inserted == events.len() as u64 {
        return Ok(());
    }
    for event in events {
        let before = signed(event.ordinal.saturating_sub(1))?;
        let asked = [Arg::Text(session), Arg::Int(before), Arg::Int(1)];
        let mut stored = statements.query(EVENTS_FROM, &asked)?;
        let same = stored.first_mut().is_some_and(|row| {
            unsigned(row.int(0)) == event.ordinal
                && row.text(1) == *event.name
                && same_payload(&row.text(2), &event.payload)
        });
        if !same {
            return Err(HistoryError::Conflict {
                session: session.to_owned(),
                ordinal: event.ordinal,
            });
        }
    }
    Ok(())
}

/// An entity after the batch.
struct Resolved<'a> {
    change: &'a EntityChange,
    created: i64,
    last: i64,
}

/// Stores a version per change, and each entity after its last change.
fn apply_changes(
    statements: &mut dyn Statements,
    session: &str,
    changes: &[EntityChange],
) -> Result<(), HistoryError> {
    let mut now: HashMap<(&str, &str), Resolved<'_>> = HashMap::new();
    let mut versions = Vec::with_capacity(changes.len() * 8);
    for change in changes {
        let entity = &change.entity;
        let (kind, id) = (&*entity.kind, &*entity.id);
        let known = now.get(&(kind, id));
        let created = match (entity.created_ordinal, known) {
            (0, Some(known)) if !known.change.entity.tombstone => known.created,
            (0, Some(_)) => signed(change.ordinal)?,
            (0, None) => {
                let asked = [Arg::Text(session), Arg::Text(kind), Arg::Text(id)];
                let stored = statements.query(CREATED, &asked)?;
                match stored.first() {
                    Some(row) => row.int(0),
                    None => signed(change.ordinal)?,
                }
            }
            (given, _) => signed(given)?,
        };
        let last = match entity.last_event_ordinal {
            0 => signed(change.ordinal)?,
            given => signed(given)?,
        };
        versions.extend([
            Arg::Text(session),
            Arg::Text(kind),
            Arg::Text(id),
            Arg::Int(signed(change.ordinal)?),
            Arg::Int(created),
            Arg::Int(last),
            Arg::Int(i64::from(entity.tombstone)),
            Arg::Text(payload(entity)),
        ]);
        let resolved = Resolved {
            change,
            created,
            last,
        };
        now.insert((kind, id), resolved);
    }
    statements.execute_each(UPSERT_VERSION, 8, &versions)?;
    let mut upserts = Vec::with_capacity(now.len() * 6);
    let mut deletes = Vec::new();
    for ((kind, id), resolved) in now {
        let key = [Arg::Text(session), Arg::Text(kind), Arg::Text(id)];
        if resolved.change.entity.tombstone {
            deletes.extend(key);
        } else {
            upserts.extend(key);
            upserts.extend([
                Arg::Int(resolved.created),
                Arg::Int(resolved.last),
                Arg::Text(&resolved.change.entity.payload),
            ]);
        }
    }
    statements.execute_each(UPSERT_ENTITY, 6, &upserts)?;
    statements.execute_each(DELETE_ENTITY, 3, &deletes)?;
    Ok(())
}

fn payload(entity: &TimelineEntity) -> &str {
    if entity.tombstone {
        GONE
    } else {
        &entity.payload
    }
}

fn advance(
    statements: &mut dyn Statements,
    session: &str,
    through: u64,
) -> Result<(), HistoryError> {
    let through = Arg::Int(signed(through)?);
    statements.execute(ADVANCE_SESSION, &[Arg::Text(session), through])?;
    let cursor = [Arg::Text(PROJECTOR), Arg::Text(session), through];
    statements.execute(ADVANCE_CURSOR, &cursor)?;
    Ok(())
}

fn entity(mut row: Row) -> TimelineEntity {
    TimelineEntity {
        kind: row.text(0).into(),
        id: row.text(1).into(),
        created_ordinal: unsigned(row.int(2)),
        last_event_ordinal: unsigned(row.int(3)),
        tombstone: false,
        payload: row.text(4).into(),
    }
}

impl TimelineStore for DatabaseTimeline {
    fn cursor(&mut self, session: &str) -> Result<u64, HistoryError> {
        check_session(session)?;
        self.number(LAST_EVENT, &[Arg::Text(session)])
    }

    fn append(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
    ) -> Result<(), HistoryError> {
        check_session(session)?;
        if events.is_empty() && entities.is_empty() {
            return Ok(());
        }
        self.database.write(&mut |statements| {
            insert_events(statements, session, events)?;
            apply_changes(statements, session, entities)?;
            advance(statements, session, last_ordinal(events, entities))
        })
    }

    fn apply(
        &mut self,
        session: &str,
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError> {
        check_session(session)?;
        self.database.write(&mut |statements| {
            apply_changes(statements, session, entities)?;
            advance(statements, session, through)
        })
    }

    fn snapshot(
        &mut self,
        session: &str,
        as_of: Option<u64>,
    ) -> Result<TimelineSnapshot, HistoryError> {
        check_session(session)?;
        let as_of = as_of.filter(|ordinal| *ordinal > 0);
        let mut snapshot = TimelineSnapshot::default();
        self.database.read(&mut |statements| {
            let newest = statements.query(SNAPSHOT_ORDINAL, &[Arg::Text(session)])?;
            let newest = newest.first().map_or(0, |row| unsigned(row.int(0)));
            snapshot.ordinal = as_of.map_or(newest, |as_of| as_of.min(newest));
            let rows = match as_of {
                None => statements.query(ENTITIES_NOW, &[Arg::Text(session)])?,
                Some(_) => {
                    let then = Arg::Int(signed(snapshot.ordinal)?);
                    statements.query(ENTITIES_THEN, &[Arg::Text(session), then])?
                }
            };
            snapshot.entities = rows.into_iter().map(entity).collect();
            Ok(())
        })?;
        sort_entities(&mut snapshot.entities);
        Ok(snapshot)
    }

    fn events(
        &mut self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<TimelineEvent>, HistoryError> {
        check_session(session)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let asked = [
            Arg::Text(session),
            Arg::Int(signed(after)?),
            Arg::Int(limit),
        ];
        let rows = self.query(EVENTS_FROM, &asked)?;
        // A session has few distinct names; each is allocated once.
        let mut names: HashMap<String, Arc<str>> = HashMap::new();
        let mut event = |mut row: Row| {
            let name = row.text(1);
            let known = names.get(&name).cloned();
            let name = known.unwrap_or_else(|| {
                let shared: Arc<str> = name.as_str().into();
                names.insert(name, shared.clone());
                shared
            });
            TimelineEvent {
                ordinal: unsigned(row.int(0)),
                name,
                payload: row.text(2).into(),
            }
        };
        Ok(rows.into_iter().map(&mut event).collect())
    }

    fn projected(&mut self, session: &str) -> Result<u64, HistoryError> {
        check_session(session)?;
        self.number(PROJECTED, &[Arg::Text(PROJECTOR), Arg::Text(session)])
    }

    fn forget_entities(&mut self, session: &str) -> Result<(), HistoryError> {
        check_session(session)?;
        self.database.write(&mut |statements| {
            let of_session = [Arg::Text(session)];
            for sql in [
                "DELETE FROM sessionstream_entities WHERE session_id = $1",
                "DELETE FROM sessionstream_entity_versions WHERE session_id = $1",
                "UPDATE sessionstream_sessions SET snapshot_ordinal = 0 WHERE session_id = $1",
            ] {
                statements.execute(sql, &of_session)?;
            }
            statements.execute(
                "DELETE FROM sessionstream_projection_cursors WHERE projector = $1 AND session_id = $2",
                &[Arg::Text(PROJECTOR), Arg::Text(session)],
            )?;
            Ok(())
        })
    }

    fn sessions(&mut self) -> Result<Vec<TimelineSession>, HistoryError> {
        let rows = self.query(SESSIONS, &[])?;
        let describe = |mut row: Row| TimelineSession {
            id: row.text(0),
            ordinal: unsigned(row.int(1)),
            events: unsigned(row.int(2)),
            entities: unsigned(row.int(3)),
            first_at: row.text(4),
            last_at: row.text(5),
        };
        let mut sessions: Vec<_> = rows.into_iter().map(describe).collect();
        sessions.sort_by(|a, b| b.last_at.cmp(&a.last_at).then_with(|| a.id.cmp(&b.id)));
        Ok(sessions)
    }

    fn record_error(&mut self, fault: &Fault) -> Result<(), HistoryError> {
        let ordinal = fault.ordinal.map(signed).transpose()?;
        let metadata = match fault.metadata.as_str() {
            "" => "{}",
            metadata => metadata,
        };
        let args = [
            Arg::Text(&fault.kind),
            fault.session.as_deref().into(),
            ordinal.map_or(Arg::Null, Arg::Int),
            fault.event_name.as_deref().into(),
            Arg::Text(&fault.error),
            fault.raw_message.as_deref().map_or(Arg::Null, Arg::Bytes),
            Arg::Text(metadata),
        ];
        self.database.write(&mut |statements| {
            statements.execute(INSERT_FAULT, &args)?;
            Ok(())
        })
    }

    fn faults(&mut self, session: &str) -> Result<Vec<Fault>, HistoryError> {
        check_session(session)?;
        let rows = self.query(FAULTS, &[Arg::Text(session)])?;
        let fault = |mut row: Row| Fault {
            kind: row.text(0),
            session: row.optional_text(1),
            ordinal: row.optional_int(2).map(unsigned),
            event_name: row.optional_text(3),
            error: row.text(4),
            raw_message: row.optional_bytes(5),
            metadata: row.text(6),
        };
        Ok(rows.into_iter().map(fault).collect())
    }
}
