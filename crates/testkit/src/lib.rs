//! Support for the tests of every crate: a scripted model server, a sandbox to run the program in, a runner for
//! transcripts, a real browser, a real terminal, real NATS servers, and ways to make files and pipes fail.
//!
//! This crate is a dev-dependency only. It treats the program under test as a command line, so the same runner can
//! drive another implementation of a protocol for comparison. Of pinion's crates it uses only `pinion-proto`, to check
//! frames against their declarations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "runs inside tests only, where a panic with a clear message is the report"
)]

pub mod browser;
pub mod fault;
pub mod frames;
pub mod golden;
pub mod issuer;
pub mod mcp;
pub mod model;
pub mod nats;
pub mod sandbox;
pub mod schema;
pub mod tmux;
pub mod transcript;
pub mod vectors;

mod process;
mod stage;

pub use browser::Browser;
pub use frames::Frames;
pub use model::ModelServer;
pub use nats::NatsServers;
pub use nix::sys::signal::Signal;
pub use process::{Exit, Line, Process, Program};
pub use sandbox::Sandbox;
pub use stage::Stage;
pub use tmux::Tmux;
