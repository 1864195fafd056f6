//! `trust`: lets a project's files run things.

use std::path::PathBuf;
use std::process::ExitCode;

use pinion_config::{Dirs, Trust};

use super::out;
use crate::failure::Failure;

pub(super) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    let dirs = Dirs::from_env()?;
    let revoke = arguments.iter().any(|argument| argument == "--revoke");
    let named = arguments.iter().find(|argument| !argument.starts_with('-'));
    let directory = named.map_or_else(|| dirs.cwd.clone(), PathBuf::from);
    let (mut trust, notices) = Trust::load(&dirs);
    for notice in &notices {
        eprintln!("Warning: {notice}");
    }
    let changed = if revoke {
        trust.revoke(&directory)
    } else {
        trust.trust(&directory)
    };
    changed.map_err(|error| Failure::failed(format!("Error: {error}")))?;
    let word = if revoke {
        "No longer trusted"
    } else {
        "Trusted"
    };
    out(&format!("{word}: {}\n", directory.display()))
}
