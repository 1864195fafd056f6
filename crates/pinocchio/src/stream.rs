//! A session as a stream: numbers its events, derives the entities, and writes both to a store.

use std::collections::HashMap;
use std::sync::Arc;

use pinion_history::{Fault, HistoryError, TimelineEvent, TimelineStore};

use crate::events::ChatEvent;
use crate::timeline::{ShownEntity, Timeline};

/// Events to read at a time when entities are rebuilt.
const REBUILD_PAGE_SIZE: usize = 256;

/// The events of one session, numbered from the end of its store.
#[derive(Debug)]
pub struct SessionStream {
    id: Arc<str>,
    ordinal: u64,
    timeline: Timeline,
    /// Events that are not in a store yet.
    pending: Vec<TimelineEvent>,
    faults: Vec<Fault>,
    names: HashMap<&'static str, Arc<str>>,
}

impl SessionStream {
    /// Creates a new session.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            ordinal: 0,
            timeline: Timeline::default(),
            pending: Vec::new(),
            faults: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// Reads a session from a store. Entities that were growing when their writer ended are completed from the events.
    pub fn hydrate(id: &str, store: &mut dyn TimelineStore) -> Result<Self, HistoryError> {
        let mut stream = Self::new(id);
        stream.ordinal = store.cursor(id)?;
        stream.timeline = Timeline::of(store.snapshot(id, None)?.entities);
        let projected = store.projected(id)?;
        let mut after = stream
            .timeline
            .first_missing_event()
            .unwrap_or(stream.ordinal);
        after = after.min(projected);
        while after < stream.ordinal {
            let events = store.events(id, after, REBUILD_PAGE_SIZE)?;
            let Some(last) = events.last() else { break };
            after = last.ordinal;
            for event in &events {
                stream.rebuild(event);
            }
        }
        Ok(stream)
    }

    fn rebuild(&mut self, stored: &TimelineEvent) {
        let projected = ChatEvent::decode(&stored.name, &stored.payload)
            .and_then(|event| self.timeline.apply(&event, stored.ordinal));
        if let Err(error) = projected {
            self.fault(stored.ordinal, &stored.name, error.to_string());
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of the last event.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Numbers an event and updates the entities. `payload` is for the store; `None` if there is no store.
    pub fn publish(&mut self, event: &ChatEvent, payload: Option<&str>) -> u64 {
        self.ordinal += 1;
        let name = event.name();
        if let Some(payload) = payload {
            let name = self.names.entry(name).or_insert_with(|| name.into());
            self.pending.push(TimelineEvent {
                ordinal: self.ordinal,
                name: Arc::clone(name),
                payload: payload.into(),
            });
        }
        if let Err(error) = self.timeline.apply(event, self.ordinal) {
            self.fault(self.ordinal, name, error.to_string());
        }
        self.ordinal
    }

    fn fault(&mut self, ordinal: u64, name: &str, error: String) {
        self.faults.push(Fault {
            kind: "timeline-projection".into(),
            session: Some(self.id.to_string()),
            ordinal: Some(ordinal),
            event_name: Some(name.to_owned()),
            error,
            ..Fault::default()
        });
    }

    /// Writes pending events to the store, all or none.
    pub fn commit(&mut self, store: &mut dyn TimelineStore) -> Result<(), HistoryError> {
        let mut entities = Vec::new();
        self.timeline.drain_changes(&mut entities);
        if !self.pending.is_empty() || !entities.is_empty() {
            store.append(&self.id, &self.pending, &entities)?;
            self.pending.clear();
        }
        for fault in self.faults.drain(..) {
            store.record_error(&fault)?;
        }
        Ok(())
    }

    /// Drops events for a store that has failed.
    pub(crate) fn drop_pending(&mut self) {
        self.pending = Vec::new();
        self.faults = Vec::new();
    }

    /// Returns all entities, in the order of snapshots.
    pub fn entities(&self) -> Vec<ShownEntity> {
        self.timeline.shown()
    }
}
