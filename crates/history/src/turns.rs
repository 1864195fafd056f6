//! Turns: what the model was told and said at the end of each run.

mod database;
mod memory;
mod schema;
mod snapshot;

pub(crate) use database::DatabaseTurns;
pub use memory::MemoryTurns;
pub(crate) use snapshot::Snapshot;

use crate::{HistoryError, Turn};

/// A turn to keep.
#[derive(Debug, Clone, Copy)]
pub struct TurnSave<'a> {
    /// The conversation; on the command line the same as the session.
    pub conversation: &'a str,
    /// The session.
    pub session: &'a str,
    /// The turn, whose id must not be empty.
    pub turn: &'a Turn,
    /// `final`, `failed`, or another word of the program that saves.
    pub phase: &'a str,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// What ran it; empty: what its metadata say.
    pub runtime_key: &'a str,
    /// The run; empty: what its metadata say.
    pub inference_id: &'a str,
}

/// A turn that was kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedTurn {
    /// The conversation.
    pub conversation: String,
    /// The session.
    pub session: String,
    /// When in the run it was saved.
    pub phase: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// What ran it last; may be empty.
    pub runtime_key: String,
    /// The last run that gave its id; may be empty.
    pub inference_id: String,
    /// Blocks as they were then; metadata and data as they were saved last.
    pub turn: Turn,
}

/// What is known of a kept turn without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnHeader {
    /// The conversation.
    pub conversation: String,
    /// The session.
    pub session: String,
    /// The turn.
    pub turn_id: String,
    /// When in the run it was saved.
    pub phase: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// How many blocks it has.
    pub blocks: u64,
}

/// Which turns to list. The default is: the last 200.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnQuery {
    /// Only of this conversation.
    pub conversation: Option<String>,
    /// Only of this session.
    pub session: Option<String>,
    /// Only of this phase.
    pub phase: Option<String>,
    /// Only those saved at this moment or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// At most this many; 200 unless given.
    pub limit: Option<usize>,
}

impl TurnQuery {
    /// Turns listed when no limit is given.
    pub const LIMIT: usize = 200;

    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::LIMIT)
    }
}

/// Where turns are kept.
pub trait TurnStore: Send {
    /// Keeps a turn, all or nothing. One of the same conversation, session, id, phase and moment is replaced.
    fn save(&mut self, save: &TurnSave<'_>) -> Result<(), HistoryError>;

    /// The turn of a conversation saved last in this phase.
    fn latest(
        &mut self,
        conversation: &str,
        phase: &str,
    ) -> Result<Option<SavedTurn>, HistoryError>;

    /// What there is, the newest first.
    fn headers(&mut self, query: &TurnQuery) -> Result<Vec<TurnHeader>, HistoryError>;

    /// The turn a header tells of, unless it was replaced since.
    fn load(&mut self, header: &TurnHeader) -> Result<Option<SavedTurn>, HistoryError>;

    /// Turns, the newest first.
    fn list(&mut self, query: &TurnQuery) -> Result<Vec<SavedTurn>, HistoryError> {
        let headers = self.headers(query)?;
        let turns = headers.iter().map(|header| self.load(header));
        turns.filter_map(Result::transpose).collect()
    }
}
