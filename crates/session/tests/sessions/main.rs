//! Sessions on disk: writing, opening, damage, several processes, listing and export.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod browse;
mod damage;
mod export;
mod places;
mod processes;
mod random_trees;
mod recorded;
mod saves;
mod store;
mod support;
