//! What the built-in tools need to know about the user's wishes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pinion_message::Mask;

/// Settings of the built-in tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The shell for commands; by default bash, or sh where there is no bash.
    pub shell_path: Option<PathBuf>,
    /// Goes in front of every command, on lines of its own.
    pub shell_command_prefix: Option<String>,
    /// Put in front of `PATH` for commands, unless it is there already.
    pub bin_dir: Option<PathBuf>,
    /// Images too large for models are scaled down.
    pub auto_resize_images: bool,
    /// Further variables for commands.
    pub env: Vec<(String, String)>,
    /// The environment of commands, where it is not ours: `None` while it is.
    pub environment: fn() -> Option<Vec<(OsString, OsString)>>,
    /// The least time between two progress updates of one command.
    pub update_interval: Duration,
    /// A command tells that it has begun before it prints anything.
    pub tells_beginning: bool,
    /// Keys that must not be shown or kept in what commands print.
    pub mask: Mask,
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
            tells_beginning: false,
            mask: Mask::default(),
        }
    }
}
