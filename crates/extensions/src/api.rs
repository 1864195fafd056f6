//! The extension API: extensions hook into a session and contribute tools, commands and providers.
//!
//! Extensions see the JavaScript in `js/api`. This module is the Rust side of it: it is one hook of the session on
//! behalf of all extensions, and it answers their requests.

mod actions;
mod boundaries;
mod bridge;
mod children;
mod dialogs;
mod exec;
mod extensions;
mod handler_answers;
mod held_records;
mod hooks;
mod inspect;
mod instance;
mod loaded;
mod models;
mod moments;
mod nested_calls;
mod options;
mod partial_answer;
mod payload;
mod prompt_options;
mod provider;
mod replacement;
mod sessions;
mod theme;
mod tool;
mod virtual_models;
mod work;

pub use bridge::Bridge;
pub use dialogs::{Dialogs, RecordSink};
pub use extensions::{ExtensionEntry, Extensions};
pub use held_records::RoomCheck;
pub use loaded::{ExtensionReport, Flag, FlagKind, LoadFailure, LoadProblem, Loaded};
pub use options::{ApiRelease, InputSource, Mode, Options};
pub use prompt_options::{PromptContextFile, PromptOptions, PromptSkill};
