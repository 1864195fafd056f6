//! Input that the terminal does not show.

use std::io;

use nix::sys::termios::{self, LocalFlags, SetArg, Termios};

/// Turns off the terminal's echo until it is dropped.
#[derive(Debug)]
pub struct HiddenInput(Option<Termios>);

impl HiddenInput {
    /// Turns off the echo of standard input.
    pub fn begin() -> Self {
        let before = termios::tcgetattr(io::stdin()).ok();
        if let Some(mut changed) = before.clone() {
            changed.local_flags.remove(LocalFlags::ECHO);
            // A terminal that does not support this echoes the input.
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &changed);
        }
        Self(before)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
    }
}
