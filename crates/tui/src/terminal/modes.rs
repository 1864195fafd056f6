//! What a terminal is told when it is taken over and when it is given back.

use std::fs::File;
use std::io::{self, Write};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// The alternate screen, pasted text marked, buttons and the wheel reported, the title kept for later.
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[22;2t";
/// Keys that cannot be told apart otherwise are told apart; terminals that cannot do it ignore this.
const ENTER_KEYS: &str = "\x1b[>1u";
const LEAVE_KEYS: &str = "\x1b[<1u";
const LEAVE: &str =
    "\x1b[?2026l\x1b[23;2t\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The state of a terminal that was taken over.
#[derive(Debug)]
pub(super) struct Modes {
    output: File,
    keys: Keys,
    entered: bool,
}

/// Whether the terminal may be asked to tell keys apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Ask,
    /// It would print the question.
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
        // A shell may have changed it since, which only a fresh start puts right.
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
