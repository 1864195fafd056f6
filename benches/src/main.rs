//! Benchmarks: pinion, the reference agent and the limits of the machine, measured side by side by one client. `cargo
//! xtask bench` builds everything and runs this; see `benches/README.md`.
//!
//! Everything is measured from outside, over the same pipes that a client would use. There are no unit benchmarks, and
//! no comparisons with numbers from another day.

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

/// A result whose error is only displayed.
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
