//! Rebuilding of entities from the events of a session.

use std::collections::HashMap;
use std::sync::Arc;

use super::{EntityChange, TimelineEntity, TimelineEvent, TimelineStore, sort_entities};
use crate::HistoryError;

/// The number of events read at a time.
const PAGE: usize = 100;

/// The start of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// After the last event whose entities are stored.
    FromCursor,
    /// At the first event; stored entities are deleted.
    FromScratch,
}

/// The entities before the event that is being projected.
#[derive(Debug, Default)]
pub struct View {
    entities: HashMap<(Arc<str>, Arc<str>), TimelineEntity>,
    ordinal: u64,
}

impl View {
    /// Returns the last event in the view.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    pub fn get(&self, kind: &str, id: &str) -> Option<&TimelineEntity> {
        self.entities.get(&(kind.into(), id.into()))
    }

    /// Returns all entities of a kind, in the order of snapshots.
    pub fn list(&self, kind: &str) -> Vec<TimelineEntity> {
        let of_kind = self
            .entities
            .values()
            .filter(|entity| &*entity.kind == kind);
        let mut entities: Vec<_> = of_kind.cloned().collect();
        sort_entities(&mut entities);
        entities
    }

    fn load(store: &mut dyn TimelineStore, session: &str) -> Result<Self, HistoryError> {
        let snapshot = store.snapshot(session, None)?;
        let key = |entity: &TimelineEntity| (entity.kind.clone(), entity.id.clone());
        Ok(Self {
            entities: snapshot
                .entities
                .into_iter()
                .map(|entity| (key(&entity), entity))
                .collect(),
            ordinal: snapshot.ordinal,
        })
    }

    /// Fills in the numbers that a projection left open and adds the entity to the view.
    fn take(&mut self, ordinal: u64, mut entity: TimelineEntity) -> EntityChange {
        let key = (entity.kind.clone(), entity.id.clone());
        if entity.created_ordinal == 0 {
            let known = self.entities.get(&key);
            entity.created_ordinal = known.map_or(ordinal, |known| known.created_ordinal);
        }
        if entity.last_event_ordinal == 0 {
            entity.last_event_ordinal = ordinal;
        }
        if entity.tombstone {
            self.entities.remove(&key)
        } else {
            self.entities.insert(key, entity.clone())
        };
        EntityChange { ordinal, entity }
    }
}

/// Projects the stored events of a session again and stores the entities; returns the number of
/// projected events.
///
/// If the projection fails, the entities of all events before that one are stored, and the next
/// [`Rebuild::FromCursor`] continues there.
pub fn rebuild<P>(
    store: &mut dyn TimelineStore,
    session: &str,
    from: Rebuild,
    mut project: P,
) -> Result<u64, HistoryError>
where
    P: FnMut(&TimelineEvent, &View) -> Result<Vec<TimelineEntity>, String>,
{
    if from == Rebuild::FromScratch {
        store.forget_entities(session)?;
    }
    let mut view = View::load(store, session)?;
    let mut after = store.projected(session)?;
    let mut projected = 0;
    loop {
        let events = store.events(session, after, PAGE)?;
        let mut changes = Vec::new();
        let mut failed = None;
        for event in &events {
            match project(event, &view) {
                Ok(entities) => {
                    let taken = entities
                        .into_iter()
                        .map(|entity| view.take(event.ordinal, entity));
                    changes.extend(taken);
                    view.ordinal = event.ordinal;
                    after = event.ordinal;
                    projected += 1;
                }
                Err(message) => {
                    failed = Some(HistoryError::Projection {
                        session: session.to_owned(),
                        ordinal: event.ordinal,
                        message,
                    });
                    break;
                }
            }
        }
        if !events.is_empty() && after > 0 {
            store.apply(session, &changes, after)?;
        }
        match failed {
            Some(failed) => return Err(failed),
            None if events.len() < PAGE => return Ok(projected),
            None => {}
        }
    }
}
