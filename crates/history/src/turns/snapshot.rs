//! A turn split into the rows of the tables.

use super::TurnSave;
use crate::canonical;
use crate::{Block, BlockKind, HistoryError, Map};

/// A turn to store, checked, with every default filled in.
#[derive(Debug)]
pub(crate) struct Snapshot<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) session: &'a str,
    pub(crate) turn_id: &'a str,
    pub(crate) phase: &'a str,
    pub(crate) at_ms: i64,
    pub(crate) runtime_key: &'a str,
    pub(crate) inference_id: &'a str,
    pub(crate) metadata: String,
    pub(crate) data: String,
    pub(crate) blocks: Vec<StoredBlock<'a>>,
}

/// A block with the key it is shared under: its id and the hash of its content.
#[derive(Debug)]
pub(crate) struct StoredBlock<'a> {
    pub(crate) id: String,
    pub(crate) hash: String,
    pub(crate) kind: &'static str,
    pub(crate) role: &'a str,
    pub(crate) payload: String,
    pub(crate) metadata: String,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(save: &TurnSave<'a>) -> Result<Self, HistoryError> {
        let turn = save.turn;
        let snapshot = Self {
            conversation: required("conversation id", save.conversation)?,
            session: required("session id", save.session)?,
            turn_id: required("turn id", &turn.id)?,
            phase: required("phase", save.phase)?,
            at_ms: save.at_ms,
            runtime_key: or(save.runtime_key, turn.runtime_key()),
            inference_id: or(save.inference_id, turn.inference_id()),
            metadata: canonical::object(&turn.metadata),
            data: canonical::object(&turn.data),
            blocks: Vec::with_capacity(turn.blocks.len()),
        };
        let blocks = turn.blocks.iter().enumerate();
        let blocks = blocks.map(|(index, block)| StoredBlock::new(snapshot.turn_id, index, block));
        Ok(Self {
            blocks: blocks.collect(),
            ..snapshot
        })
    }
}

impl<'a> StoredBlock<'a> {
    fn new(turn_id: &str, index: usize, block: &'a Block) -> Self {
        Self {
            id: match block.id.trim() {
                "" => format!("{turn_id}#{index}"),
                id => id.to_owned(),
            },
            hash: canonical::hash(block),
            kind: block.kind.name(),
            role: block.role.trim(),
            payload: canonical::object(&block.payload),
            metadata: canonical::object(&block.metadata),
        }
    }

    /// Returns the block as a store reads it.
    pub(crate) fn read(&self, payload: Map, metadata: Map) -> Block {
        Block {
            id: self.id.clone(),
            kind: BlockKind::from_name(self.kind),
            role: self.role.to_owned(),
            payload,
            metadata,
        }
    }
}

fn required<'a>(what: &'static str, text: &'a str) -> Result<&'a str, HistoryError> {
    match text.trim() {
        "" => Err(HistoryError::Blank(what)),
        text => Ok(text),
    }
}

fn or<'a>(given: &'a str, fallback: &'a str) -> &'a str {
    match given.trim() {
        "" => fallback,
        given => given,
    }
}
