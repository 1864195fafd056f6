//! What a command of the client prints, on its way to the client.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::Follower;
use serde_json::Value;

use crate::outgoing::{AskedId, Out, Sink};

/// Puts what one command prints where the writer finds it; while there is no room, the command waits.
pub(crate) struct Echo<S> {
    out: S,
    by: Arc<AskedId>,
}

impl<S: Sink> Echo<S> {
    /// An echo of the command that was asked for under `id`.
    pub fn new(out: S, id: Option<Value>) -> Self {
        Self {
            out,
            by: Arc::new(AskedId(id)),
        }
    }
}

impl<S: Sink> Follower for Echo<S> {
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

impl<S> std::fmt::Debug for Echo<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Echo")
    }
}
