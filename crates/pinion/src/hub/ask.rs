//! Questions to the user at the terminal; the answers may also be piped in.

use std::io::{self, BufRead, IsTerminal, Write};

use nix::sys::termios::{self, LocalFlags, SetArg, Termios};

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
        return Err(Failure::failed(format!(
            "Error: the {what} is missing. Give it with {flag}, or on standard input."
        )));
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
    let hidden = (is_terminal && answer == Answer::Hidden).then(Hidden::begin);
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    if hidden.is_some() {
        eprintln!();
    }
    Ok(line)
}

/// Turns off the terminal's echo until it is dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(mut changed) = before.clone() {
            changed.local_flags.remove(LocalFlags::ECHO);
            // A terminal that does not support this echoes the input.
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &changed);
        }
        Self(before)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
    }
}
