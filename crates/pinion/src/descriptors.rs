//! How many files the process may have open, and how much memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

/// What many sessions and their commands need; a process gets 1024 unless it asks for more.
const MANY: libc::rlim_t = 8192;

/// Asks the system for more open files, as far as it lets us.
pub(crate) fn allow_many() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is valid and lives across both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < MANY {
            limit.rlim_cur = MANY.min(limit.rlim_max);
            // Without it there is room for fewer sessions, and opening one more says so.
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Limits the memory that the process may map. An allocation beyond it fails, which ends the process.
pub(crate) fn limit_memory(bytes: u64) {
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

/// What a run needs for its terminal, runtime, session, model and one command.
const FEW: usize = 16;

/// Fails if the process cannot open a few more files.
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
            // Not a limit of this process: what needs the file reports it.
            Err(_) => break,
        }
    }
    Ok(())
}
