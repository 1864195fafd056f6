//! Runs TypeScript extensions in an embedded JavaScript engine.
//!
//! A [`Script`] is one thread with one engine on it. Extensions live in generations: a generation is a realm with its
//! own globals, whose modules are evaluated afresh. The program and its extensions exchange JSON text. An extension
//! reaches the machine through the native operations in `ops`, and the program through [`Services`].

mod api;
mod listing;
mod ops;
mod script;
mod services;

pub use api::{
    ApiRelease, Bridge, Dialogs, ExtensionEntry, ExtensionReport, Extensions, Flag, FlagKind,
    InputSource, LoadFailure, LoadProblem, Loaded, Mode, Options, PromptContextFile, PromptOptions,
    PromptSkill, RecordSink, RoomCheck,
};
pub use listing::{ListedOutcome, listed_json_line, listed_text};
pub use ops::{changed_environment, environment_variable};
pub use script::{
    Generation, Opening, Script, ScriptError, ScriptOptions, Uncaught, UncaughtKind,
    readable_message,
};
pub use services::{Contribution, NoServices, Services};
