//! The interface for asking the user about a tool call, and the possible answers.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::Question;

/// Asks the user about tool calls. Dropping the future withdraws the question.
pub trait Ask: Send + Sync {
    /// Asks a question and returns an answer within `timeout`.
    fn ask<'a>(&'a self, question: &'a Question, timeout: Duration) -> BoxFuture<'a, Answer>;
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The call may run.
    Allowed,
    /// The call may run, and so may the same call until the run has settled.
    AllowedForRun,
    /// The user refused the call.
    Refused,
    /// There was no answer.
    Absent(Absence),
}

/// The reason why there was no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The timeout passed.
    Expired,
    /// There was never a client that could show the question.
    NoClient,
    /// The client disconnected.
    ClientLeft,
}

/// Answers every question with [`Absence::NoClient`], for modes without a client that could show it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unattended;

impl Ask for Unattended {
    fn ask<'a>(&'a self, _: &'a Question, _: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::ready(Answer::Absent(Absence::NoClient)))
    }
}
