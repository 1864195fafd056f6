//! The agent as a clip: the real binary runs a hub, callers speak Connect to it, the built-in model answers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../../../hub/tests/common/mod.rs"]
mod common;
mod events;
mod records;
mod runs;
mod stage;
#[path = "../support/mod.rs"]
mod support;
