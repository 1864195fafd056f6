//! The portal in a real Chromium, against a hub with clips in Python and bash. `PINION_SCREENSHOTS=<directory>` stores
//! pictures of every page.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests, and what they stand on, fail loudly"
)]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod agent;
mod appearance;
mod management;
mod modules;
mod proxy;
mod running;
mod stage;
