//! Access of strangers: repositories that were never trusted, and the visibility of pinion's processes to other users
//! of the machine. Test names begin with the number of the promise they show.

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
