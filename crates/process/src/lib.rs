//! Processes that end with pinion, even after `kill -9`.
//!
//! A guardian process starts them and kills whatever is left when pinion is gone ([`guardian_main`]). Every other crate launches
//! programs through [`launch()`]; none uses `std::process` for programs that users or models choose. This crate does not read
//! the output of processes and has no shell.
//!
//! The public modules are about the program's own process: its [`signals`], its limits ([`descriptors`]), its async
//! [`runtime`] and the [`reader`] of its output.

#![warn(missing_docs)]

pub mod descriptors;
mod guardian;
mod launch;
mod link;
pub mod reader;
pub mod runtime;
pub mod signals;

pub use guardian::guardian_main;
pub use guardian::sweep::FAMILY;
pub use launch::{Environment, Exit, GUARDIAN_ARGUMENT, Launch, Running, launch};
pub use link::{KILLED, kill_all, kill_family, set_guardian};
