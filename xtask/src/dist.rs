//! `cargo xtask dist`: the binary of the profile `dist`, with its licences, size and checksum.

use std::fs;

use crate::shell::{self, Outcome, output, present, root, target};

/// Builds the binary and collects the files of a release in `target/release-files/`.
pub fn run() -> Outcome {
    build()?;
    let version = env!("CARGO_PKG_VERSION");
    let host = output(&["rustc", "-vV"])
        .and_then(|text| {
            Some(
                text.lines()
                    .find_map(|l| l.strip_prefix("host: "))?
                    .to_owned(),
            )
        })
        .ok_or("rustc does not say for which machine it builds")?;
    let name = format!("pinion-{version}-{host}");
    let dist = target().join("release-files");
    let place = dist.join(&name);
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let copy = |from: std::path::PathBuf, to: &str| {
        fs::copy(&from, place.join(to)).map_err(|error| format!("{}: {error}", from.display()))
    };
    let size = copy(target().join("dist/pinion"), "pinion")?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        if root().join(file).exists() {
            copy(root().join(file), file)?;
        }
    }
    let dist = dist.to_string_lossy().into_owned();
    let archive = format!("{name}.tar.gz");
    shell::run(&[
        "tar",
        "-C",
        &dist,
        "-czf",
        &format!("{dist}/{archive}"),
        &name,
    ])?;
    let archive_size = fs::metadata(format!("{dist}/{archive}")).map_or(0, |m| m.len());
    let sum = checksum(&format!("{dist}/{archive}"))?;
    fs::write(format!("{dist}/SHA256SUMS"), format!("{sum}  {archive}\n"))
        .map_err(|error| format!("SHA256SUMS: {error}"))?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    eprintln!(
        "\npinion   {:6.1} MiB\narchive  {:6.1} MiB\nsha256   {sum}",
        mib(size),
        mib(archive_size)
    );
    Ok(())
}

/// The profile strips symbols itself.
fn build() -> Outcome {
    shell::run(&[
        "cargo",
        "build",
        "--profile",
        "dist",
        "--locked",
        "-p",
        "pinion",
    ])
}

fn checksum(path: &str) -> Result<String, String> {
    let line: &[&str] = if present("sha256sum") {
        &["sha256sum"]
    } else {
        &["shasum", "-a", "256"]
    };
    let text = output(&[line, &[path]].concat()).ok_or("no program for SHA-256 sums")?;
    text.split_whitespace()
        .next()
        .map(str::to_owned)
        .ok_or_else(|| "no checksum".into())
}
