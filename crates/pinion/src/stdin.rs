//! Standard input as a prompt. If there is another prompt, pinion does not wait for an input that stays silent.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

pub(crate) use pinion_jsonl::stdio::{FIRST_BYTE, is_readable};

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
