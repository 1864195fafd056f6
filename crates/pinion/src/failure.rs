//! Failures that end the program: a kind, a message, hints and a source.
//!
//! A message has no prefix: `Error:` and its colour are added where a failure is printed. The module `convert` makes
//! failures of the errors of the other crates.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the operation failed |
//! | 2 | the command line is wrong |
//! | 129, 130, 131, 143 | ended by SIGHUP, SIGINT, SIGQUIT, SIGTERM |

mod convert;

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use pinion_text::harmless;
use pinion_tui::has_colours;

use crate::program::Program;

const PREFIX: &str = "Error: ";
const RED_PREFIX: &str = "\x1b[1;31mError:\x1b[0m ";

type Source = Box<dyn Error + Send + Sync>;

/// The kind of a failure. It selects the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Operation,
    Usage,
    /// SIGINT ended the program.
    Interrupted,
}

/// A failure that ends the program.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    /// Empty if nothing is printed.
    message: String,
    /// The error that caused this one; printed after the message and a colon.
    source: Option<Source>,
    /// Sentences about what to do next, printed after the message and its source.
    hints: Vec<String>,
    /// The message is printed without the prefix, as pi prints it.
    bare: bool,
    /// A failure that is printed before this one.
    earlier: Option<Box<Failure>>,
    /// A key for a model is missing.
    needs_key: bool,
}

impl Failure {
    fn new(kind: Kind, message: impl ToString) -> Self {
        Self {
            kind,
            message: message.to_string(),
            source: None,
            hints: Vec::new(),
            bare: false,
            earlier: None,
            needs_key: false,
        }
    }

    /// Creates a failure of an operation.
    pub fn failed(message: impl ToString) -> Self {
        Self::new(Kind::Operation, message)
    }

    /// Creates a failure for a wrong command line.
    pub fn usage(message: impl ToString) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Creates the failure for SIGINT, without a message.
    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "")
    }

    /// Creates the failure for an error of standard output; without a message if its reader has closed the pipe.
    pub fn unwritten(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::failed(""),
            _ => error.into(),
        }
    }

    /// Joins failures with these messages. They are printed in order.
    pub fn all(messages: impl Iterator<Item = String>) -> Self {
        let failures = messages.map(Self::failed);
        let joined = failures.reduce(|earlier, next| next.after(earlier));
        joined.unwrap_or_else(|| Self::failed(""))
    }

    /// Sets the error that caused this one.
    pub fn caused_by(self, source: impl Into<Source>) -> Self {
        let source = Some(source.into());
        Self { source, ..self }
    }

    /// Adds a sentence about what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Marks a failure that a key for a model would avoid.
    pub fn about_key(self) -> Self {
        Self {
            needs_key: true,
            ..self
        }
    }

    /// Reports whether a key for a model would avoid the failure.
    pub fn needs_key(&self) -> bool {
        self.needs_key
    }

    /// Leaves out the prefix.
    pub fn bare(self) -> Self {
        Self { bare: true, ..self }
    }

    /// Prints another failure before this one.
    pub fn after(self, earlier: Self) -> Self {
        let earlier = Some(Box::new(earlier));
        Self { earlier, ..self }
    }

    /// Selects the exit code that `program` uses: pi and pinocchio have one code for all failures.
    pub fn for_program(self, program: Program) -> Self {
        let kind = match program {
            Program::Pinion => self.kind,
            Program::Pi | Program::Pinocchio => Kind::Operation,
        };
        Self { kind, ..self }
    }

    /// Changes the message and the hints.
    pub fn reworded(self, change: impl Fn(String) -> String) -> Self {
        Self {
            hints: self.hints.into_iter().map(&change).collect(),
            message: change(self.message),
            ..self
        }
    }

    /// Prints the failure to standard error if it has a message.
    pub fn print(&self) {
        if let Some(earlier) = &self.earlier {
            earlier.print();
        }
        if self.message.is_empty() {
            return;
        }
        let prefix = if self.bare {
            ""
        } else if has_colours(&io::stderr()) {
            RED_PREFIX
        } else {
            PREFIX
        };
        // Parts of the message may come from other programs or servers.
        eprintln!("{prefix}{}", harmless(&Own(self).to_string()));
    }

    /// Prints the failure and returns the exit code.
    pub fn report(&self) -> ExitCode {
        self.print();
        ExitCode::from(match self.kind {
            Kind::Operation => 1,
            Kind::Usage => 2,
            Kind::Interrupted => 130,
        })
    }
}

/// The text of a failure without the earlier ones.
struct Own<'a>(&'a Failure);

impl fmt::Display for Own<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        self.0
            .hints
            .iter()
            .try_for_each(|hint| write!(f, " {hint}"))
    }
}

/// The text without the prefix; failures that follow another one begin on a line of their own.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(earlier) = &self.earlier {
            write!(f, "{earlier}\n{}", if self.bare { "" } else { PREFIX })?;
        }
        Own(self).fmt(f)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

/// Adds a message to an error of another crate.
pub(crate) trait Context<T> {
    /// Converts the error to a failure that is printed as `message: error`.
    fn context(self, message: impl ToString) -> Result<T, Failure>;
}

impl<T, E: Into<Source>> Context<T> for Result<T, E> {
    fn context(self, message: impl ToString) -> Result<T, Failure> {
        self.map_err(|error| Failure::failed(message).caused_by(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_message_its_source_and_the_hints() {
        let failure = Failure::usage("--dir x").caused_by("not there");
        let failure = failure.hint("Make it.").hint("See `y`.");
        assert_eq!(failure.to_string(), "--dir x: not there Make it. See `y`.");
        assert!(failure.source().is_some());
        let reworded = failure.reworded(|text| text.replace('x', "z").replace('y', "w"));
        assert_eq!(reworded.to_string(), "--dir z: not there Make it. See `w`.");
    }

    #[test]
    fn each_of_several_failures_has_a_line() {
        let messages = ["a", "b", "c"].map(str::to_owned);
        let all = Failure::all(messages.into_iter());
        assert_eq!(all.to_string(), "a\nError: b\nError: c");
        let bare = Failure::failed("plan.yaml:1: x").bare();
        let summary = Failure::usage("1 problem.").after(bare);
        assert_eq!(summary.to_string(), "plan.yaml:1: x\nError: 1 problem.");
    }

    #[test]
    fn a_closed_pipe_has_no_message() {
        let closed = Failure::unwritten(io::ErrorKind::BrokenPipe.into());
        assert_eq!(closed.to_string(), "");
        let full = Failure::unwritten(io::ErrorKind::StorageFull.into());
        assert!(!full.to_string().is_empty());
    }

    #[test]
    fn pi_and_pinocchio_have_one_exit_code() {
        for (program, kind) in [
            (Program::Pinion, Kind::Usage),
            (Program::Pi, Kind::Operation),
            (Program::Pinocchio, Kind::Operation),
        ] {
            assert_eq!(Failure::usage("x").for_program(program).kind, kind);
        }
    }
}
