//! `cargo xtask dist`: the binary of the profile `dist` and its packages.

use std::fs;

use crate::packages::{self, Requirements};
use crate::shell::{self, Outcome, command, present, root, run_command, target};

/// The oldest glibc that a portable binary starts on.
const OLDEST_GLIBC: Requirements = Requirements {
    major: 2,
    minor: 17,
};

/// The linker for older systems than this one, as a package of Python.
const ZIGBUILD: &str = "cargo-zigbuild==0.24.0";

/// The systems that the binary is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Systems with the glibc of this one or a newer one.
    ThisSystem,
    /// Systems with glibc 2.17 or newer.
    Portable,
}

/// Builds the binary and collects the packages of a release in `target/release-files/`.
pub fn run(reach: Reach) -> Outcome {
    let binary = match reach {
        Reach::ThisSystem => {
            shell::run(&[
                "cargo",
                "build",
                "--profile",
                "dist",
                "--locked",
                "-p",
                "pinion",
            ])?;
            target().join("dist/pinion")
        }
        Reach::Portable => build_portable()?,
    };
    if reach == Reach::Portable {
        let needed = packages::requirements(&binary)?;
        if needed > OLDEST_GLIBC {
            let Requirements { major, minor } = needed;
            return Err(format!(
                "the portable binary needs glibc {major}.{minor}, which is newer than 2.17"
            ));
        }
    }
    let size = fs::metadata(&binary).map_or(0, |found| found.len());
    eprintln!("\npinion {:.1} MiB", size as f64 / f64::from(1 << 20));
    let directory = target().join("release-files");
    packages::run(&binary.to_string_lossy(), &directory.to_string_lossy())
}

/// Builds with zig as linker, which is installed from PyPI if it is missing.
fn build_portable() -> Result<std::path::PathBuf, String> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let tools = target().join("client-tools").join(ZIGBUILD);
    if !present("cargo-zigbuild") && !tools.join("bin/cargo-zigbuild").exists() {
        let place = tools.to_string_lossy();
        shell::run(&["python3", "-m", "venv", "--clear", &place])?;
        let python = format!("{place}/bin/python");
        shell::run(&[&python, "-m", "pip", "install", "--quiet", ZIGBUILD])?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tools.join("bin").display());
    let wanted = format!("{triple}.{}.{}", OLDEST_GLIBC.major, OLDEST_GLIBC.minor);
    let line = [
        "cargo",
        "zigbuild",
        "--profile",
        "dist",
        "--locked",
        "-p",
        "pinion",
        "--target",
        &wanted,
    ];
    let mut build = command(&line);
    build
        .env("PATH", path)
        .env("PINION_PORTABLE", "1")
        .current_dir(root());
    run_command(&mut build, &line.join(" "))?;
    Ok(target().join(triple).join("dist/pinion"))
}
