//! Benchmarks: our binary, the reference agent and what the machine allows, measured side by side by
//! one client. `cargo xtask bench` builds everything and runs this; see `benches/README.md`.
//!
//! Everything is measured from outside, over the same pipes a client would use. Nothing here is a
//! unit benchmark, and nothing is compared with numbers from another day.

mod agent;
mod home;
mod http;
mod lines;
mod measure;
mod model;
mod os;
mod plain;
mod process;
mod report;
mod samples;
mod screen;
mod table;
mod talk;
mod terminal;

use std::process::ExitCode;

/// A result whose error is only ever shown.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.first().map_or("", String::as_str);
    let second = arguments.get(1).map_or("", String::as_str);
    let done = plain::run(first, second).unwrap_or_else(|| report::run(&arguments));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
