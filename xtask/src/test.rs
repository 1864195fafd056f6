//! `cargo xtask test`: format, lints, dependencies, documentation, then all tests. The test runner comes
//! last, so that its summary is the last thing on the screen.

use std::env;

use crate::lockfile;
use crate::runner;
use crate::shell::{self, Outcome, present, run_command};
use crate::style;
use crate::tiers::{self, Effort};

/// Checks everything, or with filters runs only the tests that they name.
pub fn run(args: &[&str]) -> Outcome {
    let (flags, filters): (Vec<&str>, Vec<&str>) =
        args.iter().partition(|arg| arg.starts_with('-'));
    let effort = match flags[..] {
        [] => Effort::UsePresent,
        ["--all"] => Effort::InstallMissing,
        _ => {
            return Err(format!(
                "test takes --all and filters, not {}",
                flags.join(" ")
            ));
        }
    };
    if filters.is_empty() {
        check(effort)?;
    }
    let ready = tiers::prepare(effort)?;
    tests(&filters, &ready)
}

fn check(effort: Effort) -> Outcome {
    shell::run(&["cargo", "fmt", "--all", "--check"])?;
    lockfile::check()?;
    style::run(&[])?;
    if present("cargo-deny") {
        shell::run(&["cargo", "deny", "check", "licenses", "bans", "sources"])?;
    }
    let clippy = [
        "cargo",
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    shell::run(&clippy)?;
    if effort == Effort::InstallMissing {
        let line = ["cargo", "doc", "--workspace", "--no-deps"];
        let mut command = shell::command(&line);
        run_command(command.env("RUSTDOCFLAGS", "-D warnings"), &line.join(" "))?;
    }
    shell::run(&["cargo", "test", "--workspace", "--doc", "--quiet"])
}

/// Tests of tiers that are not ready are excluded and counted as skipped by the runner.
fn tests(filters: &[&str], ready: &tiers::Ready) -> Outcome {
    if present("cargo-nextest") {
        let expression = ready.nextest_filter();
        let mut line = vec!["cargo", "nextest", "run", "--workspace", "--no-fail-fast"];
        line.extend(["--run-ignored", "all", "-E", &expression]);
        if env::var_os("CI").is_some() {
            line.extend(["--profile", "ci"]);
        }
        line.extend(filters);
        return ready.run(&line);
    }
    runner::run(filters, ready)
}
