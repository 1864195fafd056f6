//! Tests of the server and the client over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and what they stand on, fail loudly"
)]

mod answer_ends;
mod call_ends;
mod calls;
mod conformance;
mod half_close;
mod hostile;
mod http2;
mod hub;
mod raw;
mod request_checks;
mod secure;
mod stalled;
mod stopping;
mod vectors;
