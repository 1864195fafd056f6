//! Joining another hub over a real socket: offered, called, changed, cut off, joined again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
#[path = "common/provider.rs"]
mod provider;

#[path = "join/campaign.rs"]
mod campaign;
#[path = "join/hubs.rs"]
mod hubs;
#[path = "join/offered.rs"]
mod offered;
#[path = "join/stage.rs"]
mod stage;
