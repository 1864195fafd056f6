//! The form of a filter's outputs.

use std::io::{self, Write};

use jaq_json::Val;
use jaq_json::write::{Pp, write};

/// The form of outputs: each on one line, or on several for people to read.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub layout: Layout,
    pub texts: Texts,
}

/// The layout of structures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// On one line, without spaces.
    Compact,
    /// With a line for each member.
    Indented,
}

/// The form of an output that is a string.
#[derive(Debug, Clone, Copy)]
pub enum Texts {
    /// The string itself.
    Plain,
    /// The result of this function, for example without the control characters that a terminal
    /// would obey.
    Shown(fn(&str) -> String),
    /// As JSON, in quotes.
    Quoted,
}

impl Form {
    /// Returns the form for people at a terminal, or for programs elsewhere. Strings have quotes only with `is_json`; on
    /// a terminal the others pass through `shown`.
    pub fn for_output(is_terminal: bool, is_json: bool, shown: fn(&str) -> String) -> Self {
        Self {
            layout: if is_terminal {
                Layout::Indented
            } else {
                Layout::Compact
            },
            texts: match (is_json, is_terminal) {
                (true, _) => Texts::Quoted,
                (false, true) => Texts::Shown(shown),
                (false, false) => Texts::Plain,
            },
        }
    }

    /// Writes one output and its line end with one call.
    pub(crate) fn write(self, value: &Val, output: &mut impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        match (value, self.texts) {
            (Val::TStr(text), Texts::Plain) => line.extend_from_slice(text),
            (Val::TStr(text), Texts::Shown(shown)) => {
                line.extend_from_slice(shown(&String::from_utf8_lossy(text)).as_bytes());
            }
            (value, _) => write(&mut line, &self.printer(), 0, value)?,
        }
        line.push(b'\n');
        output.write_all(&line)
    }

    fn printer(self) -> Pp {
        let indented = self.layout == Layout::Indented;
        Pp {
            indent: indented.then(|| "  ".to_owned()),
            sep_space: indented,
            ..Pp::default()
        }
    }
}
