//! The Pinocchio front through the real binary: requests on a command line or on standard input, and every frame of the
//! answer. Every stream is checked against the declarations of its messages and against the rules of all streams. The
//! databases have tests of their own (`pinocchio_databases`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
mod support;

mod cancels;
mod choosing;
mod endings;
mod exits;
mod input;
mod links;
mod models;
mod normal;
mod outputs;
mod pace;
mod pipelines;
mod requests;
mod rules;
mod sequences;
mod stage;
mod vectors;
