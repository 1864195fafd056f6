//! The timeline: numbered events of a session, and the entities a projection derived from them.

mod database;
mod memory;
mod rebuild;
mod schema;

use std::sync::Arc;

pub(crate) use database::DatabaseTimeline;
pub use memory::MemoryTimeline;
pub use rebuild::{Rebuild, View, rebuild};

use crate::HistoryError;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEvent {
    /// The number within the session, from 1.
    pub ordinal: u64,
    /// The name; it determines the type of the payload.
    pub name: Arc<str>,
    /// Protobuf JSON, without `@type`.
    pub payload: Arc<str>,
}

/// The present state of an item on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntity {
    /// The kind; it determines the type of the payload.
    pub kind: Arc<str>,
    /// The id, unique within its kind.
    pub id: Arc<str>,
    /// The event that created it. 0 in a call of a store means: unchanged, or the current event.
    pub created_ordinal: u64,
    /// The event that changed it last. 0 in a call of a store means: the current event.
    pub last_event_ordinal: u64,
    /// The entity was removed.
    pub tombstone: bool,
    /// Protobuf JSON, without `@type`; ignored for a tombstone.
    pub payload: Arc<str>,
}

/// An entity that an event created, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityChange {
    /// The number of the event.
    pub ordinal: u64,
    /// The whole entity after the event.
    pub entity: TimelineEntity,
}

/// All entities of a session at one event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimelineSnapshot {
    /// The last event included in it.
    pub ordinal: u64,
    /// Sorted by the event that created them, then by the one that changed them last, kind and id.
    pub entities: Vec<TimelineEntity>,
}

/// A summary of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineSession {
    pub id: String,
    /// The number of its last event.
    pub ordinal: u64,
    /// The number of stored events.
    pub events: u64,
    /// The number of present entities.
    pub entities: u64,
    /// The time of its first event, as RFC 3339; empty if it is not stored.
    pub first_at: String,
    /// The time of its last event, as RFC 3339; empty if it is not stored.
    pub last_at: String,
}

/// An error on the way to the timeline, stored beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// `decode`, `ordinal`, `ui-projection`, `timeline-projection`, `fanout` or `store`.
    pub kind: String,
    /// The session, if it is known.
    pub session: Option<String>,
    /// The event, if it has a number.
    pub ordinal: Option<u64>,
    /// The name of the event, if it is known.
    pub event_name: Option<String>,
    /// The error message.
    pub error: String,
    /// The bytes that could not be parsed.
    pub raw_message: Option<Vec<u8>>,
    /// A JSON object; empty counts as `{}`.
    pub metadata: String,
}

/// A store of timelines.
///
/// Events never change: the same event may be stored again, but another one under its number is
/// [`HistoryError::Conflict`]. Entities are derived from events and may be deleted and [`rebuild`]
/// at any time.
pub trait TimelineStore: Send {
    /// Returns the number of the last event of a session; 0 if there is none.
    fn cursor(&mut self, session: &str) -> Result<u64, HistoryError>;

    /// Stores events and their entity changes, all or nothing.
    ///
    /// Afterwards the session's snapshot is at the last given event, with or without entities.
    fn append(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
    ) -> Result<(), HistoryError>;

    /// Stores the entity changes of events up to `through`, which are already stored, all or
    /// nothing.
    fn apply(
        &mut self,
        session: &str,
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError>;

    /// Returns the entities of a session now, or as they were after the event `as_of`.
    fn snapshot(
        &mut self,
        session: &str,
        as_of: Option<u64>,
    ) -> Result<TimelineSnapshot, HistoryError>;

    /// Returns up to `limit` events with numbers above `after`, in order.
    fn events(
        &mut self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<TimelineEvent>, HistoryError>;

    /// Returns the last event whose entities are stored.
    fn projected(&mut self, session: &str) -> Result<u64, HistoryError>;

    /// Deletes the entities of a session and all their versions, but not its events.
    fn forget_entities(&mut self, session: &str) -> Result<(), HistoryError>;

    /// Returns all sessions, the last written first.
    fn sessions(&mut self) -> Result<Vec<TimelineSession>, HistoryError>;

    /// Stores a fault.
    fn record_error(&mut self, fault: &Fault) -> Result<(), HistoryError>;

    /// Returns the faults of a session in the order they happened.
    fn faults(&mut self, session: &str) -> Result<Vec<Fault>, HistoryError>;
}

/// The payload of a removed entity.
pub(crate) const GONE: &str = "null";

/// Rejects an empty session name.
pub(crate) fn check_session(session: &str) -> Result<(), HistoryError> {
    if session.trim().is_empty() {
        Err(HistoryError::Blank("session id"))
    } else {
        Ok(())
    }
}

/// Converts a number to the databases' signed form.
pub(crate) fn signed(ordinal: u64) -> Result<i64, HistoryError> {
    i64::try_from(ordinal).map_err(|_| HistoryError::Ordinal(ordinal))
}

/// Converts a number from a database; it is negative only if another program wrote it.
pub(crate) fn unsigned(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// Returns the highest number in a batch.
pub(crate) fn last_ordinal(events: &[TimelineEvent], entities: &[EntityChange]) -> u64 {
    let events = events.iter().map(|event| event.ordinal);
    let entities = entities.iter().map(|change| change.ordinal);
    events.chain(entities).max().unwrap_or(0)
}

/// Reports whether two payloads are equal; printers of protobuf JSON differ in blanks.
pub(crate) fn same_payload(stored: &str, given: &str) -> bool {
    stored == given
        || match (
            serde_json::from_str::<serde_json::Value>(stored),
            serde_json::from_str::<serde_json::Value>(given),
        ) {
            (Ok(stored), Ok(given)) => stored == given,
            _ => false,
        }
}

/// Sorts entities in the order of a snapshot.
pub(crate) fn sort_entities(entities: &mut [TimelineEntity]) {
    entities.sort_by(|a, b| {
        let key = |entity: &TimelineEntity| (entity.created_ordinal, entity.last_event_ordinal);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.kind.cmp(&b.kind))
            .then_with(|| a.id.cmp(&b.id))
    });
}
