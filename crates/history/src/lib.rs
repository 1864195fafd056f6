//! The stored conversations of the Pinocchio front, in two independent stores.
//!
//! | store | holds | purpose |
//! |---|---|---|
//! | [`TurnStore`] | turns: the model's context and answers, as [`Turn`]s | continuing a conversation |
//! | [`TimelineStore`] | numbered events, the entities derived from them, every version of those | showing a conversation |
//!
//! Both traits are synchronous: the caller chooses the thread. The front decides the meaning and
//! the numbers of events and the entities they produce; the stores treat payloads as JSON text and never
//! parse them. Lists and exports for people are written by the functions of `report.rs`.

mod canonical;
mod choice;
mod error;
mod report;
mod sql;
mod timeline;
mod transcript;
mod turn;
mod turns;
mod yaml;

pub use choice::{
    Backend, StoreChoice, check_timeline, check_turns, open_timeline, open_turns, read_timeline,
    read_turns,
};
pub use error::HistoryError;
pub use report::{
    ExportForm, ListForm, ReportError, ShowForm, TimelineExport, TimelineSelection, TurnExport,
    TurnSelection, list_sessions, list_turns, show_events, show_timeline, show_turn,
};
pub use timeline::{
    EntityChange, Fault, MemoryTimeline, Rebuild, TimelineEntity, TimelineEvent, TimelineSession,
    TimelineSnapshot, TimelineStore, View, rebuild,
};
pub use transcript::{Author, Entry, Part, Transcript, moment};
pub use turn::{Block, BlockKind, Map, Turn};
pub use turns::{MemoryTurns, SavedTurn, TurnHeader, TurnQuery, TurnSave, TurnStore};
pub use yaml::to_yaml;
