//! Project tasks: `cargo xtask test | style | interop | bench | dist | packages | pictures`. Each task is one file; this one only reads the
//! command line. There are almost no dependencies, so that the tasks themselves build in seconds.

mod bench;
mod dist;
mod lockfile;
mod packages;
mod pages;
mod pictures;
mod runner;
mod shell;
mod style;
mod test;
mod tiers;
mod waits;

use std::process::ExitCode;

use self::dist::Reach;
use self::pictures::Purpose;

const USAGE: &str = "\
cargo xtask test [--all] [FILTER…]   check format, lints and dependencies and run all tests; with filters only those tests
                                     --all: also run every tier and install what it needs; nothing is skipped
cargo xtask style [PATH…]            check the wording rules of STYLE.md; with paths the whole list for those files
cargo xtask interop                  run only the tests with other programs: the reference agent and its clients (needs node
                                     and npm), another implementation of protobuf (needs python3)
cargo xtask bench [NAME…]            measure speed and memory of the profile dist, side by side with the reference agent
cargo xtask dist [--portable]        build the profile dist and its packages, in target/release-files/
                                     --portable: with zig, for every Linux with glibc 2.17 or newer
cargo xtask packages BINARY DIR      make the packages of a release around a binary
cargo xtask pictures [BINARY]        draw the pictures of the README from the running program; needs tmux
cargo xtask pictures --check [BINARY]  compare them with the running program
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.split_first() {
        Some((&"test", rest)) => test::run(rest),
        Some((&"interop", [])) => {
            let tiers = ["interop", "ACP", "Pinocchio frames", "hub messages", "MCP"];
            tiers.into_iter().try_for_each(tiers::run_one)
        }
        Some((&"style", rest)) => style::run(rest),
        Some((&"bench", rest)) => bench::run(rest),
        Some((&"dist", [])) => dist::run(Reach::ThisSystem),
        Some((&"dist", ["--portable"])) => dist::run(Reach::Portable),
        Some((&"packages", [binary, directory])) => packages::run(binary, directory),
        Some((&"pictures", ["--check", rest @ ..])) if rest.len() < 2 => {
            pictures::run(Purpose::Check, rest.first().copied())
        }
        Some((&"pictures", rest)) if rest.len() < 2 => {
            pictures::run(Purpose::Write, rest.first().copied())
        }
        Some((&("help" | "--help" | "-h"), _)) => {
            eprint!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown task \"{}\"\n\n{USAGE}", args.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
