//! Questions to the user at the terminal; the answers may also be piped in.

use std::io::{self, BufRead, IsTerminal, Write};

use pinion_tui::HiddenInput;

use crate::failure::Failure;

/// Echo of the typed answer on the terminal; secrets are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Shown,
    Hidden,
}

/// Returns the value of a flag, else a line of standard input. Fails if it is empty.
pub(crate) fn given_or_asked(
    given: Option<&str>,
    what: &str,
    flag: &str,
    answer: Answer,
) -> Result<String, Failure> {
    let answered = match given {
        Some(given) => given.to_owned(),
        None => asked(what, answer)?,
    };
    let answered = answered.trim_matches(['\r', '\n']);
    if answered.is_empty() {
        let hint = format!("Give it with {flag}, or on standard input.");
        return Err(Failure::failed(format!("the {what} is missing.")).hint(hint));
    }
    Ok(answered.to_owned())
}

/// Reads a line of standard input, after a question if that is a terminal.
fn asked(what: &str, answer: Answer) -> Result<String, Failure> {
    let stdin = io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal {
        eprint!("{what}: ");
        io::stderr().flush()?;
    }
    let hidden = (is_terminal && answer == Answer::Hidden).then(HiddenInput::begin);
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    if hidden.is_some() {
        eprintln!();
    }
    Ok(line)
}
