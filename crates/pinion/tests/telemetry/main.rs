//! Traces and metrics of the real binary: spans at a receiver on loopback, the pages of a hub for monitoring.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod monitoring;
mod receiver;
mod receivers;
#[path = "../hub/stage.rs"]
#[allow(dead_code, reason = "the tests of the hub use the rest")]
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod traces;
