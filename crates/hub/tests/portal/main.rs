//! The portal in a real Chromium, against a hub with clips in Python and bash. `PINION_SCREENSHOTS=<directory>` keeps pictures
//! of every page.

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
mod keeping;
mod looks;
mod modules;
mod running;
mod stage;
mod wire;
