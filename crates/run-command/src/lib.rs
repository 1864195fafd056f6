//! Runs of command files: one run, the runs that a client requests on standard input, or a chat.
//!
//! A [`Job`] is a command with its values filled in; [`Job::run`] runs it to its end. Each turn is a fresh engine on the
//! blocks of the turn before it. Turns are stored when a run ends, frames as they arrive.
//!
//! The program implements [`RunHost`], which reads settings and builds the parts of an engine. The protocol is the crate
//! `pinocchio`, which opens no files, sockets or processes; the files are read by the crate `commands`.

mod chat;
mod conversation;
mod debug_file;
mod end;
mod engine;
mod error;
mod frames;
mod host;
mod images;
mod job;
mod model;
mod options;
mod profile_request;
mod question;
mod requests;
mod stderr;
mod text;

pub use end::End;
pub use error::RunError;
pub use host::{EngineParts, EngineRequest, RunHost};
pub use job::Job;
pub use options::{ContinueInChat, Mode, NamedStore, Options, RunMode, built_ins, leading};
pub use stderr::RedirectedStderr;
