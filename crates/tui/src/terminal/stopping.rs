//! Stopping, as any other program of a shell does.
//!
//! The signal is heard by the chat so that the terminal can be given back first; to stop, what it does by itself is put
//! back for that moment. Where nobody could continue the program, the system does not let it stop.
#![allow(unsafe_code)]

use std::io;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::unistd::Pid;

/// Who is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stops {
    /// The whole job, whoever else belongs to it.
    Job,
    /// Only this program: the others were told, or not meant.
    Program,
}

/// Stops until somebody continues us.
pub(super) fn stop(who: Stops) -> io::Result<()> {
    let before = set(&plain(SigHandler::SigIgn))?;
    let stopped = stop_with(who);
    set(&before)?;
    stopped
}

fn stop_with(who: Stops) -> io::Result<()> {
    if who == Stops::Job {
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
    // SAFETY: no code of ours runs in a handler: it is the system's own, or the one that was there before.
    Ok(unsafe { sigaction(Signal::SIGTSTP, action) }?)
}
