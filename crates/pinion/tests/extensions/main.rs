//! Extensions in the real binary: recordings of the reference played against it, and extensions that do everything
//! wrong.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod hooks;
mod hostile;
mod modern;
mod vectors;
