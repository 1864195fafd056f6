//! Identities of clouds: the credential chain and the signatures of AWS, the application default credentials of Google,
//! and workload identity at Anthropic.
//!
//! Everything is read from a caller's [`Variables`] and from the files that they name; nothing is stored. Callers cache a
//! result until it expires.

#![warn(missing_docs)]

pub mod anthropic;
pub mod aws;
pub mod google;
mod time;
mod variables;

pub use time::{Timestamp, parse_time};
pub use variables::{CommandRunner, Variables};
