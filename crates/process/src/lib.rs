//! Processes that end with pinion, even after `kill -9`.
//!
//! A guardian process starts them and kills whatever is left when pinion is gone ([`guardian_main`]). Every other crate
//! launches programs through [`launch()`] or [`launch_piped`]; none uses `std::process` for programs that users or models
//! choose. [`Child`] supervises one process to its orderly end. This crate has no shell and interprets no output.
//!
//! The public modules are about the program's own process: its [`signals`], its limits ([`descriptors`]), its
//! [`memory`], its async [`runtime`] and the [`reader`] of its output.

#![warn(missing_docs)]

pub mod descriptors;
mod ending;
mod guardian;
mod launch;
mod link;
pub mod memory;
mod pipes;
pub mod reader;
pub mod runtime;
pub mod signals;

pub use ending::{Child, ChildEvent, Ending, EndingLimits, EndingStep};
pub use guardian::confined::SELF_TEST_ARGUMENT;
pub use guardian::guardian_main;
pub use guardian::sweep::FAMILY;
pub use launch::{
    Confinement, Environment, Exit, GUARDIAN_ARGUMENT, Launch, Reason, Running, VariableSource,
    launch, launch_with, set_variable_source,
};
pub use link::{KILLED, kill_all, kill_family, set_guardian};
pub use pipes::{Pipes, Tail, input_pipe, launch_piped, output_pipe};
