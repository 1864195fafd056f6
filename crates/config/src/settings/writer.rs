//! Saves settings on a thread of its own.

use std::sync::{Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use pinion_sync::lock;
use serde_json::Value;

use super::SettingsFile;

/// Values to set (`Some`) or to remove (`None`) at dotted paths.
pub type SettingsChanges = Vec<(&'static str, Option<Value>)>;

/// A change, and the channel that reports that it was written or could not be.
type Job = (SettingsChanges, mpsc::SyncSender<()>);

/// Longest time that a change may delay the session. It is normally written within a few milliseconds; a file system
/// that does not respond must not stop the session.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// Number of changes that may wait for the writer. The next one is dropped with a warning.
const WAITING: usize = 64;

/// Writes changes of settings on a thread of its own, started with the first change.
///
/// A change is normally in the file before the command that made it is answered, so that it survives the end of the
/// process.
#[derive(Debug)]
pub struct SettingsWriter {
    file: SettingsFile,
    /// Receives the sentence about a change that is not saved.
    warn: fn(&str),
    writer: Mutex<Option<(mpsc::SyncSender<Job>, JoinHandle<()>)>>,
}

impl SettingsWriter {
    /// Creates a writer of the file. Neither the file nor a thread is touched before the first change.
    pub fn new(file: SettingsFile, warn: fn(&str)) -> Self {
        Self {
            file,
            warn,
            writer: Mutex::new(None),
        }
    }

    /// Waits until every change has been written.
    pub fn flush(&self) {
        let writer = lock(&self.writer).take();
        if let Some((sender, thread)) = writer {
            drop(sender);
            // A writer that panicked has nothing more to write.
            let _ = thread.join();
        }
    }

    /// Saves changes. Waits for the file, but not long.
    pub fn save(&self, changes: SettingsChanges) {
        let (written, was_written) = mpsc::sync_channel(1);
        let sender = {
            let mut writer = lock(&self.writer);
            let (sender, _) = writer.get_or_insert_with(|| start(self.file.clone(), self.warn));
            sender.clone()
        };
        if sender.try_send((changes, written)).is_err() {
            (self.warn)("could not save settings: earlier changes are still being written");
            return;
        }
        // A change that takes longer is written later, and its failure is reported then.
        let _ = was_written.recv_timeout(WRITE_TIMEOUT);
    }
}

fn start(file: SettingsFile, warn: fn(&str)) -> (mpsc::SyncSender<Job>, JoinHandle<()>) {
    let (sender, receiver) = mpsc::sync_channel::<Job>(WAITING);
    let thread = std::thread::spawn(move || {
        while let Ok((mut changes, written)) = receiver.recv() {
            let mut waiting = vec![written];
            for (more, written) in receiver.try_iter() {
                changes.extend(more);
                waiting.push(written);
            }
            if let Err(error) = file.update(&changes) {
                warn(&format!("could not save settings: {error}"));
            }
            for written in waiting {
                // The receiver may have stopped waiting.
                let _ = written.try_send(());
            }
        }
    });
    (sender, thread)
}
