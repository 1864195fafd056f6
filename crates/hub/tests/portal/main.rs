//! The portal in a real Chromium, against a hub with clips in Python and bash. `PINION_SCREENSHOTS=<directory>` keeps pictures
//! of every page.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod agent;
mod keeping;
mod looks;
mod running;
mod stage;
