//! Questions to whoever sits at the terminal, or pipes the answers in.

use std::io::{self, BufRead, IsTerminal, Write};

use nix::sys::termios::{self, LocalFlags, SetArg, Termios};

use crate::failure::Failure;

/// Asks for something; nothing is shown of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Shown,
    Hidden,
}

/// What a flag said, else what is answered.
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
    match answered.is_empty() {
        true => Err(Failure::failed(format!(
            "Error: the {what} is missing. Give it with {flag}, or on standard input."
        ))),
        false => Ok(answered.to_owned()),
    }
}

/// A line of standard input, after a question if somebody is there to read it.
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

/// While it lives, the terminal does not show what is typed.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(mut changed) = before.clone() {
            changed.local_flags.remove(LocalFlags::ECHO);
            // A terminal that cannot do this shows what is typed.
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
