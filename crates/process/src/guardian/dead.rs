//! Waits for children in two steps: find a dead one, then reap it.
//!
//! The process id cannot be reused between the steps, so the caller can take a lock. Signals are plain numbers because real-time
//! signals have no names.
#![allow(unsafe_code, reason = "the wait calls fill in plain structures")]

use std::io;
use std::mem::MaybeUninit;

/// The children to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Among {
    All,
    One(i32),
}

/// Waits for a dead child and returns its process id. Fails when there is no such child.
pub(crate) fn next(among: Among) -> io::Result<i32> {
    loop {
        match peek(among, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reports whether this process has a child, dead or alive.
pub(crate) fn have_children() -> bool {
    peek(Among::All, libc::WNOHANG).is_ok()
}

fn peek(among: Among, flags: libc::c_int) -> io::Result<i32> {
    let (kind, id) = match among {
        Among::All => (libc::P_ALL, 0),
        Among::One(pid) => (libc::P_PID, pid as libc::id_t),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = flags | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: `info` is valid for writing, and all zeroes is a valid siginfo_t if nothing is written.
    let (result, pid) = unsafe {
        (
            libc::waitid(kind, id, info.as_mut_ptr(), flags),
            info.assume_init_ref().si_pid(),
        )
    };
    if result == 0 {
        Ok(pid)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reaps a dead child and returns its exit code, or the negative of the signal that killed it.
pub(crate) fn reap(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    let reaped = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
    if reaped != pid {
        return None;
    }
    Some(if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        -libc::WTERMSIG(status)
    })
}
