//! Messages while a command runs: standard error, unless the options name another destination.
#![allow(unsafe_code)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use pinion_commands::BuiltInValues;
use pinion_profiles::Notice;

use crate::RunError;

/// Prints a line to standard error.
pub(crate) fn print(line: impl Display) {
    // There is no other place to report a failure.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints a warning.
pub(crate) fn warn(message: impl Display) {
    print(format_args!("Warning: {message}"));
}

/// Prints the reason why a run failed.
pub(crate) fn error(message: impl Display) {
    print(format_args!("Error: {message}"));
}

/// Prints the notices about profiles.
pub(crate) fn warn_all(notices: &[Notice]) {
    for notice in notices {
        warn(&notice.message);
    }
}

/// Redirects standard error until it is dropped; the program's last messages go to the original one again.
#[derive(Debug)]
pub struct RedirectedStderr {
    original: OwnedFd,
}

impl RedirectedStderr {
    /// Redirects standard error as `--log-file`, `--log-level` and `--log-to-stdout` request.
    pub fn requested(values: &BuiltInValues) -> Result<Option<Self>, RunError> {
        let mut options = OpenOptions::new();
        options.append(true);
        let (path, file) = match (values.text("log-file"), values.text("log-level")) {
            ("/dev/null", _) | ("", "error" | "fatal") => ("/dev/null", options.open("/dev/null")),
            ("", _) if values.flag("log-to-stdout") => ("/dev/stdout", options.open("/dev/stdout")),
            ("", _) => return Ok(None),
            (path, _) => {
                let file = pinion_files::open_with(options.create(true), path.as_ref());
                (path, file)
            }
        };
        let file = file.map_err(|error| RunError::Failed(format!("--log-file {path}: {error}")))?;
        let original = std::io::stderr().as_fd().try_clone_to_owned()?;
        point_stderr_at(&file)?;
        Ok(Some(Self { original }))
    }
}

impl Drop for RedirectedStderr {
    fn drop(&mut self) {
        // If restoring fails, the messages stay redirected.
        let _ = point_stderr_at(&self.original);
    }
}

fn point_stderr_at(target: &impl AsRawFd) -> std::io::Result<()> {
    // SAFETY: both descriptors are open; no `OwnedFd` owns descriptor 2.
    match unsafe { libc::dup2(target.as_raw_fd(), 2) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
