//! Tests that need more than Rust. They are marked `#[ignore]`, which is for them alone, and live in test targets
//! of their own; a tier names the targets and brings about what they need. Without `--all` a tier whose needs are not there is left
//! out, with a line that says so.

use std::env;
use std::fs;
use std::path::PathBuf;

use crate::shell::{self, Outcome, present, root, run, run_command, target};

/// How far to go for a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Take what is on the machine; leave out the rest and say so.
    UsePresent,
    /// Install what is missing; failing that is an error.
    InstallMissing,
}

/// Variables that tell tests where to find what was prepared for them.
type Environment = Vec<(&'static str, PathBuf)>;

struct Tier {
    name: &'static str,
    /// Package and test target.
    tests: &'static [(&'static str, &'static str)],
    /// Brings about what the tests need.
    prepare: fn(Effort) -> Result<Environment, String>,
}

const TIERS: [Tier; 1] = [Tier {
    name: "interop",
    tests: &[("pinion", "interop"), ("pinion", "interop_extensions")],
    prepare: reference_agent,
}];

/// Releases of the reference agent the interop tests run against.
const RELEASES: [&str; 2] = ["0.52.12", "0.73.1"];

/// The tiers that can run.
#[derive(Debug, Default)]
pub struct Ready {
    left_out: Vec<&'static str>,
    environment: Environment,
}

impl Ready {
    /// Runs a command line with the environment the tiers need.
    pub fn run(&self, line: &[&str]) -> Outcome {
        let mut command = shell::command(line);
        command.envs(self.environment());
        run_command(&mut command, &line.join(" "))
    }

    /// What the tests of the tiers need to know.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        self.environment.iter().map(|(name, value)| (*name, value))
    }

    /// Whether this test target belongs to a tier that cannot run.
    pub fn leaves_out(&self, target: &str) -> bool {
        self.left_out.contains(&target)
    }

    /// Everything but the targets of tiers that were left out.
    pub fn nextest_filter(&self) -> String {
        let left_out: String = self
            .left_out
            .iter()
            .map(|t| format!(" - binary(={t})"))
            .collect();
        format!("all(){left_out}")
    }
}

/// Makes all tiers ready, as far as `effort` goes.
pub fn prepare(effort: Effort) -> Result<Ready, String> {
    let mut ready = Ready::default();
    for tier in &TIERS {
        match (tier.prepare)(effort) {
            Ok(environment) => {
                ready.environment.extend(environment);
            }
            Err(reason) if effort == Effort::UsePresent => {
                eprintln!("\nskipped: {} tests ({reason})", tier.name);
                ready
                    .left_out
                    .extend(tier.tests.iter().map(|(_, test)| test));
            }
            Err(reason) => return Err(format!("{} tests cannot run: {reason}", tier.name)),
        }
    }
    Ok(ready)
}

/// Runs the tests of one tier, installing what they need.
pub fn run_one(name: &str) -> Outcome {
    let tier = TIERS
        .iter()
        .find(|tier| tier.name == name)
        .ok_or("there is no such tier")?;
    let environment = (tier.prepare)(Effort::InstallMissing)?;
    let ready = Ready {
        environment,
        ..Ready::default()
    };
    for (package, test) in tier.tests {
        ready.run(&[
            "cargo",
            "test",
            "-p",
            package,
            "--test",
            test,
            "--",
            "--ignored",
        ])?;
    }
    Ok(())
}

/// Node from the distribution and the reference agent from npm, in the target directory.
fn reference_agent(effort: Effort) -> Result<Environment, String> {
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        if present(program) {
            continue;
        }
        if effort == Effort::UsePresent {
            return Err(format!("{program} is not installed"));
        }
        apt_install(package)?;
    }
    let directory = target().join("interop");
    for release in RELEASES {
        let place = directory.join(format!("pi-{release}"));
        if place.join("node_modules/.package-lock.json").exists() {
            continue;
        }
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let package = format!("@mariozechner/pi-coding-agent@{release}");
        let place = place.to_string_lossy();
        let mut npm = vec![
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
        ];
        npm.extend(["--loglevel=error", "--prefix", &place, &package]);
        run(&npm)?;
    }
    Ok(vec![("PINION_INTEROP_DIR", directory)])
}

/// Installs a Debian package by name; needs root.
fn apt_install(package: &str) -> Outcome {
    if !present("apt-get") {
        return Err(format!(
            "{package} is missing and there is no apt-get to install it with"
        ));
    }
    let install = [
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        package,
    ];
    let quiet = |line: &[&str]| {
        let mut command = shell::command(line);
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(root());
        run_command(&mut command, &line.join(" "))
    };
    // The lists of a fresh machine are empty or old.
    if env::var_os("PINION_APT_UPDATED").is_none() {
        let _ = quiet(&["apt-get", "update"]);
    }
    quiet(&install)
}
