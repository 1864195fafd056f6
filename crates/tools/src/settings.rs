//! The user's settings for the built-in tools.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pinion_message::Mask;
use pinion_process::{Confinement, Reason};
use serde_json::{Value, json};

use crate::validate::ErrorWords;

/// Settings of the built-in tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The shell for commands; by default bash, or sh where there is no bash.
    pub shell_path: Option<PathBuf>,
    /// Inserted before every command, on lines of its own.
    pub shell_command_prefix: Option<String>,
    /// Put in front of `PATH` for commands, unless it is there already.
    pub bin_dir: Option<PathBuf>,
    /// Scales down images that are too large for models.
    pub auto_resize_images: bool,
    /// Further variables for commands.
    pub env: Vec<(String, String)>,
    /// Returns the environment of commands; `None` means that of this process.
    pub environment: fn() -> Option<Vec<(OsString, OsString)>>,
    /// The least time between two progress updates of one command.
    pub update_interval: Duration,
    /// A command sends an update when it starts, before it prints anything.
    pub send_start_update: bool,
    /// The form of results and errors.
    pub form: ResultForm,
    /// Masks keys in the output of commands.
    pub mask: Mask,
    /// The sandbox of commands.
    pub confinement: Confinement,
}

/// The form of the results and errors of the built-in tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultForm {
    /// Texts. A line break at the end of a text opens one more line.
    #[default]
    Text,
    /// Texts, and results as data for programs: the output of commands, patches of edits. A line break at the end of a
    /// text opens no line, and errors in arguments are described in few words.
    Structured,
}

impl ResultForm {
    /// Reports whether results have data for programs.
    pub(crate) fn is_structured(self) -> bool {
        self == Self::Structured
    }

    /// Returns the wording of errors in arguments.
    pub(crate) fn error_words(self) -> ErrorWords {
        if self.is_structured() {
            ErrorWords::Brief
        } else {
            ErrorWords::Ajv
        }
    }

    /// Returns the constrained sampling of a tool whose arguments have a simple schema.
    pub(crate) fn constrained_sampling(self) -> Option<Value> {
        self.is_structured()
            .then(|| json!({"type": "json_schema", "strict": "prefer"}))
    }
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            shell_path: None,
            shell_command_prefix: None,
            bin_dir: None,
            auto_resize_images: true,
            env: Vec::new(),
            environment: || None,
            update_interval: Duration::from_millis(100),
            send_start_update: false,
            form: ResultForm::Text,
            mask: Mask::default(),
            confinement: Confinement::Unconfined(Reason::ModeOff),
        }
    }
}
