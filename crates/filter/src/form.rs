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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// As it is.
    Plain,
    /// The same without what a terminal would obey.
    Shown,
    /// As JSON, in quotes.
    Quoted,
}

impl Form {
    /// Writes one output and the end of its line, at once.
    pub(crate) fn write(self, value: &Val, output: &mut impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        match value {
            Val::TStr(text) if self.texts == Texts::Plain => line.extend_from_slice(text),
            Val::TStr(text) if self.texts == Texts::Shown => {
                let shown = |letter: char| match letter {
                    '\n' | '\t' => letter,
                    letter if letter.is_control() => '\u{fffd}',
                    letter => letter,
                };
                let text: String = String::from_utf8_lossy(text).chars().map(shown).collect();
                line.extend_from_slice(text.as_bytes());
            }
            value => write(&mut line, &self.printer(), 0, value)?,
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
