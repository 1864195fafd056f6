//! The engine: one session, one inbox of commands, one outlet of numbered events.
//!
//! It runs the loop of model and tools, keeps the queues, retries, compacts, and writes the session
//! log before it tells anyone. It never names a protocol: fronts turn lines into [`Command`]s and
//! [`Event`]s into lines.

#![warn(missing_docs)]

mod bash;
mod calls;
mod command;
mod compaction;
mod config;
mod convert;
mod core;
mod desk;
mod error;
mod estimate;
mod event;
mod gate;
mod hooks;
mod models;
mod outlet;
mod progress;
mod prompt;
mod run;
mod session;
mod sessions;
mod state;
mod toolbox;
mod tree;
mod views;

pub use command::{
    Answer, BranchSummary, Command, Cycled, Delivery, Disposition, Navigation, Preparation, Prompt,
    Reply, StateView,
};
pub use config::{
    Config, Decided, EngineBehaviour, EngineSettings, Expanded, Expander, Models, Preferences,
    StatsScope, Steering, SystemPrompt, ToolFilter, ToolOrder,
};
pub use desk::{Desk, Saying};
pub use error::EngineError;
pub use event::{
    CompactionReason, CompactionResult, Event, Listener, SavedCompaction, SummaryPurpose, ToolRun,
};
pub use gate::{Admission, Gate, Maker, Verdict};
pub use hooks::{
    CompactionChoice, CompactionPlan, ForkPosition, Hooks, Input, InputOutcome, Moment,
    NavigationChoice, NavigationPlan, Opening, OpeningChanges, Origin, Replacement,
    SelectionSource, ToolCallResult, ToolGate, UserBash, UserBashOutcome,
};
pub use pinion_session::Stats;
pub use pinion_tools::{BashOutcome, Follower, ToolOutput};
pub use session::{Handle, Session, Stopper};
