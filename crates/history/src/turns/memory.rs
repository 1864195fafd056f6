//! Turns that end with the process.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{SavedTurn, Snapshot, TurnHeader, TurnQuery, TurnSave, TurnStore};
use crate::{Block, HistoryError, Map, Turn};

/// A [`TurnStore`] in memory, with the semantics of the databases.
#[derive(Debug, Default)]
pub struct MemoryTurns {
    turns: HashMap<Key, Facts>,
    snapshots: Vec<Kept>,
}

/// Conversation, session, turn.
type Key = (String, String, String);

/// What a turn has once, however often it was saved.
#[derive(Debug, Default)]
struct Facts {
    metadata: Map,
    data: Map,
    runtime_key: String,
    inference_id: String,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    phase: String,
    at_ms: i64,
    blocks: Vec<Block>,
}

impl MemoryTurns {
    /// A store without turns.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self, kept: &Kept) -> Option<SavedTurn> {
        let facts = self.turns.get(&kept.key)?;
        let (conversation, session, turn) = kept.key.clone();
        Some(SavedTurn {
            conversation,
            session,
            phase: kept.phase.clone(),
            at_ms: kept.at_ms,
            runtime_key: facts.runtime_key.clone(),
            inference_id: facts.inference_id.clone(),
            turn: Turn {
                id: turn,
                blocks: kept.blocks.clone(),
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
        let replace = |kept: &mut String, given: &str| {
            if !given.is_empty() {
                given.clone_into(kept);
            }
        };
        replace(&mut facts.runtime_key, snapshot.runtime_key);
        replace(&mut facts.inference_id, snapshot.inference_id);
        let stored = snapshot.blocks.iter().zip(&save.turn.blocks);
        let read = stored
            .map(|(stored, block)| stored.read(block.payload.clone(), block.metadata.clone()));
        let kept = Kept {
            key,
            phase: snapshot.phase.to_owned(),
            at_ms: snapshot.at_ms,
            blocks: read.collect(),
        };
        self.snapshots.retain(|other| {
            (&other.key, &other.phase, other.at_ms) != (&kept.key, &kept.phase, kept.at_ms)
        });
        // Without blocks there is nothing in the tables that tells of the moment.
        if !kept.blocks.is_empty() {
            self.snapshots.push(kept);
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
        let mut kept: Vec<&Kept> = self
            .snapshots
            .iter()
            .filter(|kept| {
                wanted(&query.conversation, &kept.key.0)
                    && wanted(&query.session, &kept.key.1)
                    && wanted(&query.phase, &kept.phase)
                    && query.since_ms.is_none_or(|since| kept.at_ms >= since)
            })
            .collect();
        kept.sort_by_key(|kept| (Reverse(kept.at_ms), &kept.key, &kept.phase));
        let header = |kept: &Kept| TurnHeader {
            conversation: kept.key.0.clone(),
            session: kept.key.1.clone(),
            turn_id: kept.key.2.clone(),
            phase: kept.phase.clone(),
            at_ms: kept.at_ms,
            blocks: kept.blocks.len() as u64,
        };
        let newest = kept.into_iter().take(query.limit());
        Ok(newest.map(header).collect())
    }

    fn load(&mut self, header: &TurnHeader) -> Result<Option<SavedTurn>, HistoryError> {
        let found = self.snapshots.iter().find(|kept| {
            let (conversation, session, turn_id) = &kept.key;
            (conversation, session, turn_id, &kept.phase, kept.at_ms)
                == (
                    &header.conversation,
                    &header.session,
                    &header.turn_id,
                    &header.phase,
                    header.at_ms,
                )
        });
        Ok(found.and_then(|kept| self.read(kept)))
    }
}
