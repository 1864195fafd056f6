//! The engine with a scripted provider, scripted tools and a paused clock: whole conversations without a process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod aborts;
mod bench;
mod calls;
mod commands;
mod compactions;
mod events;
mod hooks;
mod interleavings;
mod provider;
mod queues;
mod recorded;
mod retries;
mod saves;
mod tools;
mod tree;
