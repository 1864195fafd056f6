//! Reads of the session that may need its file.
//!
//! Of a large session only links are in memory; its messages stay in the file until a command, a compaction or a hook
//! needs them. Such a read happens on another thread, so that a disk or mount that does not answer blocks neither this
//! session nor others. Commands sent after a command that reads wait for its answer for at most [`COMMAND_HOLD`]; an abort
//! from then on, the end of the session or [`FILE_TIMEOUT`](crate::save::FILE_TIMEOUT) end the wait for the file.

use std::future::Future;
use std::sync::mpsc;

use pinion_session::Store;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::replacement::with_time_limit;
use crate::save::{COMMAND_HOLD, HOOK_TIMEOUT};
use crate::{Answer, EngineError, Event, Reply};

/// A command that waits for a read, until it is dropped.
struct ReadingCommand<'a>(&'a Core);

impl<'a> ReadingCommand<'a> {
    fn new(core: &'a Core) -> Self {
        core.state().reading_commands += 1;
        Self(core)
    }
}

impl Drop for ReadingCommand<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.reading_commands -= 1;
        state.slow_saves.wake_commands();
    }
}

impl Core {
    /// Calls `read` with the session as it is now, on another thread if messages are only in the file.
    pub async fn read_session<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        read: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let snapshot = {
            let state = self.state();
            if !state.store.is_partly_in_file() {
                return Ok(read(&state.store));
            }
            state.store.snapshot()
        };
        let done = with_time_limit(cancel, move || read(&snapshot)).await;
        done.map_err(EngineError::NotRead)
    }

    /// Answers a command that reads. For a short time, later commands wait until it is answered.
    pub async fn answer_with(
        &self,
        reading: impl Future<Output = Result<Answer, EngineError>>,
        reply: Reply,
    ) {
        reply.send(self.hold_commands_during(reading).await);
    }

    async fn hold_commands_during<T>(&self, reading: impl Future<Output = T>) -> T {
        let held = ReadingCommand::new(self);
        tokio::pin!(reading);
        let hold = tokio::time::sleep(COMMAND_HOLD);
        tokio::select! {
            biased;
            done = &mut reading => return done,
            () = hold => drop(held),
        }
        reading.await
    }

    /// [`Core::read_session`] for the thread of a hook, which may block.
    pub fn read_session_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let snapshot = {
            let state = self.state();
            if !state.store.is_partly_in_file() {
                return Ok(read(&state.store));
            }
            state.store.snapshot()
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("history-read".to_owned());
        let started = thread.spawn(move || {
            // The hook may have stopped waiting.
            let _ = sender.send(read(&snapshot));
        });
        let seconds = HOOK_TIMEOUT.as_secs();
        started
            .ok()
            .and_then(|_| receiver.recv_timeout(HOOK_TIMEOUT).ok())
            .ok_or_else(|| {
                EngineError::NotRead(format!("the file system did not answer within {seconds} s"))
            })
    }

    /// Rebuilds the conversation from the session. If its file cannot be read in time, the conversation stays as it is,
    /// and a fault is emitted. An abort ends the wait only after [`COMMAND_HOLD`], because the change that needs it was made.
    pub async fn rebuild_messages(&self, cancel: &CancellationToken) {
        loop {
            let reading = self.read_session(&self.stop, |store| {
                let leaf = store.leaf().map(str::to_owned);
                (leaf, store.context().messages)
            });
            let late_abort = async {
                tokio::time::sleep(COMMAND_HOLD).await;
                cancel.cancelled().await;
            };
            let read = tokio::select! {
                biased;
                read = reading => read,
                () = late_abort => Err(EngineError::NotRead("the file system did not answer before the abort".into())),
            };
            let (leaf, messages) = match read {
                Ok(read) => read,
                Err(error) => {
                    return self.emit(Event::Fault {
                        source: "session".into(),
                        during: "read".into(),
                        error: error.to_string(),
                    });
                }
            };
            let messages = self.shown(messages);
            let mut state = self.state();
            // A hook may have appended a message meanwhile.
            if state.store.leaf() == leaf.as_deref() {
                state.messages = messages;
                return;
            }
        }
    }
}
