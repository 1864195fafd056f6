//! Whom the chat talks to.

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Event, Reply};
use pinion_session::SessionInfo;
use serde_json::{Map, Value};

/// Whom the chat talks to: a session of our own, or a command with its turns.
pub trait Host: Send + Sync {
    /// Asks the session something; `reply` is answered exactly once. Must not block.
    fn send(&self, command: Command, reply: Reply);

    /// Answers the dialog with this id: members `value`, `confirmed` or `cancelled`.
    fn answer(&self, id: &str, response: Map<String, Value>);

    /// The sessions there are to go on with, those used last first.
    fn sessions(&self, scope: Scope) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>>;

    /// What can be asked of it.
    fn abilities(&self) -> Abilities;
}

/// Whose sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of this directory.
    Project,
    /// All of them.
    Everywhere,
}

/// What can be asked of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    /// Everything: a session of our own.
    Session,
    /// Prompts, one at a time, and stopping them: a command with its turns.
    Turns,
}

/// What the chat is told.
#[derive(Debug)]
pub enum Incoming {
    /// Something happened in the session.
    Event(Event),
    /// A record of the dialog protocol: somebody asks or shows something. JSON as a client would get it.
    Record(String),
    /// A line that something printed beside the conversation: a warning, the console of an extension.
    Printed(String),
    /// The program is to end, with this exit code.
    End(u8),
}
