//! The server and the client, through real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what tests stand on may fail loudly"
)]

#[allow(dead_code, reason = "more tests use it soon")]
mod hub;
mod raw;
mod vectors;
