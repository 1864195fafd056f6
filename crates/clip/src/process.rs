//! The process of a clip: started when it is needed, looked after while it lives, gone when we are.

mod detect;
mod launch;
mod lines;
pub(crate) mod outbox;
mod reader;
mod requests;
mod stderr;
mod supervise;

pub use launch::{Programs, is_secret};
pub(crate) use launch::{bun, git, npm};
pub(crate) use supervise::supervise;
