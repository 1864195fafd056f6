//! Plays recordings of extensions against any program and shows what differs, or makes a recording:
//!
//! `replay-extension RECORDING… -- PROGRAM ARGUMENT…` compares;
//! `replay-extension --record SCRIPT -- PROGRAM ARGUMENT…` plays the `in` lines of a file and prints the recording.
//!
//! `PINION_EXAMPLES` names the directory of the reference's examples, for the recordings that need them.

#![allow(clippy::print_stdout, reason = "a tool for people who write tests")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pinion_testkit::Program;
use pinion_testkit::vectors::{Places, Recording, judge, record};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(split) = arguments.iter().position(|argument| argument == "--") else {
        eprintln!("usage: replay-extension [--record] RECORDING… -- PROGRAM ARGUMENT…");
        return ExitCode::from(2);
    };
    let program = Program::from_command(&arguments[split + 1..]);
    let places = Places::new(env::var_os("PINION_EXAMPLES").map(PathBuf::from));
    if let [flag, script] = &arguments[..split]
        && flag == "--record"
    {
        print!("{}", record(Path::new(script), &program, &places));
        return ExitCode::SUCCESS;
    }
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
