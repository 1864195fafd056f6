//! Fleets through the real binary: plans whose children are shell scripts, pinion itself, and tasks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod consumer;
mod endings;
mod example;
mod input;
mod kills;
mod money;
mod places;
mod plans;
mod producer;
mod resilience;
mod resume;
mod secrets;
mod sharing;
mod stage;
mod tasks;
mod verdicts;
