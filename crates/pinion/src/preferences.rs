//! Writes the user's choices to the settings file and preserves its other settings.

use pinion_agent::Preferences;
use pinion_config::{SettingsChanges, SettingsFile, SettingsWriter};

/// The user's settings file, for the engine.
pub(crate) struct SavedPreferences(SettingsWriter);

impl SavedPreferences {
    pub fn new(file: SettingsFile) -> Self {
        let warn = |warning: &str| eprintln!("Warning: {warning}");
        Self(SettingsWriter::new(file, warn))
    }

    /// Waits until every change has been written.
    pub fn flush(&self) {
        self.0.flush();
    }
}

impl Preferences for SavedPreferences {
    fn remember(&self, changes: SettingsChanges) {
        self.0.save(changes);
    }
}
