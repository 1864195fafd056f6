//! Runs shell commands of the user and shows their output.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use pinion_agent::{Answer, Command, Follower};
use tokio::sync::Notify;

use super::state::State;
use crate::feed::ReplySender;
use crate::transcript::ShellId;

/// Bytes of output that may wait to be shown before the command is slowed down.
const MAX_BACKLOG: usize = 256 * 1024;

/// The running commands.
#[derive(Debug, Default)]
pub(super) struct Shells {
    running: usize,
}

impl Shells {
    pub fn is_running(&self) -> bool {
        self.running > 0
    }
}

/// Sends the output of a command to the chat.
#[derive(Debug)]
struct OutputForwarder {
    id: ShellId,
    answers: ReplySender,
    backlog: Arc<OutputBacklog>,
}

#[derive(Debug, Default)]
struct OutputBacklog {
    bytes: AtomicUsize,
    taken: Notify,
}

/// Output on its way to the chat; it counts until it is shown or dropped.
struct OutputChunk {
    text: String,
    backlog: Arc<OutputBacklog>,
}

impl Drop for OutputChunk {
    fn drop(&mut self) {
        self.backlog
            .bytes
            .fetch_sub(self.text.len(), Ordering::AcqRel);
        self.backlog.taken.notify_waiters();
    }
}

impl Follower for OutputForwarder {
    fn printed(&self, text: &str) {
        let id = self.id;
        self.backlog.bytes.fetch_add(text.len(), Ordering::AcqRel);
        let parcel = OutputChunk {
            text: text.to_owned(),
            backlog: Arc::clone(&self.backlog),
        };
        let show = move |state: &mut State| state.transcript.shell_output(id, &parcel.text);
        self.answers.send(Box::new(show));
    }

    fn has_room(&self) -> bool {
        self.answers.is_closed() || self.backlog.bytes.load(Ordering::Acquire) < MAX_BACKLOG
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let taken = self.backlog.taken.notified();
                if self.has_room() {
                    return;
                }
                taken.await;
            }
        })
    }
}

impl State {
    /// Runs a command of the user; the output of a private one is not sent to the model.
    pub(super) fn run_shell(&mut self, command: &str, is_private: bool) {
        let Some(answers) = self.answers.clone() else {
            return;
        };
        let id = self.transcript.shell_start(command, is_private);
        let follower = OutputForwarder {
            id,
            answers,
            backlog: Arc::default(),
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
