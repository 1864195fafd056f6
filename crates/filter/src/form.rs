//! How outputs are written.

use std::io::{self, Write};

use jaq_json::Val;
use jaq_json::write::{Pp, write};

/// How outputs are written: each on a line of its own, or on several if people are to read it.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// How structures are laid out.
    pub layout: Layout,
    /// How texts are written.
    pub texts: Texts,
}

/// How structures are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// On one line, without spaces.
    Compact,
    /// With a line for each member.
    Indented,
}

/// How an output is written that is a text.
#[derive(Debug, Clone, Copy)]
pub enum Texts {
    /// As it is.
    Plain,
    /// The same as this makes of it, without what a terminal would obey, say.
    Shown(fn(&str) -> String),
    /// As JSON, in quotes.
    Quoted,
}

impl Form {
    /// Writes one output and the end of its line, at once.
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
