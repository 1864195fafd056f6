//! The life of a request, a run and a process: every request is answered, every run ends, and nothing is
//! left behind. Test names begin with the number of the promise they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod abort;
mod answers;
mod dialect;
mod endings;
mod exits;
mod interleavings;
mod limits;
mod orphans;
mod readers;
mod timeouts;
