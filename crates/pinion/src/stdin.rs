//! Standard input as a prompt. If there is another prompt, pinion does not wait for an input that stays silent.
#![allow(unsafe_code)]

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

/// Longest wait for the first byte of a pipe if there is already a prompt.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// The need to read standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Standard input is the prompt: wait for it.
    Required,
    /// There is already a prompt: read standard input only if it has data.
    IfPresent,
}

/// Returns the trimmed text on standard input; `None` if it is empty or is not read.
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

/// Reports whether standard input has data, or has ended, within `patience`.
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
