//! Turns in memory.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{SavedTurn, Snapshot, TurnHeader, TurnQuery, TurnSave, TurnStore};
use crate::{Block, HistoryError, Map, Turn};

/// A [`TurnStore`] in memory, with the semantics of the databases.
#[derive(Debug, Default)]
pub struct MemoryTurns {
    turns: HashMap<Key, Facts>,
    snapshots: Vec<StoredSnapshot>,
}

/// Conversation, session, turn.
type Key = (String, String, String);

/// Fields that a turn has once, however often it was saved.
#[derive(Debug, Default)]
struct Facts {
    metadata: Map,
    data: Map,
    runtime_key: String,
    inference_id: String,
}

#[derive(Debug)]
struct StoredSnapshot {
    key: Key,
    phase: String,
    at_ms: i64,
    blocks: Vec<Block>,
}

impl MemoryTurns {
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self, stored: &StoredSnapshot) -> Option<SavedTurn> {
        let facts = self.turns.get(&stored.key)?;
        let (conversation, session, turn) = stored.key.clone();
        Some(SavedTurn {
            conversation,
            session,
            phase: stored.phase.clone(),
            at_ms: stored.at_ms,
            runtime_key: facts.runtime_key.clone(),
            inference_id: facts.inference_id.clone(),
            turn: Turn {
                id: turn,
                blocks: stored.blocks.clone(),
                metadata: facts.metadata.clone(),
                data: facts.data.clone(),
            },
        })
    }
}

impl TurnStore for MemoryTurns {
    fn save(&mut self, save: &TurnSave<'_>) -> Result<(), HistoryError> {
        let snapshot = Snapshot::new(save)?;
        let key = (
            snapshot.conversation.to_owned(),
            snapshot.session.to_owned(),
            snapshot.turn_id.to_owned(),
        );
        let facts = self.turns.entry(key.clone()).or_default();
        facts.metadata = save.turn.metadata.clone();
        facts.data = save.turn.data.clone();
        let replace = |stored: &mut String, given: &str| {
            if !given.is_empty() {
                given.clone_into(stored);
            }
        };
        replace(&mut facts.runtime_key, snapshot.runtime_key);
        replace(&mut facts.inference_id, snapshot.inference_id);
        let stored = snapshot.blocks.iter().zip(&save.turn.blocks);
        let read = stored
            .map(|(stored, block)| stored.read(block.payload.clone(), block.metadata.clone()));
        let stored = StoredSnapshot {
            key,
            phase: snapshot.phase.to_owned(),
            at_ms: snapshot.at_ms,
            blocks: read.collect(),
        };
        self.snapshots.retain(|other| {
            (&other.key, &other.phase, other.at_ms) != (&stored.key, &stored.phase, stored.at_ms)
        });
        // Without blocks, the tables have no row with the time.
        if !stored.blocks.is_empty() {
            self.snapshots.push(stored);
        }
        Ok(())
    }

    fn latest(
        &mut self,
        conversation: &str,
        phase: &str,
    ) -> Result<Option<SavedTurn>, HistoryError> {
        let newest = self.list(&TurnQuery {
            conversation: Some(conversation.to_owned()),
            phase: Some(phase.to_owned()),
            limit: Some(1),
            ..TurnQuery::default()
        })?;
        Ok(newest.into_iter().next())
    }

    fn headers(&mut self, query: &TurnQuery) -> Result<Vec<TurnHeader>, HistoryError> {
        let wanted = |wanted: &Option<String>, is: &String| wanted.as_ref().is_none_or(|w| w == is);
        let mut stored: Vec<&StoredSnapshot> = self
            .snapshots
            .iter()
            .filter(|stored| {
                wanted(&query.conversation, &stored.key.0)
                    && wanted(&query.session, &stored.key.1)
                    && wanted(&query.phase, &stored.phase)
                    && query.since_ms.is_none_or(|since| stored.at_ms >= since)
            })
            .collect();
        stored.sort_by_key(|stored| (Reverse(stored.at_ms), &stored.key, &stored.phase));
        let header = |stored: &StoredSnapshot| TurnHeader {
            conversation: stored.key.0.clone(),
            session: stored.key.1.clone(),
            turn_id: stored.key.2.clone(),
            phase: stored.phase.clone(),
            at_ms: stored.at_ms,
            blocks: stored.blocks.len() as u64,
        };
        let newest = stored.into_iter().take(query.limit());
        Ok(newest.map(header).collect())
    }

    fn load(&mut self, header: &TurnHeader) -> Result<Option<SavedTurn>, HistoryError> {
        let found = self.snapshots.iter().find(|stored| {
            let (conversation, session, turn_id) = &stored.key;
            (conversation, session, turn_id, &stored.phase, stored.at_ms)
                == (
                    &header.conversation,
                    &header.session,
                    &header.turn_id,
                    &header.phase,
                    header.at_ms,
                )
        });
        Ok(found.and_then(|stored| self.read(stored)))
    }
}
