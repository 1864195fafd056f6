//! The interface between a session and the version of the protocol that its client speaks.

use pinion_agent::Event;
use pinion_message::Message;
use serde_json::Value;

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    Info,
    Warning,
    Error,
}

impl NoticeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// Returns the kind that an extension names.
    pub fn of_extension(name: &str) -> Self {
        match name {
            "warning" => Self::Warning,
            "error" => Self::Error,
            _ => Self::Info,
        }
    }
}

/// Turns what happens in a session into messages of one version of the protocol.
pub(crate) trait Projection: Send {
    /// Sends the updates of an event.
    fn event(&mut self, event: &Event);

    /// A turn begins.
    fn begin_turn(&mut self);

    /// Sends a user's message that the client did not write.
    fn user_message(&mut self, message: &Message);

    /// Sends words of the agent itself; those of one turn are one message.
    fn say(&mut self, text: &str);

    /// Sends a notice. Reports whether the client receives notices.
    fn notice(&mut self, kind: NoticeKind, title: &str, description: Option<&str>) -> bool;

    /// Returns a call for a question about it; `None` if the client does not know the call.
    fn call(&self, id: &str) -> Option<Value>;

    /// Sets the size of the context of the model, in tokens.
    fn set_window(&mut self, window: u64);

    /// Adds to the cost of the session, in USD.
    fn spent(&mut self, cost: f64);

    /// Sends the size of the context.
    fn context(&self, used: u64);

    /// Sends a title (`Some(None)` removes it) and the time of the last message.
    fn session_info(&self, title: Option<Option<&str>>, updated_at: Option<&str>);

    /// Sends the commands that start with `/`.
    fn commands(&self, commands: &Value);

    /// Sends all options.
    fn options(&self, options: &Value);

    /// Sends the mode.
    fn mode(&self, mode: &str);

    /// Creates a call that stands for a question of an extension, and returns it for the question.
    fn made_up_call(&self, id: &str, title: &str) -> Value;

    /// Ends such a call with the answer.
    fn end_made_up_call(&self, id: &str, answer: &str);
}
