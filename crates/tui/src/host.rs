//! The interface between the chat and the session it shows.

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Event, Reply};
use pinion_session::SessionInfo;
use serde_json::{Map, Value};

/// The session the chat shows: pinion's own, or the turns of a Pinocchio command.
pub trait Host: Send + Sync {
    /// Sends a command to the session, which answers `reply` exactly once. Must not block.
    fn send(&self, command: Command, reply: Reply);

    /// Answers the dialog with this id: members `value`, `confirmed` or `cancelled`.
    fn answer(&self, id: &str, response: Map<String, Value>);

    /// Lists the sessions that can be resumed, the last used first.
    fn sessions(&self, scope: SessionScope)
    -> BoxFuture<'static, Result<Vec<SessionInfo>, String>>;

    fn abilities(&self) -> Abilities;
}

/// The sessions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionScope {
    /// The sessions of this directory.
    Project,
    /// The sessions of all directories.
    Everywhere,
}

/// The commands that a host supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    /// All of them: a session of pinion's own.
    Session,
    /// Prompts, one at a time, and cancelling them: a Pinocchio command with its turns.
    Turns,
}

/// A message to the chat.
#[derive(Debug)]
pub enum Incoming {
    /// An event of the session.
    Event(Event),
    /// A record of the dialog protocol, which asks a question or shows something; JSON as sent to
    /// clients of pi RPC.
    Record(String),
    /// A line that something printed beside the conversation: a warning, the console of an
    /// extension.
    Printed(String),
    /// The program should exit with this code.
    End(u8),
}
