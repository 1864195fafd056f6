//! Packs the published schemas, which `pinion schema` prints: made from the types where it runs, they would cost the
//! binary ten times as much. Asks for relocations in their short form where the system can read it.

#![allow(clippy::print_stdout, reason = "how a build script talks to cargo")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

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
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && reads_short_relocations()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// Whether this system, and so every newer one, starts programs whose relocations are packed. They are two megabytes
/// otherwise, all of them read at every start. glibc can since 2.36.
fn reads_short_relocations() -> bool {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
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
