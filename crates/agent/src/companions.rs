//! The parts of a program that accompany a session: they begin and end with it and ask the user questions.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// A part of the program besides the engine that shows dialogs to the client.
pub trait Participant: Send + Sync {
    /// Receives the user's choice in the dialog `id`. Unknown, late and repeated ids are ignored.
    fn choice(&self, id: &str, choice: &Map<String, Value>);

    /// Reports whether the program should end after the current command is answered.
    fn wants_to_end(&self) -> bool;

    /// The client closed its input; no more choices follow.
    fn hang_up(&self) {}
}

/// The parts besides the engine that begin and end with a session, such as extensions and approvals.
pub trait Companions: Send + Sync {
    /// Returns the parts that ask the user questions.
    fn participants(&self) -> Vec<Arc<dyn Participant>>;

    /// Returns the work that must end before a command changes the session; `None` if there is none.
    fn begin(&self) -> Option<BoxFuture<'static, ()>>;

    /// Reports whether [`end`](Self::end) reads the session, which must not be dropped before.
    fn read_session(&self) -> bool;

    /// Informs the parts that the session ends, and waits a limited time for them.
    fn end(&self) -> BoxFuture<'_, ()>;

    /// Waits until a part requests the end of the program, and returns its exit code.
    fn exited(&self) -> BoxFuture<'_, u8>;
}
