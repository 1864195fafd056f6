//! TypeScript extensions in an embedded JavaScript engine.
//!
//! A [`Script`] is one thread with one engine on it. Extensions live in generations: a realm with
//! globals of its own, whose modules are evaluated afresh. What the program and an extension say to
//! each other crosses as JSON text; what an extension may ask of the machine is a native operation
//! in `ops`, and what it may ask of the program is [`Services`].

mod api;
mod ops;
mod script;
mod services;

pub use api::{
    Bridge, Dialogs, ExtensionEntry, ExtensionReport, Extensions, Flag, FlagKind, InputSource,
    LoadFailure, LoadProblem, Loaded, Options, RecordSink, RoomCheck,
};
pub use ops::{changed_environment, environment_variable};
pub use script::{
    Generation, Opening, Script, ScriptError, ScriptOptions, Uncaught, UncaughtKind,
    readable_message,
};
pub use services::{Contribution, NoServices, Services};
