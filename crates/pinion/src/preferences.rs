//! Writes what the user chose to the settings file, beside everything else.

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use pinion_agent::Preferences;
use pinion_config::SettingsFile;
use serde_json::Value;

type Changes = Vec<(&'static str, Option<Value>)>;

/// Writes preferences on a thread of its own, started with the first change.
pub(crate) struct SavedPreferences {
    file: SettingsFile,
    writer: Mutex<Option<(mpsc::Sender<Changes>, JoinHandle<()>)>>,
}

impl SavedPreferences {
    pub fn new(file: SettingsFile) -> Self {
        Self {
            file,
            writer: Mutex::new(None),
        }
    }

    /// Waits until everything has been written.
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

    fn start(file: SettingsFile) -> (mpsc::Sender<Changes>, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel::<Changes>();
        let thread = std::thread::spawn(move || {
            while let Ok(mut changes) = receiver.recv() {
                changes.extend(receiver.try_iter().flatten());
                if let Err(error) = file.update(&changes) {
                    eprintln!("Warning: could not save settings: {error}");
                }
            }
        });
        (sender, thread)
    }
}

impl Preferences for SavedPreferences {
    fn remember(&self, changes: Changes) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, _) = writer.get_or_insert_with(|| Self::start(self.file.clone()));
        // The thread ends only after `flush`, which takes the sender away.
        let _ = sender.send(changes);
    }
}
