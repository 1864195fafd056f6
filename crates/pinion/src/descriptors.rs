//! How many files the process may have open.
#![allow(unsafe_code)]

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
