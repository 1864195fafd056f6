//! Appends entries to the session and waits until they are in its file, while another thread writes them.
//!
//! An ordinary save takes microseconds. Commands wait for it, so that an answer never shows an entry that is not in the
//! file. A disk or mount that does not answer changes that step by step: after [`COMMAND_HOLD`] commands are answered
//! again, an abort from then on or [`FILE_TIMEOUT`] ends the wait for the entry, and later entries do not wait. The
//! session then continues in memory, as on a full disk, and each unsaved entry is reported as a fault.

use std::io::{Error, ErrorKind};
use std::task::Waker;
use std::time::{Duration, Instant};

use pinion_session::{EntryId, NewEntry, SaveNumber, SaveProgress, SessionError};
use tokio_util::sync::CancellationToken;

use crate::Event;
use crate::core::Core;

/// Time limit of a save, of a read of the session file, of an export, and of opening or writing another session.
pub(crate) const FILE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that commands wait for a save, a read or a replacement of the session. Only a file system that does not answer takes
/// longer.
pub(crate) const COMMAND_HOLD: Duration = Duration::from_secs(1);

/// Time limit of a save or a read of the session file that blocks the thread of a hook.
pub(crate) const HOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// The steps of a save that does not end.
#[derive(Debug, Default)]
pub(crate) struct SlowSaves {
    /// The save for which commands do not wait.
    released: Option<SaveNumber>,
    /// The save for which entries do not wait.
    abandoned: Option<SaveNumber>,
    /// Wakes the task that waits to receive commands.
    commands: Option<Waker>,
    /// The number of commands that wait for a save.
    waiting_commands: usize,
}

impl SlowSaves {
    /// Wakes the task that waits to receive commands.
    pub(crate) fn wake_commands(&mut self) {
        if let Some(commands) = self.commands.take() {
            commands.wake();
        }
    }

    /// Returns the steps of the saves of another session. Commands that wait for the old one are still counted.
    pub(crate) fn of_next_session(&self) -> Self {
        Self {
            waiting_commands: self.waiting_commands,
            ..Self::default()
        }
    }

    /// Reports whether further commands wait while the save `running` is in progress.
    fn hold_commands(&self, running: Option<SaveNumber>) -> bool {
        match running {
            Some(running) => self.released != Some(running),
            // A command that waited for the last save has not continued yet.
            None => self.waiting_commands > 0,
        }
    }
}

/// A command that waits for a save, until it is dropped.
struct WaitingCommand<'a>(&'a Core);

impl<'a> WaitingCommand<'a> {
    fn new(core: &'a Core) -> Self {
        core.state().slow_saves.waiting_commands += 1;
        Self(core)
    }
}

impl Drop for WaitingCommand<'_> {
    fn drop(&mut self) {
        self.0.state().slow_saves.waiting_commands -= 1;
    }
}

/// Releases the commands when the wait for a save is dropped.
struct ReleaseOnDrop<'a>(&'a Core);

impl Drop for ReleaseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.release_commands();
    }
}

impl Core {
    /// Appends an entry and waits until it is in the session file. A failure is emitted as a fault, and the session
    /// continues in memory.
    pub async fn log(&self, entry: NewEntry, cancel: &CancellationToken) {
        let id = self.push(entry);
        self.save(id, cancel).await;
    }

    /// Appends an entry in memory. A failure is emitted as a fault.
    pub fn push(&self, entry: NewEntry) -> Option<EntryId> {
        let pushed = self.state().store.push(entry);
        pushed.map_err(|error| self.report_unsaved(&error)).ok()
    }

    /// Waits until `id` and everything before it is in the session file. A failure is emitted as a fault.
    pub async fn save(&self, id: Option<EntryId>, cancel: &CancellationToken) {
        if let Some(id) = id
            && let Err(error) = self.wait_until_saved(&id, cancel).await
        {
            self.report_unsaved(&error);
        }
    }

    /// Like [`Core::save`] for a command. The run waits too, so that commands sent together are answered before the events
    /// of a run that one of them started.
    pub async fn save_for_command(&self, id: Option<EntryId>) {
        let _waiting = WaitingCommand::new(self);
        self.save(id, &self.stop).await;
    }

    fn report_unsaved(&self, error: &SessionError) {
        self.emit(Event::Fault {
            source: "session".into(),
            during: "append".into(),
            error: error.to_string(),
        });
    }

    /// Waits until everything is in the session file. Tries again what could not be saved before.
    pub async fn wait_until_all_saved(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(), SessionError> {
        let newest = {
            let mut state = self.state();
            state.store.retry_saving();
            state.store.newest()
        };
        match newest {
            Some(id) => self.wait_until_saved(&id, cancel).await,
            None => Ok(()),
        }
    }

    /// Waits until `id` and everything before it is in the session file.
    pub async fn wait_until_saved(
        &self,
        id: &EntryId,
        cancel: &CancellationToken,
    ) -> Result<(), SessionError> {
        let ended = self.save_ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        if let Some(known) = self.save_result(id) {
            return known;
        }
        let release = ReleaseOnDrop(self);
        let result = async {
            loop {
                ended.as_mut().await;
                ended.set(self.save_ended.notified());
                ended.as_mut().enable();
                if let Some(result) = self.save_result(id) {
                    return result;
                }
            }
        };
        let overdue = async {
            tokio::time::sleep(COMMAND_HOLD).await;
            self.release_commands();
            tokio::select! {
                () = cancel.cancelled() => "before the abort".to_owned(),
                () = tokio::time::sleep(FILE_TIMEOUT - COMMAND_HOLD) => {
                    format!("within {} s", FILE_TIMEOUT.as_secs())
                }
            }
        };
        let result = tokio::select! {
            biased;
            result = result => result,
            limit = overdue => Err(self.abandon(id, &limit)),
        };
        std::mem::forget(release);
        result
    }

    /// Like [`Core::wait_until_saved`] for at most [`HOOK_TIMEOUT`], for a thread that may block.
    pub fn wait_until_saved_blocking(&self, id: &EntryId) -> Result<(), SessionError> {
        let deadline = Instant::now() + HOOK_TIMEOUT;
        loop {
            if let Some(result) = self.save_result(id) {
                return result;
            }
            let wait = self.state().store.save_wait();
            let rest = deadline.saturating_duration_since(Instant::now());
            if wait.is_some_and(|wait| !wait.wait(rest)) {
                let limit = format!("within {} s", HOOK_TIMEOUT.as_secs());
                return Err(self.abandon(id, &limit));
            }
        }
    }

    /// Starts a save of `id` if none is running. Returns its result; `None` if the caller must wait.
    fn save_result(&self, id: &EntryId) -> Option<Result<(), SessionError>> {
        let mut state = self.state();
        let progress = state.store.save_in_background(id, &self.save_listener);
        let running = state.store.running_save();
        if running.is_none() {
            state.slow_saves.wake_commands();
        }
        match progress {
            SaveProgress::Saved => Some(Ok(())),
            SaveProgress::Failed(error) => Some(Err(error)),
            SaveProgress::Running if running == state.slow_saves.abandoned => {
                let unanswered = Error::new(ErrorKind::TimedOut, "the file system does not answer");
                Some(Err(state.store.not_saved(id.clone(), unanswered)))
            }
            SaveProgress::Running => None,
        }
    }

    /// Ends every wait for the running save if commands no longer wait for it.
    pub fn abandon_slow_save(&self) {
        let mut state = self.state();
        let running = state.store.running_save();
        if running.is_some() && running == state.slow_saves.released {
            state.slow_saves.abandoned = running;
            drop(state);
            self.save_ended.notify_waiters();
        }
    }

    /// Ends every wait for the running save. Returns the error for the entry `id`.
    fn abandon(&self, id: &EntryId, limit: &str) -> SessionError {
        self.release_commands();
        self.abandon_slow_save();
        let state = self.state();
        let reason = format!("the file system did not answer {limit}");
        let unanswered = Error::new(ErrorKind::TimedOut, reason);
        state.store.not_saved(id.clone(), unanswered)
    }

    /// Lets commands no longer wait for the running save.
    fn release_commands(&self) {
        let mut state = self.state();
        state.slow_saves.released = state.store.running_save();
        state.slow_saves.wake_commands();
    }

    /// Reports whether commands wait for a save or a read; if so, `waker` is woken when they need not.
    pub fn holds_commands(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        let running = state.store.running_save();
        let held = state.reading_commands > 0 || state.slow_saves.hold_commands(running);
        if held {
            state.slow_saves.commands = Some(waker.clone());
        }
        held
    }

    /// Reports whether the run waits because a command waits for a save.
    pub fn holds_run(&self) -> bool {
        let state = self.state();
        let slow = &state.slow_saves;
        slow.waiting_commands > 0 && slow.hold_commands(state.store.running_save())
    }

    /// [`Core::log`] for a thread that may block.
    pub fn log_blocking(&self, entry: NewEntry) {
        if let Some(id) = self.push(entry) {
            self.save_blocking(&id);
        }
    }

    /// [`Core::save`] for a thread that may block.
    pub fn save_blocking(&self, id: &EntryId) {
        if let Err(error) = self.wait_until_saved_blocking(id) {
            self.report_unsaved(&error);
        }
    }
}
