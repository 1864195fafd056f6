//! The messages of the hub, in JSON and in binary form.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod edges;
mod first_invoke;
mod properties;
mod python;
mod rows;
mod schema;
mod vectors;
