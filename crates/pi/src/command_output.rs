//! Sends the output of a client's shell command to the client while it runs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::Follower;
use serde_json::Value;

use crate::outgoing::{CommandId, Out, Sink};

/// Puts the output of one command into the outgoing queue. The command waits while the queue is full.
pub(crate) struct CommandOutput<S> {
    out: S,
    by: Arc<CommandId>,
}

impl<S: Sink> CommandOutput<S> {
    /// Follows the command with the request id `id`.
    pub fn new(out: S, id: Option<Value>) -> Self {
        Self {
            out,
            by: Arc::new(CommandId(id)),
        }
    }
}

impl<S: Sink> Follower for CommandOutput<S> {
    fn printed(&self, text: &str) {
        self.out.push(Out::Printed {
            by: Arc::clone(&self.by),
            text: text.to_owned(),
        });
    }

    fn has_room(&self) -> bool {
        self.out.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.out.room())
    }
}

impl<S> std::fmt::Debug for CommandOutput<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CommandOutput")
    }
}
