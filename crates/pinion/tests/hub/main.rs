//! The hub through the binary: commands, their output, and the state after a kill.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod accounts;
mod calls;
mod clips;
mod filters;
mod gateway;
mod issuers;
mod joining;
mod links;
mod memory;
mod schedules;
#[path = "../../../clip/tests/common/server.rs"]
mod server;
mod serving;
mod stage;
mod terminal;
mod upgrades;
