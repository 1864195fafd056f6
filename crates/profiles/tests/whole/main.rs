//! From files on disk to settings and a model, in a temporary environment.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod choosing;
mod documents;
mod models;
mod registries;
mod world;
