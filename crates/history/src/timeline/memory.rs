//! Timelines that end with the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{
    EntityChange, Fault, GONE, TimelineEntity, TimelineEvent, TimelineSession, TimelineSnapshot,
    TimelineStore, check_session, last_ordinal, same_payload, signed, sort_entities,
};
use crate::HistoryError;

/// A [`TimelineStore`] in memory, with the semantics of the databases.
#[derive(Debug, Default)]
pub struct MemoryTimeline {
    sessions: HashMap<String, Session>,
    faults: Vec<Fault>,
    /// Counts appends, to tell which session was written last.
    writes: u64,
    memory: Memory,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Memory {
    /// Every event, and every version of every entity.
    #[default]
    Whole,
    /// Every event, and entities as they are now.
    Events,
    /// Entities as they are now, and the number of the last event.
    Present,
}

#[derive(Debug, Default)]
struct Session {
    events: BTreeMap<u64, (Arc<str>, Arc<str>)>,
    /// By kind and id.
    current: HashMap<Key, TimelineEntity>,
    /// By kind and id, then by event.
    versions: HashMap<Key, BTreeMap<u64, TimelineEntity>>,
    /// The number of the last event, and how many there were.
    last: u64,
    count: u64,
    snapshot: u64,
    projected: u64,
    written: u64,
}

type Key = (Arc<str>, Arc<str>);

impl MemoryTimeline {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store that forgets how entities were: an answer then does not take the square of its size.
    pub fn without_versions() -> Self {
        Self {
            memory: Memory::Events,
            ..Self::default()
        }
    }

    /// A store that knows the present alone: no events, and no snapshots of the past but that of now. A long
    /// conversation then takes no more than what was said in it.
    pub fn of_the_present() -> Self {
        Self {
            memory: Memory::Present,
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
        // All or nothing: whatever can fail comes before the first change.
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
            kept.add(event, self.memory);
        }
        for change in entities {
            kept.change(change, self.memory);
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

    fn add(&mut self, event: &TimelineEvent, memory: Memory) {
        let new = match memory {
            Memory::Present => event.ordinal > self.last,
            Memory::Whole | Memory::Events => {
                let fact = (event.name.clone(), event.payload.clone());
                self.events.insert(event.ordinal, fact).is_none()
            }
        };
        self.count += u64::from(new);
        self.last = self.last.max(event.ordinal);
    }

    fn change(&mut self, change: &EntityChange, memory: Memory) {
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
        if memory == Memory::Whole {
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
        let memory = self.memory;
        let Some(known) = self.get(session)? else {
            return Ok(TimelineSnapshot::default());
        };
        let (ordinal, mut entities) = match as_of {
            Some(as_of) if as_of > 0 && memory == Memory::Whole => {
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
