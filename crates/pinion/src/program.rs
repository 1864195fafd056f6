//! The program that the binary acts as.

use std::ffi::OsString;
use std::path::Path;

use pinion_cli::Command;
use pinion_cli::tables::root;

/// The name by which the binary was called. It selects the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// pinion's own command line.
    Pinion,
    /// pi's: without extensions an unknown flag gives only a warning, and pi's exit codes are used.
    Pi,
    /// Pinocchio's: commands in YAML files.
    Pinocchio,
}

impl Program {
    pub fn from_name(name: Option<OsString>) -> Self {
        let name = name.unwrap_or_default();
        match Path::new(&name).file_name().and_then(|name| name.to_str()) {
            Some("pi") => Self::Pi,
            Some("pinocchio") => Self::Pinocchio,
            _ => Self::Pinion,
        }
    }

    /// Returns the table of the program's command line.
    pub fn table(self) -> &'static Command {
        match self {
            Self::Pinion => &root::PINION,
            Self::Pi => &root::PI,
            Self::Pinocchio => &root::PINOCCHIO,
        }
    }

    /// Returns the command name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pinion => "pinion",
            Self::Pi => "pi",
            Self::Pinocchio => "pinocchio",
        }
    }
}
