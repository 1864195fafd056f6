//! Writes the user's choices to the settings file and preserves its other settings.

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use pinion_agent::Preferences;
use pinion_config::SettingsFile;
use serde_json::Value;

type Changes = Vec<(&'static str, Option<Value>)>;

/// A change, and the channel that reports that it was written or could not be.
type Job = (Changes, mpsc::SyncSender<()>);

/// Longest time that a change may delay the session. It is normally written within a few milliseconds; a file system
/// that does not respond must not stop the session.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// Writes preferences on a thread of its own, started with the first change.
///
/// A change is normally in the file before the command that made it is answered, so that it survives the end of the
/// process.
pub(crate) struct SavedPreferences {
    file: SettingsFile,
    writer: Mutex<Option<(mpsc::SyncSender<Job>, JoinHandle<()>)>>,
}

/// Number of changes that may wait for the writer. The next one is dropped with a warning.
const WAITING: usize = 64;

impl SavedPreferences {
    pub fn new(file: SettingsFile) -> Self {
        Self {
            file,
            writer: Mutex::new(None),
        }
    }

    /// Waits until every change has been written.
    pub fn flush(&self) {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((sender, thread)) = writer {
            drop(sender);
            // A writer that panicked has nothing more to write.
            let _ = thread.join();
        }
    }

    fn start(file: SettingsFile) -> (mpsc::SyncSender<Job>, JoinHandle<()>) {
        let (sender, receiver) = mpsc::sync_channel::<Job>(WAITING);
        let thread = std::thread::spawn(move || {
            while let Ok((mut changes, written)) = receiver.recv() {
                let mut waiting = vec![written];
                for (more, written) in receiver.try_iter() {
                    changes.extend(more);
                    waiting.push(written);
                }
                if let Err(error) = file.update(&changes) {
                    eprintln!("Warning: could not save settings: {error}");
                }
                for written in waiting {
                    // The receiver may have stopped waiting.
                    let _ = written.try_send(());
                }
            }
        });
        (sender, thread)
    }
}

impl Preferences for SavedPreferences {
    fn remember(&self, changes: Changes) {
        let (written, was_written) = mpsc::sync_channel(1);
        let sender = {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            let (sender, _) = writer.get_or_insert_with(|| Self::start(self.file.clone()));
            sender.clone()
        };
        if sender.try_send((changes, written)).is_err() {
            eprintln!("Warning: could not save settings: earlier changes are still being written");
            return;
        }
        // A change that takes longer is written later, and its failure is reported then.
        let _ = was_written.recv_timeout(WRITE_TIMEOUT);
    }
}
