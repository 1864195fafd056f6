//! Standard input as a prompt: read when it is meant, never waited for when it is silent.
#![allow(unsafe_code)]

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

/// How long a pipe may take to show its first byte when there is a prompt already.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// Whether standard input must be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It is the prompt: wait for it.
    Required,
    /// There is a prompt already: take what is there.
    IfPresent,
}

/// The text on standard input; `None` when there is none.
pub(crate) fn read_prompt(wanted: Wanted) -> io::Result<Option<String>> {
    let stdin = io::stdin();
    if stdin.is_terminal() && wanted == Wanted::IfPresent {
        return Ok(None);
    }
    if wanted == Wanted::IfPresent && !is_readable(FIRST_BYTE) {
        eprintln!(
            "Note: standard input is open but silent and is not read; pass - to wait for it."
        );
        return Ok(None);
    }
    if wanted == Wanted::Required && !is_readable(Duration::from_secs(1)) {
        eprintln!("Waiting for the prompt on standard input …");
    }
    let mut bytes = Vec::new();
    stdin.lock().read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

/// Whether a read would give something, or the end, within `patience`.
pub(crate) fn is_readable(patience: Duration) -> bool {
    let mut poll = libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd, which lives across the call.
    let ready = unsafe { libc::poll(&mut poll, 1, patience.as_millis() as libc::c_int) };
    ready > 0
}
