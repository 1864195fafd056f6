//! What ends the program early, in words and as an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | it was tried and failed |
//! | 2 | the command line is wrong |
//! | 129, 130, 143 | ended by SIGHUP, SIGINT, SIGTERM |

use std::process::ExitCode;

use crate::hub::show::harmless;
use crate::program::Program;

/// Why the program ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            message: message.into(),
        }
    }

    /// The same failure with the exit code `program` uses: pi and pinocchio have one code for everything.
    pub fn for_program(self, program: Program) -> Self {
        match program {
            Program::Pinion => self,
            Program::Pi | Program::Pinocchio => Self { code: 1, ..self },
        }
    }

    /// The same in other words.
    pub fn reworded(self, change: impl FnOnce(String) -> String) -> Self {
        Self {
            message: change(self.message),
            ..self
        }
    }

    /// It was tried and failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }

    /// The user does not want the answer any more.
    pub fn interrupted() -> Self {
        Self {
            code: 130,
            message: String::new(),
        }
    }

    /// It failed, and there is nobody to tell.
    pub fn quiet() -> Self {
        Self::failed("")
    }

    /// What happened, for somebody who has more than a terminal to show it on.
    pub fn into_words(self) -> String {
        match self.message.strip_prefix("Error: ") {
            Some(words) => words.to_owned(),
            None => self.message,
        }
    }

    /// Says what happened and gives the exit code.
    pub fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            // Others may have had a say in it.
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

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(format!("Error: {error}"))
    }
}
