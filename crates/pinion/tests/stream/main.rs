//! The stream of lines: whole, in order, in time, and written by pinion alone. Test names begin with the number of the
//! promise they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod lines;
mod pace;
mod schema;
