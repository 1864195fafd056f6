//! Timelines in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{
    EntityChange, Fault, GONE, TimelineEntity, TimelineEvent, TimelineSession, TimelineSnapshot,
    TimelineStore, check_session, last_ordinal, same_payload, signed, sort_entities,
};
use crate::HistoryError;

/// A [`TimelineStore`] in retention, with the semantics of the databases.
#[derive(Debug, Default)]
pub struct MemoryTimeline {
    sessions: HashMap<String, Session>,
    faults: Vec<Fault>,
    /// Counts appends, to find the session that was written last.
    writes: u64,
    retention: Retention,
}

/// The amount of stored history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Retention {
    /// Every event, and every version of every entity.
    #[default]
    Whole,
    /// Every event, and the present entities.
    Events,
    /// The present entities, and the number of the last event.
    Present,
}

#[derive(Debug, Default)]
struct Session {
    events: BTreeMap<u64, (Arc<str>, Arc<str>)>,
    /// By kind and id.
    current: HashMap<Key, TimelineEntity>,
    /// By kind and id, then by event.
    versions: HashMap<Key, BTreeMap<u64, TimelineEntity>>,
    /// The number of the last event.
    last: u64,
    count: u64,
    snapshot: u64,
    projected: u64,
    written: u64,
}

type Key = (Arc<str>, Arc<str>);

impl MemoryTimeline {
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store without old versions of entities: with them, an answer would use memory
    /// quadratic in its length.
    pub fn without_versions() -> Self {
        Self {
            retention: Retention::Events,
            ..Self::default()
        }
    }

    /// Creates a store of the present only: no events, and no snapshots of the past. A long
    /// conversation then uses no more memory than its text.
    pub fn of_the_present() -> Self {
        Self {
            retention: Retention::Present,
            ..Self::default()
        }
    }

    fn get(&self, session: &str) -> Result<Option<&Session>, HistoryError> {
        check_session(session)?;
        Ok(self.sessions.get(session))
    }

    fn write(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError> {
        check_session(session)?;
        signed(through)?;
        // All or nothing: every check that can fail precedes the first change.
        if let Some(known) = self.sessions.get(session) {
            for event in events {
                known.check(session, event)?;
            }
        }
        self.writes += 1;
        if !self.sessions.contains_key(session) {
            self.sessions.insert(session.to_owned(), Session::default());
        }
        let Some(kept) = self.sessions.get_mut(session) else {
            return Ok(());
        };
        for event in events {
            kept.add(event, self.retention);
        }
        for change in entities {
            kept.change(change, self.retention);
        }
        kept.snapshot = kept.snapshot.max(through);
        kept.projected = kept.projected.max(through);
        kept.written = self.writes;
        Ok(())
    }
}

impl Session {
    fn check(&self, session: &str, event: &TimelineEvent) -> Result<(), HistoryError> {
        match self.events.get(&event.ordinal) {
            Some((name, payload))
                if *name != event.name || !same_payload(payload, &event.payload) =>
            {
                Err(HistoryError::Conflict {
                    session: session.to_owned(),
                    ordinal: event.ordinal,
                })
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, event: &TimelineEvent, retention: Retention) {
        let new = match retention {
            Retention::Present => event.ordinal > self.last,
            Retention::Whole | Retention::Events => {
                let fact = (event.name.clone(), event.payload.clone());
                self.events.insert(event.ordinal, fact).is_none()
            }
        };
        self.count += u64::from(new);
        self.last = self.last.max(event.ordinal);
    }

    fn change(&mut self, change: &EntityChange, retention: Retention) {
        let mut entity = change.entity.clone();
        let key = (entity.kind.clone(), entity.id.clone());
        if entity.created_ordinal == 0 {
            let known = self.current.get(&key);
            entity.created_ordinal = known.map_or(change.ordinal, |known| known.created_ordinal);
        }
        if entity.last_event_ordinal == 0 {
            entity.last_event_ordinal = change.ordinal;
        }
        if entity.tombstone {
            entity.payload = GONE.into();
            self.current.remove(&key);
        } else {
            self.current.insert(key.clone(), entity.clone());
        }
        if retention == Retention::Whole {
            let history = self.versions.entry(key).or_default();
            history.insert(change.ordinal, entity);
        }
    }

    fn at(&self, ordinal: u64) -> impl Iterator<Item = TimelineEntity> {
        let newest = move |history: &BTreeMap<u64, TimelineEntity>| {
            let (_, entity) = history.range(..=ordinal).next_back()?;
            (!entity.tombstone).then(|| entity.clone())
        };
        self.versions.values().filter_map(newest)
    }
}

impl TimelineStore for MemoryTimeline {
    fn cursor(&mut self, session: &str) -> Result<u64, HistoryError> {
        Ok(self.get(session)?.map_or(0, |known| known.last))
    }

    fn append(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
    ) -> Result<(), HistoryError> {
        let through = last_ordinal(events, entities);
        self.write(session, events, entities, through)
    }

    fn apply(
        &mut self,
        session: &str,
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError> {
        self.write(session, &[], entities, through)
    }

    fn snapshot(
        &mut self,
        session: &str,
        as_of: Option<u64>,
    ) -> Result<TimelineSnapshot, HistoryError> {
        let retention = self.retention;
        let Some(known) = self.get(session)? else {
            return Ok(TimelineSnapshot::default());
        };
        let (ordinal, mut entities) = match as_of {
            Some(as_of) if as_of > 0 && retention == Retention::Whole => {
                let ordinal = as_of.min(known.snapshot);
                (ordinal, known.at(ordinal).collect())
            }
            _ => (
                known.snapshot,
                known.current.values().cloned().collect::<Vec<_>>(),
            ),
        };
        sort_entities(&mut entities);
        Ok(TimelineSnapshot { ordinal, entities })
    }

    fn events(
        &mut self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<TimelineEvent>, HistoryError> {
        let known = self.get(session)?;
        let events = known.into_iter().flat_map(|known| &known.events);
        let read = |(&ordinal, (name, payload)): (&u64, &(Arc<str>, Arc<str>))| TimelineEvent {
            ordinal,
            name: name.clone(),
            payload: payload.clone(),
        };
        let wanted = events.skip_while(|(ordinal, _)| **ordinal <= after);
        Ok(wanted.take(limit).map(read).collect())
    }

    fn projected(&mut self, session: &str) -> Result<u64, HistoryError> {
        Ok(self.get(session)?.map_or(0, |known| known.projected))
    }

    fn forget_entities(&mut self, session: &str) -> Result<(), HistoryError> {
        check_session(session)?;
        if let Some(known) = self.sessions.get_mut(session) {
            known.current.clear();
            known.versions.clear();
            known.snapshot = 0;
            known.projected = 0;
        }
        Ok(())
    }

    fn sessions(&mut self) -> Result<Vec<TimelineSession>, HistoryError> {
        let mut known: Vec<_> = self.sessions.iter().collect();
        known.sort_by_key(|(_, session)| std::cmp::Reverse(session.written));
        let describe = |(id, session): (&String, &Session)| TimelineSession {
            id: id.clone(),
            ordinal: session.last,
            events: session.count,
            entities: session.current.len() as u64,
            first_at: String::new(),
            last_at: String::new(),
        };
        Ok(known.into_iter().map(describe).collect())
    }

    fn record_error(&mut self, fault: &Fault) -> Result<(), HistoryError> {
        self.faults.push(fault.clone());
        Ok(())
    }

    fn faults(&mut self, session: &str) -> Result<Vec<Fault>, HistoryError> {
        check_session(session)?;
        let of_session = |fault: &&Fault| fault.session.as_deref() == Some(session);
        Ok(self.faults.iter().filter(of_session).cloned().collect())
    }
}
