//! The server and the client, through real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and what they stand on, fail loudly"
)]

mod calls;
mod client_ends;
mod conformance;
mod doors;
mod farewells;
mod hostile;
mod http2;
mod hub;
mod lives;
mod raw;
mod secure;
mod stalled;
mod stopping;
mod vectors;
