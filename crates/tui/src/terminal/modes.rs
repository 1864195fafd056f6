//! The terminal modes of the chat.

use std::fs::File;
use std::io::{self, Write};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// Alternate screen, bracketed paste, reports of buttons and wheel, title saved.
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[22;2t";
/// Requests distinct codes for ambiguous keys; terminals without support ignore it.
const ENTER_KEYS: &str = "\x1b[>1u";
const LEAVE_KEYS: &str = "\x1b[<1u";
const LEAVE: &str =
    "\x1b[?2026l\x1b[23;2t\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal and the modes it is in.
#[derive(Debug)]
pub(super) struct Modes {
    output: File,
    keys: Keys,
    entered: bool,
}

/// Decides whether to request distinct codes for ambiguous keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Ask,
    /// The terminal would print the request.
    Leave,
}

impl Modes {
    pub fn enter(output: &File) -> io::Result<Self> {
        let keys = match std::env::var("TERM").as_deref() {
            Ok("linux" | "dumb") => Keys::Leave,
            _ => Keys::Ask,
        };
        let mut modes = Self {
            output: output.try_clone()?,
            keys,
            entered: false,
        };
        modes.enter_again()?;
        Ok(modes)
    }

    pub fn enter_again(&mut self) -> io::Result<()> {
        // A shell may have changed the modes since; raw mode must be left before it can be entered
        // again.
        disable_raw_mode()?;
        enable_raw_mode()?;
        self.entered = true;
        self.output.write_all(ENTER.as_bytes())?;
        match self.keys {
            Keys::Ask => self.output.write_all(ENTER_KEYS.as_bytes()),
            Keys::Leave => Ok(()),
        }
    }

    pub fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.entered) {
            return Ok(());
        }
        let mut words = String::new();
        if self.keys == Keys::Ask {
            words.push_str(LEAVE_KEYS);
        }
        words.push_str(LEAVE);
        let written = self.output.write_all(words.as_bytes());
        disable_raw_mode()?;
        written
    }
}
