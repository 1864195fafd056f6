//! The file with all of a command's output. A thread of its own writes it, because the temporary directory may be on a
//! disk or mount that does not answer.
//!
//! A command that prints faster than its log can be written waits. After [`LOG_TIMEOUT`] without room the log is given
//! up, and the command continues without it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Time limit of a wait for the log.
const LOG_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a wait for the log after the command was cancelled.
const CANCELLED_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that the creation of the file normally takes at most.
const OPENING_TIME: Duration = Duration::from_millis(100);
/// Bytes that may wait to be written.
const BUFFER_LIMIT: usize = 1 << 20;

/// The log of one command. Copies are the same log.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogFile(Arc<LogEnd>);

/// Ends the output when the last copy of the log is dropped, so that the thread ends.
#[derive(Debug, Default)]
struct LogEnd(Arc<Shared>);

impl Drop for LogEnd {
    fn drop(&mut self) {
        self.0.log().ended = true;
        self.0.work.notify_one();
    }
}

#[derive(Debug, Default)]
struct Shared {
    log: Mutex<Log>,
    /// Wakes the thread.
    work: Condvar,
    /// Notified when the thread has created the file, has written, or has ended.
    progress: Notify,
}

#[derive(Debug, Default)]
struct Log {
    stage: Stage,
    /// Bytes that wait to be written.
    buffer: Vec<u8>,
    /// The output has ended.
    ended: bool,
    /// The time at which the thread was started.
    started: Option<Instant>,
    /// The time since which the command waits for room.
    full_since: Option<Instant>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    NotStarted,
    Opening,
    Open(PathBuf),
    /// The output has ended, and all of it is in the file.
    Complete(PathBuf),
    /// The file could not be created or written, or was given up.
    Failed,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogFile {
    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// Appends to the log. The first call starts the thread, which creates the file.
    pub fn write(&self, bytes: &[u8]) {
        let mut log = self.shared().log();
        if bytes.is_empty() || log.stage == Stage::Failed {
            return;
        }
        log.buffer.extend_from_slice(bytes);
        if log.stage == Stage::NotStarted {
            log.started = Some(Instant::now());
            log.stage = Stage::Opening;
            let shared = Arc::clone(self.shared());
            let thread = std::thread::Builder::new().name("bash-log".to_owned());
            if thread.spawn(move || shared.write_file()).is_err() {
                log.give_up();
            }
        }
        self.shared().work.notify_one();
    }

    /// Returns the file if it exists and the log has not failed.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.shared().log().stage {
            Stage::Open(path) | Stage::Complete(path) => Some(path.clone()),
            Stage::NotStarted | Stage::Opening | Stage::Failed => None,
        }
    }

    /// Reports whether the file will probably exist in a moment.
    pub fn is_opening(&self) -> bool {
        let log = self.shared().log();
        let recent = |started: Instant| started.elapsed() < OPENING_TIME;
        log.stage == Stage::Opening && log.started.is_some_and(recent)
    }

    /// Reports whether the log can take more; if not, the command waits for [`LogFile::room`].
    pub fn has_room(&self) -> bool {
        let mut log = self.shared().log();
        let full = log.buffer.len() >= BUFFER_LIMIT;
        if full {
            log.full_since.get_or_insert_with(Instant::now);
        } else {
            log.full_since = None;
        }
        !full
    }

    /// Waits until the log can take more or is given up.
    pub async fn room(&self) {
        let since = self.shared().log().full_since;
        let deadline = since.unwrap_or_else(Instant::now) + LOG_TIMEOUT;
        self.wait(deadline, Self::has_room).await;
    }

    /// Ends the output and waits until all of it is in the file.
    pub async fn finish(&self, cancelled: bool) {
        self.shared().log().ended = true;
        self.shared().work.notify_one();
        let limit = if cancelled {
            CANCELLED_TIMEOUT
        } else {
            LOG_TIMEOUT
        };
        let written =
            |log: &Self| !matches!(log.shared().log().stage, Stage::Opening | Stage::Open(_));
        self.wait(Instant::now() + limit, written).await;
    }

    /// Waits until `done`. Gives the log up at `deadline`.
    async fn wait(&self, deadline: Instant, done: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let progress = self.shared().progress.notified();
                tokio::pin!(progress);
                progress.as_mut().enable();
                if done(self) {
                    return;
                }
                progress.await;
            }
        };
        if tokio::time::timeout_at(deadline, waiting).await.is_err() {
            self.shared().log().give_up();
            self.shared().work.notify_one();
        }
    }
}

impl Log {
    /// Continues without the log. Its thread ends when it can.
    fn give_up(&mut self) {
        self.stage = Stage::Failed;
        self.buffer = Vec::new();
    }
}

impl Shared {
    /// Creates the file and writes the output to it until that ends.
    fn write_file(&self) {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        let path = std::env::temp_dir().join(format!("pi-bash-{:016x}.log", high ^ low));
        // The output of a command may be private.
        let created = pinion_files::create_new(&path, 0o600);
        let complete = created.and_then(|file| {
            let complete = self.write_pieces(file, &path);
            if !matches!(complete, Ok(true)) {
                // Most likely the disk is full, and an incomplete log is not worth the space.
                let _ = std::fs::remove_file(&path);
            }
            complete
        });
        let mut log = self.log();
        match complete {
            Ok(true) => log.stage = Stage::Complete(path),
            Ok(false) | Err(_) => log.give_up(),
        }
        drop(log);
        self.progress.notify_waiters();
    }

    /// Returns false if the log was given up.
    fn write_pieces(&self, mut file: File, path: &Path) -> io::Result<bool> {
        let mut piece = Vec::new();
        loop {
            let idle =
                |log: &mut Log| log.buffer.is_empty() && !log.ended && log.stage != Stage::Failed;
            let log = self.work.wait_while(self.log(), idle);
            let mut log = log.unwrap_or_else(PoisonError::into_inner);
            if log.stage == Stage::Failed {
                return Ok(false);
            }
            if log.buffer.is_empty() {
                return Ok(true);
            }
            std::mem::swap(&mut piece, &mut log.buffer);
            drop(log);
            file.write_all(&piece)?;
            piece.clear();
            let mut log = self.log();
            if log.stage == Stage::Opening {
                log.stage = Stage::Open(path.to_owned());
            }
            drop(log);
            self.progress.notify_waiters();
        }
    }
}
