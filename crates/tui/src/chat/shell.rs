//! Shell commands of the user, and what they print while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use pinion_agent::{Answer, Command, Follower};
use tokio::sync::{Notify, mpsc};

use super::state::{State, Turn};
use crate::transcript::ShellId;

/// How much of what is printed may wait to be shown.
const ROOM: usize = 256 * 1024;

/// The commands that run.
#[derive(Debug, Default)]
pub(super) struct Shells {
    running: usize,
}

impl Shells {
    pub fn is_running(&self) -> bool {
        self.running > 0
    }
}

/// Brings what a command prints to the chat.
#[derive(Debug)]
struct Echo {
    id: ShellId,
    turns: mpsc::UnboundedSender<Turn>,
    load: Arc<Load>,
}

#[derive(Debug, Default)]
struct Load {
    bytes: AtomicUsize,
    taken: Notify,
}

impl Follower for Echo {
    fn printed(&self, text: &str) {
        let (id, text, load) = (self.id, text.to_owned(), Arc::clone(&self.load));
        load.bytes.fetch_add(text.len(), Ordering::AcqRel);
        let show = move |state: &mut State| {
            load.bytes.fetch_sub(text.len(), Ordering::AcqRel);
            load.taken.notify_waiters();
            state.transcript.shell_output(id, &text);
        };
        // A chat that has ended shows nothing.
        let _ = self.turns.send(Box::new(show));
    }

    fn has_room(&self) -> bool {
        self.turns.is_closed() || self.load.bytes.load(Ordering::Acquire) < ROOM
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let taken = self.load.taken.notified();
                if self.has_room() {
                    return;
                }
                tokio::select! {
                    () = taken => {}
                    () = self.turns.closed() => return,
                }
            }
        })
    }
}

impl State {
    /// Runs a command of the user; the model is not told of a private one.
    pub(super) fn run_shell(&mut self, command: &str, is_private: bool) {
        let id = self.transcript.shell_start(command, is_private);
        let follower = Echo {
            id,
            turns: self.turns.clone(),
            load: Arc::default(),
        };
        self.shells.running += 1;
        let command = Command::Bash {
            command: command.to_owned(),
            exclude_from_context: is_private,
            follower: Some(Arc::new(follower)),
        };
        self.ask(command, move |state, result| {
            state.shells.running -= 1;
            match result {
                Ok(Answer::Bash(outcome)) => state.transcript.shell_end(id, Ok(&outcome)),
                Ok(_) => {}
                Err(error) => state.transcript.shell_end(id, Err(&error.to_string())),
            }
        });
    }
}
