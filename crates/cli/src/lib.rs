//! The command line as data: one table per command, from which the parser, `--help`, completions, man pages and the
//! flag tables of the pages are made.
//!
//! [`tables`] holds the tables, [`Line`] parses arguments against one of them, and [`help`], [`complete`],
//! [`manual`] and [`markdown`] render them. [`pinix`] translates the command lines of `pinix`. Nothing here runs a command.

pub mod complete;
mod error;
pub mod help;
mod lexer;
mod line;
pub mod manual;
pub mod markdown;
pub mod pinix;
mod place;
mod prompt_line;
mod stray_words;
mod table;
pub mod tables;

pub use self::error::{Error, Problem};
pub use self::lexer::{Lexer, Token};
pub use self::line::Line;
pub use self::place::Place;
pub use self::prompt_line::{PromptLine, UnknownFlag};
pub use self::table::{Argument, Command, Count, Flag, Kind, Section, Value};
