//! From files on disk to settings and a model, in a world of their own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod choosing;
mod documents;
mod models;
mod registries;
mod world;
