//! Joining another hub over a real socket: offering clips, calls, changes, lost connections, joining again.

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
