//! Suspends the program like any other program of a shell.
//!
//! The chat handles SIGTSTP so that it can restore the terminal first. To stop, it briefly restores
//! the default action. The system does not stop a process group that no shell could continue.
#![allow(unsafe_code)]

use std::io;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::unistd::Pid;

/// The processes to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuspendTarget {
    /// The whole process group.
    Job,
    /// Only this program: the others received the signal already, or should continue.
    Program,
}

/// Stops until the program is continued.
pub(super) fn stop(target: SuspendTarget) -> io::Result<()> {
    let before = set(&plain(SigHandler::SigIgn))?;
    let stopped = stop_with(target);
    set(&before)?;
    stopped
}

fn stop_with(target: SuspendTarget) -> io::Result<()> {
    if target == SuspendTarget::Job {
        kill(Pid::from_raw(0), Signal::SIGTSTP)?;
    }
    set(&plain(SigHandler::SigDfl))?;
    raise(Signal::SIGTSTP)?;
    Ok(())
}

fn plain(handler: SigHandler) -> SigAction {
    SigAction::new(handler, SaFlags::empty(), SigSet::empty())
}

fn set(action: &SigAction) -> io::Result<SigAction> {
    // SAFETY: no Rust code runs in a handler: the action is a default of the system or the one set
    // before.
    Ok(unsafe { sigaction(Signal::SIGTSTP, action) }?)
}
