//! Packs the published schemas, which `pinion schema` prints: made from the types where it runs, they would cost the
//! binary ten times as much. Asks for relocations in their short form where the system can read it.

#![allow(clippy::print_stdout, reason = "how a build script talks to cargo")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// A variable that requests a binary for older systems than this one: relocations stay in their long form.
const PORTABLE: &str = "PINION_PORTABLE";
/// A variable with the commit that is built, for builds outside of a repository.
const COMMIT: &str = "PINION_COMMIT";

fn main() -> io::Result<()> {
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from);
    let out = out.ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    for document in [
        "pi-early",
        "pi-classic",
        "pi-modern",
        "pi-sessions",
        "fleet-report",
    ] {
        let name = format!("{document}.schema.json");
        let source = Path::new("../../docs/schemas").join(&name);
        println!("cargo::rerun-if-changed={}", source.display());
        let packed = File::create(out.join(name + ".deflate"))?;
        let mut encoder = DeflateEncoder::new(packed, Compression::best());
        encoder.write_all(&fs::read(source)?)?;
        encoder.finish()?;
    }
    println!("cargo::rerun-if-env-changed={PORTABLE}");
    let is_release = variable("PROFILE") == "release";
    let is_portable = !matches!(variable(PORTABLE).as_str(), "" | "0");
    let packs_relocations = is_release && !is_portable && reads_short_relocations();
    if packs_relocations {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let mut features = Vec::new();
    if is_portable {
        features.push("portable");
    }
    if packs_relocations {
        features.push("packed-relocations");
    }
    describe_build(is_release, &features);
    Ok(())
}

/// Gives the program what `--version` prints. The commit of a build during development is not recorded: every commit
/// would compile the program again.
fn describe_build(is_release: bool, features: &[&str]) {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let commit = match variable(COMMIT) {
        given if !given.is_empty() => given,
        _ if is_release => {
            if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo::rerun-if-changed={log}");
            }
            git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default()
        }
        _ => String::new(),
    };
    println!("cargo::rustc-env={COMMIT}={commit}");
    println!("cargo::rustc-env=PINION_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=PINION_PROFILE={}", variable("PROFILE"));
    println!("cargo::rustc-env=PINION_FEATURES={}", features.join(" "));
}

/// Returns what git prints. A package of sources has no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_owned())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Whether this system, and so every newer one, starts programs whose relocations are packed. They are two megabytes
/// otherwise, all of them read at every start. glibc can since 2.36.
fn reads_short_relocations() -> bool {
    let is_glibc = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && variable("HOST") == variable("TARGET");
    let version = || {
        let said = Command::new("getconf")
            .arg("GNU_LIBC_VERSION")
            .output()
            .ok()?;
        let said = String::from_utf8(said.stdout).ok()?;
        let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    is_glibc && version().is_some_and(|version: (u32, u32)| version >= (2, 36))
}
