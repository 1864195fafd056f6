//! Where words for people go while a command runs: standard error, unless the options name another place.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use pinion_commands::BuiltInValues;

use crate::failure::Failure;

/// Words go elsewhere as long as it lives; what the program says at its very end is on standard error again.
pub(super) struct Elsewhere {
    stderr: OwnedFd,
}

/// Sends words where the options say.
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
        // Words that cannot come back stay where they are.
        let _ = point_stderr_at(&self.stderr);
    }
}

fn point_stderr_at(target: &impl AsRawFd) -> std::io::Result<()> {
    // SAFETY: both descriptors are open; descriptor 2 belongs to nobody's `OwnedFd`.
    match unsafe { libc::dup2(target.as_raw_fd(), 2) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
