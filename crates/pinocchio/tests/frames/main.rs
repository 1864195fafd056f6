//! Frames as a client reads them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod client;
mod event_order;
mod properties;
#[path = "../../../pi/tests/dialects/script.rs"]
mod script;
mod stage;
mod stores;
mod text_output;
mod vectors;
