//! The limits of open files and memory of the process.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

/// Open files for many sessions and their commands. The usual limit of a process is 1024.
const MANY: libc::rlim_t = 8192;

/// Raises the limit of open files to `MANY`, or as far as the system permits.
pub fn allow_many() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is valid and lives across both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < MANY {
            limit.rlim_cur = MANY.min(limit.rlim_max);
            // If this fails, fewer sessions fit, and opening one more reports the error.
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Limits the memory that the process may map, in bytes, and disables core dumps. An allocation beyond the limit fails,
/// which ends the process.
pub fn limit_memory(bytes: u64) {
    for (what, most) in [(libc::RLIMIT_AS, bytes), (libc::RLIMIT_CORE, 0)] {
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        // SAFETY: the structure is valid and lives across the call.
        unsafe {
            libc::setrlimit(what, &limit);
        }
    }
}

/// Open files for the terminal, runtime, session, model and one command of a run.
const FEW: usize = 16;

/// Fails if the process cannot open `FEW` more files.
pub(crate) fn require_some() -> io::Result<()> {
    let mut tried = Vec::with_capacity(FEW);
    for _ in 0..FEW {
        match File::open("/dev/null") {
            Ok(file) => tried.push(file),
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                let message = format!(
                    "the limit of open files is too low: {} more could be opened, {FEW} are needed. Raise it with `ulimit -n`",
                    tried.len()
                );
                return Err(io::Error::new(error.kind(), message));
            }
            // Not a limit of this process: the code that needs the file reports the error.
            Err(_) => break,
        }
    }
    Ok(())
}
