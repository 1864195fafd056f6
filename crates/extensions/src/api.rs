//! The extension API: extensions take part in a session and bring tools, commands and providers.
//!
//! What extensions see is JavaScript (`js/api`); here is the other side: it takes part in the session
//! for all of them, and answers what they ask.

mod actions;
mod bridge;
mod dialogs;
mod exec;
mod extensions;
mod growing;
mod held;
mod hooks;
mod instance;
mod loaded;
mod models;
mod moments;
mod options;
mod payload;
mod provider;
mod replacement;
mod sessions;
mod theme;
mod tool;
mod verdicts;
mod work;

pub use bridge::Bridge;
pub use dialogs::{Dialogs, RecordSink};
pub use extensions::{ExtensionEntry, Extensions};
pub use held::RoomCheck;
pub use loaded::{ExtensionReport, Flag, FlagKind, LoadFailure, LoadProblem, Loaded};
pub use options::{InputSource, Options};
