//! Plays recordings of extensions against any program and shows what differs:
//! `replay-extension RECORDING… -- PROGRAM ARGUMENT…`. `PINION_EXAMPLES` names the directory of the reference's examples,
//! for the recordings that need them.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a tool for people who write tests"
)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pinion_testkit::Program;
use pinion_testkit::vectors::{Places, Recording, judge};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(split) = arguments.iter().position(|argument| argument == "--") else {
        eprintln!("usage: replay-extension RECORDING… -- PROGRAM ARGUMENT…");
        return ExitCode::from(2);
    };
    let program = Program::from_command(&arguments[split + 1..]);
    let probes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/extensions/probes");
    let places = Places {
        examples: env::var_os("PINION_EXAMPLES").map(PathBuf::from),
        probes: probes.canonicalize().expect("the probes are there"),
    };
    let mut differing = 0;
    for path in &arguments[..split] {
        let outcome = judge(&Recording::read(Path::new(path)), &program, &places);
        if outcome.agrees() {
            println!("{}: agrees", outcome.case);
        } else {
            differing += 1;
            print!("{outcome}");
        }
    }
    ExitCode::from(u8::from(differing > 0))
}
