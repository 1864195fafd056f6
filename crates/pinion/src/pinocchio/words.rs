//! The destination of messages while a command runs: standard error, unless the options name another one.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use pinion_commands::BuiltInValues;

use crate::failure::Failure;

/// Redirects standard error as long as it lives; the program's last messages go to the original one again.
pub(super) struct Elsewhere {
    stderr: OwnedFd,
}

/// Redirects standard error as the options request.
pub(super) fn as_asked(values: &BuiltInValues) -> Result<Option<Elsewhere>, Failure> {
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
    let failed = |error| Failure::failed(format!("Error: --log-file {path}: {error}"));
    let file = file.map_err(failed)?;
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    point_stderr_at(&file)?;
    Ok(Some(Elsewhere { stderr }))
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // If restoring fails, the messages stay redirected.
        let _ = point_stderr_at(&self.stderr);
    }
}

fn point_stderr_at(target: &impl AsRawFd) -> std::io::Result<()> {
    // SAFETY: both descriptors are open; no `OwnedFd` owns descriptor 2.
    match unsafe { libc::dup2(target.as_raw_fd(), 2) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
