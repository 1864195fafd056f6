//! Which program we are called as.

use std::ffi::OsString;
use std::path::Path;

/// The name the binary was called by decides whose command line it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// Our own.
    Pinion,
    /// pi's: flags it does not know are left to extensions, and its exit codes are used.
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

    /// How it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pinion => "pinion",
            Self::Pi => "pi",
            Self::Pinocchio => "pinocchio",
        }
    }
}
