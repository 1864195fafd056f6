//! Syncs session files to the disk in the background.
//!
//! An append is a `write(2)`, which survives the end of this process in every case. For power loss, one background
//! thread calls `fdatasync`: at most [`SYNC_INTERVAL`] after the first unsynced append, and at once on request. Appends
//! and requests that arrive while it works share its next call. The thread starts with the first append and ends with
//! the process.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The age of the newest appends that power loss can destroy, unless the disk is slower.
pub const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// A file whose appends are made durable in the background.
#[derive(Debug)]
pub(crate) struct DurableFile {
    pub(crate) file: Arc<File>,
    /// Bytes were written since the last sync.
    dirty: AtomicBool,
    /// A sync without delay was requested since the last sync.
    urgent: AtomicBool,
    /// The directory to sync, because the file is new in it.
    new_in: Mutex<Option<PathBuf>>,
    /// The error of the last background sync, until it is reported.
    failure: Mutex<Option<io::Error>>,
}

enum SyncJob {
    Soon(Arc<DurableFile>),
    Now(Arc<DurableFile>),
}

static THREAD: OnceLock<Option<Sender<SyncJob>>> = OnceLock::new();

impl DurableFile {
    pub(crate) fn new(file: File, new_in: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            file: Arc::new(file),
            dirty: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            new_in: Mutex::new(new_in),
            failure: Mutex::new(None),
        })
    }

    /// Records an append; it is synced within [`SYNC_INTERVAL`].
    pub(crate) fn written(self: &Arc<Self>) {
        if !self.dirty.swap(true, Ordering::AcqRel) {
            send(SyncJob::Soon(Arc::clone(self)));
        }
    }

    /// Requests a sync now and does not wait for it.
    pub(crate) fn sync_soon(self: &Arc<Self>) {
        if self.dirty.load(Ordering::Acquire) && !self.urgent.swap(true, Ordering::AcqRel) {
            send(SyncJob::Now(Arc::clone(self)));
        }
    }

    /// Syncs the file, and its directory if the file is new. Blocks.
    pub(crate) fn sync_and_wait(&self) -> io::Result<()> {
        self.dirty.store(false, Ordering::Release);
        self.file.sync_data()?;
        let new_in = self
            .new_in
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match new_in {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Returns the error of a background sync once.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn sync_if_dirty(&self) {
        self.urgent.store(false, Ordering::Release);
        if self.dirty.load(Ordering::Acquire)
            && let Err(error) = self.sync_and_wait()
        {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }
}

fn send(job: SyncJob) {
    let thread = THREAD.get_or_init(|| {
        #[allow(
            clippy::disallowed_methods,
            reason = "between two syncs a file sends one job of each kind, so the open files limit the jobs"
        )]
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("session-sync".to_owned());
        thread.spawn(move || run(&receiver)).ok().map(|_| sender)
    });
    let unsent = match thread {
        Some(sender) => sender.send(job).err().map(|error| error.0),
        None => Some(job),
    };
    // Without a thread the caller syncs itself, which is slow but loses nothing.
    if let Some(SyncJob::Now(file) | SyncJob::Soon(file)) = unsent {
        file.sync_if_dirty();
    }
}

fn run(jobs: &mpsc::Receiver<SyncJob>) {
    let mut waiting: Vec<(Instant, Arc<DurableFile>)> = Vec::new();
    loop {
        let next = waiting.iter().map(|(due, _)| *due).min();
        let job = match next {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(due) => jobs.recv_timeout(due.saturating_duration_since(Instant::now())),
        };
        let disconnected = matches!(job, Err(RecvTimeoutError::Disconnected));
        let now = Instant::now();
        for job in job.into_iter().chain(jobs.try_iter()) {
            match job {
                SyncJob::Soon(file) => waiting.push((now + SYNC_INTERVAL, file)),
                SyncJob::Now(file) => waiting.push((now, file)),
            }
        }
        let now = Instant::now();
        let (due, later) = waiting
            .into_iter()
            .partition(|(due, _)| *due <= now || disconnected);
        waiting = later;
        // A file that is listed twice is clean the second time.
        Vec::into_iter(due).for_each(|(_, file)| file.sync_if_dirty());
        if disconnected {
            return;
        }
    }
}
