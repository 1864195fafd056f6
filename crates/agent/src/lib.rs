//! The engine: a task that owns one session, receives commands and emits numbered events.
//!
//! It runs the loop of model and tools, holds the queues, retries, compacts, and writes each entry to the session file
//! before it emits the event for it. It names no protocol: fronts turn lines into [`Command`]s and [`Event`]s into
//! lines.

#![warn(missing_docs)]

mod bash;
mod boundary;
mod call_output;
mod calls;
mod child;
mod command;
mod compaction;
mod companions;
mod config;
mod convert;
mod core;
mod emitter;
mod error;
mod estimate;
mod event;
mod gate;
mod history;
mod hook_api;
mod hooks;
mod models;
mod nested;
mod progress;
mod prompt;
mod replacement;
mod run;
mod save;
mod session;
mod spans;
mod state;
mod supply;
mod system_message;
mod toolbox;
mod tree;
mod views;

pub use boundary::{Boundary, BoundaryChanges, BoundaryEntry, RunOutcome};
pub use child::ChildSpec;
pub use command::{
    Answer, BranchSummary, Command, Cycled, Delivery, Disposition, Navigation, Preparation, Prompt,
    Reply, StateView,
};
pub use companions::{Companions, Participant};
pub use config::{
    Config, EngineBehaviour, EngineSettings, Expanded, Expander, Models, Preferences,
    ProjectSwitches, SessionVariables, StatsScope, Steering, SystemPrompt, ToolFilter, ToolOrder,
};
pub use error::EngineError;
pub use event::{
    CallDetail, CompactionReason, CompactionResult, Event, Listener, SavedCompaction,
    SummaryPurpose, ToolRun,
};
pub use gate::{Admission, Gate, Maker, Verdict};
pub use hook_api::{MessageTiming, SessionApi};
pub use hooks::{
    Compacted, CompactionChoice, CompactionPlan, FailedCompaction, ForkPosition, Hooks, Input,
    InputOutcome, Moment, NavigationChoice, NavigationPlan, Origin, Replacement, RequestContext,
    RunStart, RunStartChanges, SelectionSource, ToolCallResult, ToolGate, UserBash,
    UserBashOutcome,
};
pub use pinion_session::Stats;
pub use pinion_tools::{
    BashOutcome, ChangedTexts, Follower, Hunk, TextChange, ToolOutput, prepare_encoded_image,
};
pub use session::{Handle, Session, Stopper};
pub use supply::{Reach, ToolSupply};
