//! Turns: the model's context and answer at the end of each run.

mod database;
mod memory;
mod schema;
mod snapshot;

pub(crate) use database::DatabaseTurns;
pub use memory::MemoryTurns;
pub(crate) use snapshot::Snapshot;

use crate::{HistoryError, Turn};

/// A turn to store.
#[derive(Debug, Clone, Copy)]
pub struct TurnSave<'a> {
    /// The conversation; on the command line, the same as the session.
    pub conversation: &'a str,
    pub session: &'a str,
    /// The turn, whose id must not be empty.
    pub turn: &'a Turn,
    /// `final`, `failed`, or another word of the program that saves.
    pub phase: &'a str,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The runtime; if empty, the metadata's.
    pub runtime_key: &'a str,
    /// The run; if empty, the metadata's.
    pub inference_id: &'a str,
}

/// A stored turn.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedTurn {
    pub conversation: String,
    pub session: String,
    /// The phase of the run in which it was saved.
    pub phase: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The last runtime; may be empty.
    pub runtime_key: String,
    /// The last run with an id; may be empty.
    pub inference_id: String,
    /// The blocks of that save; metadata and data of the newest save.
    pub turn: Turn,
}

/// A summary of a stored turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnHeader {
    pub conversation: String,
    pub session: String,
    pub turn_id: String,
    /// The phase of the run in which it was saved.
    pub phase: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// The number of blocks.
    pub blocks: u64,
}

/// A selection of turns. The default is the last 200.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnQuery {
    /// Only of this conversation.
    pub conversation: Option<String>,
    /// Only of this session.
    pub session: Option<String>,
    /// Only of this phase.
    pub phase: Option<String>,
    /// Only turns saved at this time or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The most turns; 200 by default.
    pub limit: Option<usize>,
}

impl TurnQuery {
    /// The default limit.
    pub const LIMIT: usize = 200;

    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::LIMIT)
    }
}

/// A store of turns.
pub trait TurnStore: Send {
    /// Stores a turn, all or nothing. It replaces one of the same conversation, session, id, phase
    /// and time.
    fn save(&mut self, save: &TurnSave<'_>) -> Result<(), HistoryError>;

    /// Returns the turn of a conversation that was saved last in this phase.
    fn latest(
        &mut self,
        conversation: &str,
        phase: &str,
    ) -> Result<Option<SavedTurn>, HistoryError>;

    /// Returns summaries of turns, the newest first.
    fn headers(&mut self, query: &TurnQuery) -> Result<Vec<TurnHeader>, HistoryError>;

    /// Returns the turn of a summary, unless it was replaced in the meantime.
    fn load(&mut self, header: &TurnHeader) -> Result<Option<SavedTurn>, HistoryError>;

    /// Returns turns, the newest first.
    fn list(&mut self, query: &TurnQuery) -> Result<Vec<SavedTurn>, HistoryError> {
        let headers = self.headers(query)?;
        let turns = headers.iter().map(|header| self.load(header));
        turns.filter_map(Result::transpose).collect()
    }
}
