//! What a stranger can reach: repositories that were never trusted, and what anyone on the machine can see of our
//! processes. Test names begin with the number of the promise they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod hostile_repository;
mod visible;
