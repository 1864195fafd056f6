//! A sandbox for the programs that a model runs, on Linux.
//!
//! A [`Policy`] is plain data: places, network and limits, with absolute paths. [`Compiled`] is its form for the kernel:
//! Landlock decides about reading, a seccomp filter about other calls, and a warden performs what the policy permits of
//! the rest. A [`Record`] is a denial as data. The crate starts no process; `pinion-process` confines those that it starts.

#![warn(missing_docs)]

mod build;
mod confine;
mod environment;
mod filter;
mod git;
mod judge;
mod ledger;
mod mutation;
mod places;
mod policy;
mod record;
mod ruleset;
mod self_test;
mod settings;
mod system;
mod text;
mod warden;

pub use build::Surroundings;
pub use confine::{ChildSteps, Compiled, ConfineError, Confiner, check_system};
pub use environment::{confined_environment, is_secret};
pub use ledger::Ledger;
pub use policy::{
    Allowance, Escalation, Limits, Loopback, Mode, Network, NetworkMode, Policy, Protection,
    Reading,
};
pub use record::{Denial, Level, Outcome, Record, SandboxReport};
pub use self_test::{SelfTest, TestFiles};
pub use settings::{SandboxSettings, network_mode};
pub use warden::DenialSink;
