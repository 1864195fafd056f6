//! Built-in tools: read, bash, edit, write, grep, find, ls, and the trait all tools share.
//!
//! This is the only crate with a shell. It knows nothing of sessions, models or protocols.

mod tool;

pub use tool::{Tool, ToolContext, ToolError, ToolOutput, UpdateSink};
