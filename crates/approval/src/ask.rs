//! Asking somebody, and what may come back.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::Question;

/// Asks somebody about a call. A question that is dropped is withdrawn.
pub trait Ask: Send + Sync {
    /// Asks; an answer comes within `patience`.
    fn ask<'a>(&'a self, question: &'a Question, patience: Duration) -> BoxFuture<'a, Answer>;
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This call may be made.
    Allowed,
    /// This call may be made, and the same again until the run has settled.
    AllowedForRun,
    /// Somebody said no.
    Refused,
    /// Nobody said anything.
    Absent(Absence),
}

/// Why nobody said anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The time was up.
    Expired,
    /// There never was anybody to ask.
    NoClient,
    /// Who could be asked has left.
    ClientLeft,
}

/// Asks nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Ask for Nobody {
    fn ask<'a>(&'a self, _: &'a Question, _: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::ready(Answer::Absent(Absence::NoClient)))
    }
}
