//! Joining another hub over a real socket: offered, called, changed, cut off, joined again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/provider.rs"]
mod provider;

mod campaign;
mod hubs;
mod offered;
mod stage;
