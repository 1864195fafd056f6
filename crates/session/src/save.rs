//! Saves: entries on their way from a [`Store`] to its file.
//!
//! A store on an async thread must not write there: a disk or network mount that hangs would stop that thread. A save is
//! therefore a value that holds the entries which are missing in the file, and any thread can run it. One save runs at a
//! time; entries that are pushed meanwhile belong to the next one.
//!
//! [`Store::append`] runs saves on the caller's thread. [`Store::save_in_background`] runs them on a thread that belongs
//! to the store. It starts when a save needs it and ends when none came for a second, so that idle sessions have none.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::entry::{Entry, EntryId};
use crate::session_file::SessionFile;
use crate::store::SessionLocation;
use crate::{Notice, SessionError, Store};

/// Saves that wait for the thread: one store has one save at a time.
const QUEUE_LIMIT: usize = 1;
/// Time after which a thread without work ends. It takes 20 kB of memory.
const THREAD_IDLE: Duration = Duration::from_secs(1);

/// The number of a save among those of its store.
pub type SaveNumber = u64;

/// Called after each save in the background, on the thread that ran it.
pub type SaveListener = Arc<dyn Fn() + Send + Sync>;

/// The progress of an entry.
#[derive(Debug)]
pub enum SaveProgress {
    /// The entry is in the file, or the session has no file.
    Saved,
    /// A save is running. The listener is called when it has ended.
    Running,
    /// The save failed with [`SessionError::NotSaved`]. The next save tries again.
    Failed(SessionError),
}

/// The saves of a store.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    thread: Option<SaveThread>,
    /// The save in the background whose outcome was not taken yet.
    running: Option<Arc<RunningSave>>,
    /// The number of the last save in the background.
    number: SaveNumber,
    /// The failure of the last save.
    failure: Option<SaveFailure>,
}

#[derive(Debug)]
struct SaveFailure {
    covered: usize,
    error: io::Error,
}

/// The entries that are missing in a file.
#[derive(Debug)]
struct Save {
    target: SaveTarget,
    header: Bytes,
    entries: Vec<Entry>,
    /// The number of entries that the store has.
    covered: usize,
}

#[derive(Debug)]
enum SaveTarget {
    Create(PathBuf),
    Append(SessionFile),
}

#[derive(Debug)]
struct SaveOutcome {
    /// The file after the save; `None` if it is unchanged or could not be created.
    file: Option<SessionFile>,
    notices: Vec<Notice>,
    result: io::Result<()>,
}

impl Save {
    fn run(self) -> SaveOutcome {
        let mut notices = Vec::new();
        let file = match self.target {
            SaveTarget::Create(path) => SessionFile::create(&path),
            SaveTarget::Append(file) => Ok(file),
        };
        let (file, result) = match file {
            Ok(mut file) => {
                let result = file.append(&self.header, &self.entries, &mut notices);
                (Some(file), result)
            }
            Err(error) => (None, Err(error)),
        };
        SaveOutcome {
            file,
            notices,
            result,
        }
    }
}

/// A save in the background.
#[derive(Debug)]
pub(crate) struct RunningSave {
    covered: usize,
    state: Mutex<RunningState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct RunningState {
    ended: bool,
    outcome: Option<SaveOutcome>,
}

impl RunningSave {
    fn state(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, outcome: SaveOutcome) {
        *self.state() = RunningState {
            ended: true,
            outcome: Some(outcome),
        };
        self.ended.notify_all();
    }
}

/// Waits for a save on a thread that may block.
#[derive(Debug)]
pub struct SaveWait(Arc<RunningSave>);

impl SaveWait {
    /// Returns when the save has ended, at the latest after `limit`. Returns false if it has not ended.
    pub fn wait(&self, limit: Duration) -> bool {
        let running = |state: &mut RunningState| !state.ended;
        let waited = self
            .0
            .ended
            .wait_timeout_while(self.0.state(), limit, running);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }
}

/// A save for the thread. A thread that panics drops it, which counts as a failure.
struct SaveJob {
    save: Option<Save>,
    running: Arc<RunningSave>,
    listener: SaveListener,
}

impl SaveJob {
    fn run(mut self) {
        if let Some(save) = self.save.take() {
            self.running.end(save.run());
        }
    }
}

impl Drop for SaveJob {
    fn drop(&mut self) {
        if !self.running.state().ended {
            self.running.end(SaveOutcome {
                file: None,
                notices: Vec::new(),
                result: Err(io::Error::other("the thread that writes the session ended")),
            });
        }
        (self.listener)();
    }
}

impl std::fmt::Debug for SaveJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SaveJob").field(&self.save).finish()
    }
}

impl Saves {
    /// Runs a save on the thread, which is started if there is none.
    fn start(&mut self, save: Save, listener: &SaveListener) {
        let running = Arc::new(RunningSave {
            covered: save.covered,
            state: Mutex::default(),
            ended: Condvar::new(),
        });
        self.running = Some(Arc::clone(&running));
        self.number += 1;
        let job = SaveJob {
            save: Some(save),
            running,
            listener: Arc::clone(listener),
        };
        let unsent = match &self.thread {
            None => Some(job),
            Some(thread) => thread.send(job),
        };
        if let Some(job) = unsent {
            self.thread = SaveThread::start(job);
        }
    }
}

/// The sender of a thread that runs saves. Dropping it ends the thread after its last save.
#[derive(Debug)]
struct SaveThread {
    jobs: SyncSender<SaveJob>,
    /// The thread takes no more jobs. Held while a job is sent, so that none is lost between the two.
    retired: Arc<Mutex<bool>>,
}

impl SaveThread {
    /// Starts a thread with its first job. Without a thread the job is dropped, and the save has failed.
    fn start(job: SaveJob) -> Option<Self> {
        let (sender, jobs) = mpsc::sync_channel(QUEUE_LIMIT);
        let retired = Arc::default();
        let own = Arc::clone(&retired);
        let thread = std::thread::Builder::new().name("session-save".to_owned());
        thread.spawn(move || run_jobs(&jobs, &own)).ok()?;
        sender.send(job).ok()?;
        Some(Self {
            jobs: sender,
            retired,
        })
    }

    /// Returns the job if the thread has ended.
    fn send(&self, job: SaveJob) -> Option<SaveJob> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        if *retired {
            return Some(job);
        }
        match self.jobs.try_send(job) {
            Ok(()) => None,
            Err(mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job)) => Some(job),
        }
    }
}

/// Runs jobs until the store has ended or none came for a while.
fn run_jobs(jobs: &Receiver<SaveJob>, retired: &Mutex<bool>) {
    loop {
        if let Ok(job) = jobs.recv_timeout(THREAD_IDLE) {
            job.run();
            continue;
        }
        let mut retired = retired.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(job) = jobs.try_recv() else {
            *retired = true;
            return;
        };
        drop(retired);
        job.run();
    }
}

impl Store {
    /// Saves the entry in the background, with all others that are not in the file, and returns its progress. Does not
    /// block and takes no time if a save is running.
    ///
    /// An entry of another store counts as saved.
    pub fn save_in_background(&mut self, id: &EntryId, listener: &SaveListener) -> SaveProgress {
        self.take_outcome();
        let Some(position) = self.tree.position(id) else {
            return SaveProgress::Saved;
        };
        if self.unsaved().is_none_or(|first| position < first) {
            return SaveProgress::Saved;
        }
        if self.saves.running.is_some() {
            return SaveProgress::Running;
        }
        if let Some(failure) = &self.saves.failure
            && position < failure.covered
        {
            let error = &failure.error;
            let copy = io::Error::new(error.kind(), error.to_string());
            return SaveProgress::Failed(self.not_saved(id.clone(), copy));
        }
        let Some(save) = self.next_save() else {
            return SaveProgress::Saved;
        };
        self.saves.failure = None;
        self.saves.start(save, listener);
        SaveProgress::Running
    }

    /// Returns the save in the background that has not ended, or has ended since the last call of
    /// [`Store::save_in_background`].
    pub fn running_save(&self) -> Option<SaveNumber> {
        self.saves.running.as_ref().map(|_| self.saves.number)
    }

    /// Lets [`Store::save_in_background`] try again to save entries that could not be saved.
    pub fn retry_saving(&mut self) {
        self.take_outcome();
        self.saves.failure = None;
    }

    /// Returns a way to wait for the running save.
    pub fn save_wait(&self) -> Option<SaveWait> {
        self.saves.running.clone().map(SaveWait)
    }

    /// Returns the error for an entry that is not in the file.
    pub fn not_saved(&self, id: EntryId, source: io::Error) -> SessionError {
        SessionError::NotSaved {
            id,
            path: self.file().map(Into::into).unwrap_or_default(),
            pending: self.pending(),
            source,
        }
    }

    /// Writes the entries that are not in the file, if the session has one. Blocks.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        if let Some(wait) = self.save_wait() {
            while !wait.wait(Duration::MAX) {}
            self.take_outcome();
        }
        while let Some(save) = self.next_save() {
            let covered = save.covered;
            self.take(save.run(), covered);
            if let Some(failure) = self.saves.failure.take() {
                return Err(failure.error);
            }
        }
        Ok(())
    }

    /// Returns the position of the first entry that should be in the file and is not.
    fn unsaved(&self) -> Option<usize> {
        let pending = self.pending();
        (pending > 0).then(|| self.tree.entries().len() - pending)
    }

    /// Returns the save of everything that is missing in the file.
    fn next_save(&self) -> Option<Save> {
        let first = self.unsaved()?;
        let target = match &self.location {
            SessionLocation::Later(path) => SaveTarget::Create(path.clone()),
            SessionLocation::File(file) => SaveTarget::Append(file.clone()),
            SessionLocation::Memory | SessionLocation::ReadOnly(_) => return None,
        };
        Some(Save {
            target,
            header: self.header.line(),
            entries: self.tree.entries()[first..].to_vec(),
            covered: self.tree.entries().len(),
        })
    }

    /// Takes the outcome of a save in the background if it has ended.
    fn take_outcome(&mut self) {
        let Some(running) = &self.saves.running else {
            return;
        };
        let outcome = running.state().outcome.take();
        if let Some(outcome) = outcome {
            let covered = running.covered;
            self.saves.running = None;
            self.take(outcome, covered);
        }
    }

    fn take(&mut self, outcome: SaveOutcome, covered: usize) {
        self.notices.extend(outcome.notices);
        if let Some(file) = outcome.file {
            if let Some(error) = file.file().take_failure() {
                let path = file.path().display();
                self.notices.push(Notice::new(
                    "session_not_durable",
                    format!("{path} could not be flushed to disk: {error}"),
                ));
            }
            self.location = SessionLocation::File(file);
        }
        self.saves.failure = outcome
            .result
            .err()
            .map(|error| SaveFailure { covered, error });
    }
}
