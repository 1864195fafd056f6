//! What is kept of a conversation of the Pinocchio front, in two stores that know nothing of each other.
//!
//! | store | holds | is for |
//! |---|---|---|
//! | [`TurnStore`] | turns: what the model was told and said, as [`Turn`]s | going on with a conversation |
//! | [`TimelineStore`] | numbered events, the entities made from them, every version of those | looking at a conversation |
//!
//! Both traits are synchronous: whoever calls them decides on which thread. What an event means, how it is numbered
//! and which entities follow from it is the business of the front; payloads are JSON text here and are never looked into.

mod canonical;
mod choice;
mod error;
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
pub use timeline::{
    EntityChange, Fault, MemoryTimeline, Rebuild, TimelineEntity, TimelineEvent, TimelineSession,
    TimelineSnapshot, TimelineStore, View, rebuild,
};
pub use transcript::{Entry, Part, Transcript, Who, moment};
pub use turn::{Block, BlockKind, Map, Turn};
pub use turns::{MemoryTurns, SavedTurn, TurnHeader, TurnQuery, TurnSave, TurnStore};
pub use yaml::to_yaml;
