//! Failures that end the program: a message and an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | the operation failed |
//! | 2 | the command line is wrong |
//! | 129, 130, 131, 143 | ended by SIGHUP, SIGINT, SIGQUIT, SIGTERM |

use std::process::ExitCode;

use pinion_text::harmless;

use crate::program::Program;

/// A failure that ends the program.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Creates a failure for a wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            message: message.into(),
        }
    }

    /// Sets the exit code that `program` uses: pi and pinocchio have one code for all failures.
    pub fn for_program(self, program: Program) -> Self {
        match program {
            Program::Pinion => self,
            Program::Pi | Program::Pinocchio => Self { code: 1, ..self },
        }
    }

    /// Changes the message.
    pub fn reworded(self, change: impl FnOnce(String) -> String) -> Self {
        Self {
            message: change(self.message),
            ..self
        }
    }

    /// Creates a failure of an operation.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }

    /// Creates the failure for SIGINT, without a message.
    pub fn interrupted() -> Self {
        Self {
            code: 130,
            message: String::new(),
        }
    }

    /// Creates a failure without a message.
    pub fn quiet() -> Self {
        Self::failed("")
    }

    /// Returns the message without the prefix `Error: `.
    pub fn into_words(self) -> String {
        match self.message.strip_prefix("Error: ") {
            Some(words) => words.to_owned(),
            None => self.message,
        }
    }

    /// Prints the message, if any, and returns the exit code.
    pub fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            // Parts of the message may come from other programs or servers.
            eprintln!("{}", harmless(&self.message));
        }
        ExitCode::from(self.code)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.message.strip_prefix("Error: ");
        f.write_str(message.unwrap_or(&self.message))
    }
}

impl From<pinion_cli::Error> for Failure {
    fn from(error: pinion_cli::Error) -> Self {
        Self::usage(format!("Error: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(format!("Error: {error}"))
    }
}
