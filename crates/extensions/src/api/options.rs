//! How extensions are run.

use std::sync::Arc;
use std::time::Duration;

use super::dialogs::RecordSink;
use super::held::RoomCheck;
use crate::{ScriptOptions, Services};

/// How prompts reach the program: the `source` of `input`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputSource {
    /// From a client, over the protocol.
    Rpc,
    /// From the command line or the terminal.
    #[default]
    Interactive,
}

/// How extensions are run.
pub struct Options {
    /// Whether there is a client that can be asked.
    pub has_ui: bool,
    /// How prompts reach the program.
    pub source: InputSource,
    /// Whether what pi does is done exactly, also where it helps nobody.
    pub strict: bool,
    /// Whether extensions that cannot be loaded are passed over.
    pub lenient: bool,
    /// How long a handler may take without asking the user.
    pub patience: Duration,
    /// The theme that settings name.
    pub theme: Option<String>,
    /// How the engine is set up; what it may ask of the program is put in here.
    pub script: ScriptOptions,
    /// What extensions may ask of the program.
    pub services: Arc<dyn Services>,
    /// Takes records for the client.
    pub records: RecordSink,
    /// Whether the client has room for more records.
    pub has_room: RoomCheck,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            has_ui: false,
            source: InputSource::default(),
            strict: true,
            lenient: false,
            patience: Duration::from_secs(5 * 60),
            theme: None,
            script: ScriptOptions::default(),
            services: Arc::new(crate::NoServices),
            records: Arc::new(|_| ()),
            has_room: Arc::new(|| true),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("has_ui", &self.has_ui)
            .field("strict", &self.strict)
            .field("lenient", &self.lenient)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}
