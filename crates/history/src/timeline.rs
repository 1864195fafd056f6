//! The timeline: numbered events of a session, and the entities a projection made of them.

mod database;
mod memory;
mod rebuild;
mod schema;

use std::sync::Arc;

pub(crate) use database::DatabaseTimeline;
pub use memory::MemoryTimeline;
pub use rebuild::{Rebuild, View, rebuild};

use crate::HistoryError;

/// A fact, in the order of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEvent {
    /// Its number within the session, from 1.
    pub ordinal: u64,
    /// Its name; the type of the payload follows from it.
    pub name: Arc<str>,
    /// Protobuf JSON, without `@type`.
    pub payload: Arc<str>,
}

/// A thing on the screen as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntity {
    /// What it is; the type of the payload follows from it.
    pub kind: Arc<str>,
    /// Its name among those of its kind.
    pub id: Arc<str>,
    /// The event it came with. Given to a store as 0: as stored before, or the event at hand.
    pub created_ordinal: u64,
    /// The event that changed it last. Given to a store as 0: the event at hand.
    pub last_event_ordinal: u64,
    /// Whether it is gone.
    pub tombstone: bool,
    /// Protobuf JSON, without `@type`; of a tombstone, not looked at.
    pub payload: Arc<str>,
}

/// An entity that an event made, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityChange {
    /// The event.
    pub ordinal: u64,
    /// The entity after it, as a whole.
    pub entity: TimelineEntity,
}

/// All entities of a session at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimelineSnapshot {
    /// The last event that is in it.
    pub ordinal: u64,
    /// By the event they came with, then by the one that changed them last, kind and id.
    pub entities: Vec<TimelineEntity>,
}

/// What is known of a session without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineSession {
    /// Its id.
    pub id: String,
    /// The number of its last event.
    pub ordinal: u64,
    /// How many events are stored.
    pub events: u64,
    /// How many entities are there now.
    pub entities: u64,
    /// When its first event was stored, as RFC 3339; empty where that is not kept.
    pub first_at: String,
    /// When its last event was stored, as RFC 3339; empty where that is not kept.
    pub last_at: String,
}

/// Something that went wrong on the way to the timeline, kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// `decode`, `ordinal`, `ui-projection`, `timeline-projection`, `fanout` or `store`.
    pub kind: String,
    /// The session, where it is known.
    pub session: Option<String>,
    /// The event, where it has a number.
    pub ordinal: Option<u64>,
    /// The name of the event, where it is known.
    pub event_name: Option<String>,
    /// What happened.
    pub error: String,
    /// The bytes that could not be read.
    pub raw_message: Option<Vec<u8>>,
    /// A JSON object; empty counts as `{}`.
    pub metadata: String,
}

/// Where timelines are kept.
///
/// Events are facts and never change: the same event may be stored again, another one under its number is
/// [`HistoryError::Conflict`]. Entities follow from events and may be thrown away and [`rebuild`] at any time.
pub trait TimelineStore: Send {
    /// The number of the last event of a session; 0 if there is none.
    fn cursor(&mut self, session: &str) -> Result<u64, HistoryError>;

    /// Stores events and what follows from them, all or nothing.
    ///
    /// The snapshot of the session is then that of the last event given, entities or not.
    fn append(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
    ) -> Result<(), HistoryError>;

    /// Stores what follows from events up to `through` that are stored already, all or nothing.
    fn apply(
        &mut self,
        session: &str,
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError>;

    /// The entities of a session now, or as they were after the event `as_of`.
    fn snapshot(
        &mut self,
        session: &str,
        as_of: Option<u64>,
    ) -> Result<TimelineSnapshot, HistoryError>;

    /// Up to `limit` events with numbers above `after`, in order.
    fn events(
        &mut self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<TimelineEvent>, HistoryError>;

    /// The last event whose entities are stored.
    fn projected(&mut self, session: &str) -> Result<u64, HistoryError>;

    /// Forgets the entities of a session and all their versions. Events stay.
    fn forget_entities(&mut self, session: &str) -> Result<(), HistoryError>;

    /// All sessions, the last written first.
    fn sessions(&mut self) -> Result<Vec<TimelineSession>, HistoryError>;

    /// Keeps a fault.
    fn record_error(&mut self, fault: &Fault) -> Result<(), HistoryError>;

    /// The faults of a session, in the order they happened.
    fn faults(&mut self, session: &str) -> Result<Vec<Fault>, HistoryError>;
}

/// The payload of an entity that is gone.
pub(crate) const GONE: &str = "null";

/// A session without a name is nobody's.
pub(crate) fn check_session(session: &str) -> Result<(), HistoryError> {
    match session.trim().is_empty() {
        true => Err(HistoryError::Blank("session id")),
        false => Ok(()),
    }
}

/// The number as the databases hold it.
pub(crate) fn signed(ordinal: u64) -> Result<i64, HistoryError> {
    i64::try_from(ordinal).map_err(|_| HistoryError::Ordinal(ordinal))
}

/// A number out of a database; they are never negative unless somebody else wrote them.
pub(crate) fn unsigned(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// The highest number in a batch.
pub(crate) fn last_ordinal(events: &[TimelineEvent], entities: &[EntityChange]) -> u64 {
    let events = events.iter().map(|event| event.ordinal);
    let entities = entities.iter().map(|change| change.ordinal);
    events.chain(entities).max().unwrap_or(0)
}

/// Whether two payloads say the same; printers of protobuf JSON differ in blanks.
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

/// The order of entities in a snapshot.
pub(crate) fn sort_entities(entities: &mut [TimelineEntity]) {
    entities.sort_by(|a, b| {
        let key = |entity: &TimelineEntity| (entity.created_ordinal, entity.last_event_ordinal);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.kind.cmp(&b.kind))
            .then_with(|| a.id.cmp(&b.id))
    });
}
