//! Packs the published schemas, which `pinion schema` prints: made from the types where it runs, they would cost the
//! binary ten times as much.

#![allow(clippy::print_stdout, reason = "how a build script talks to cargo")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    Ok(())
}
