//! The files on disk: whole after any cut, one writer at a time, never less than what was acknowledged, and never a
//! secret. Test names begin with the number of the promise they show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod acknowledged;
mod damage;
mod full_disk;
mod places;
mod secrets;
mod sharing;
mod silent_mount;
mod stalled_history;
