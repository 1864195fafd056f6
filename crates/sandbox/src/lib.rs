//! A sandbox for the programs that a model runs, on Linux.
//!
//! A [`Policy`] is plain data: places, network and limits, with absolute paths. A [`Record`] is a denial as data. The crate
//! starts no process; `pinion-process` applies a policy to the processes that it starts.

#![warn(missing_docs)]

mod policy;
mod record;

pub use policy::{
    Allowance, Escalation, Limits, Loopback, Mode, Network, NetworkMode, Policy, Protection,
    Reading,
};
pub use record::{Denial, Level, Outcome, Record, SandboxReport};
