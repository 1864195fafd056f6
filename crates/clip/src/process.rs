//! The process of a clip: its start, its supervision, and its end.

mod detect;
mod launch;
mod lines;
pub(crate) mod outbox;
mod reader;
mod requests;
mod stderr;
mod supervise;

pub use launch::{Programs, check_program, is_secret};
pub(crate) use launch::{bun, git, npm};
pub(crate) use supervise::supervise;
