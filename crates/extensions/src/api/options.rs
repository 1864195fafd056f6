//! Settings for running extensions.

use std::sync::Arc;
use std::time::Duration;

use super::dialogs::RecordSink;
use super::held_records::RoomCheck;
use crate::{ScriptOptions, Services};

/// The origin of prompts: the `source` of `input`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputSource {
    /// A client, over the protocol.
    Rpc,
    /// The command line or the terminal.
    #[default]
    Interactive,
}

/// The way in which a session is used: `ctx.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A conversation in the terminal.
    Tui,
    /// A client that sends commands.
    Rpc,
    /// One conversation, whose events are printed as JSON.
    Json,
    /// One conversation, whose last answer is printed.
    #[default]
    Print,
}

impl Mode {
    /// Returns the name that extensions see.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tui => "tui",
            Self::Rpc => "rpc",
            Self::Json => "json",
            Self::Print => "print",
        }
    }
}

/// The release of pi whose API extensions see in lists of members and commands. They can use the members of the newest
/// one in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApiRelease {
    /// pi 0.73.
    #[default]
    Classic,
    /// pi 1.x.
    Modern,
}

/// Settings for running extensions.
pub struct Options {
    /// The way in which the session is used.
    pub mode: Mode,
    /// The release of pi whose API extensions see.
    pub release: ApiRelease,
    /// A client is present that can answer dialogs.
    pub has_ui: bool,
    /// The origin of prompts.
    pub source: InputSource,
    /// Match pi exactly, even where its behaviour has no benefit.
    pub strict: bool,
    /// Skip extensions that cannot be loaded instead of failing.
    pub lenient: bool,
    /// Time that a handler may run; time spent waiting for the user or for the program does not count.
    pub handler_timeout: Duration,
    /// The name of the theme in the settings.
    pub theme: Option<String>,
    /// Settings of the engine. Its bridge and services are filled in by [`crate::Extensions`].
    pub script: ScriptOptions,
    /// The parts of the program that extensions may use.
    pub services: Arc<dyn Services>,
    /// Accepts records for the client.
    pub records: RecordSink,
    /// Reports whether the client has room for more records.
    pub has_room: RoomCheck,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            release: ApiRelease::default(),
            has_ui: false,
            source: InputSource::default(),
            strict: true,
            lenient: false,
            handler_timeout: Duration::from_secs(5 * 60),
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
            .field("patience", &self.handler_timeout)
            .finish_non_exhaustive()
    }
}
