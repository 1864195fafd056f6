//! The archive for every Linux, the script that installs it, and the checksums of all packages.

use std::fs;
use std::path::Path;

use super::{Release, copy, failed, fresh, packaging, write};
use crate::shell::{Outcome, output, root, run};

/// Names of completions, by shell.
pub(super) const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "pinion.bash"),
    ("zsh", "_pinion"),
    ("fish", "pinion.fish"),
];

pub(super) fn make(release: &Release) -> Outcome {
    let name = format!(
        "pinion-{}-{}-unknown-linux-gnu",
        release.version, release.machine
    );
    let place = release.directory.join("work").join(&name);
    fresh(&place)?;
    copy(&release.binary, &place.join("pinion"), 0o755)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        copy(&root().join(file), &place.join(file), 0o644)?;
    }
    release.write_manuals(&place.join("man"))?;
    for (shell, file) in COMPLETIONS {
        let text = release.ask(&["completions", shell])?;
        write(
            &place.join("completions").join(file),
            text.as_bytes(),
            0o644,
        )?;
    }
    for unit in UNITS {
        copy(
            &packaging(&format!("systemd/{unit}")),
            &place.join("systemd").join(unit),
            0o644,
        )?;
    }
    let archive = release.directory.join(format!("{name}.tar.gz"));
    let above = release.directory.join("work");
    run(&[
        "tar",
        "--create",
        "--gzip",
        "--sort=name",
        "--mtime=@946684800",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--directory",
        &above.to_string_lossy(),
        "--file",
        &archive.to_string_lossy(),
        &name,
    ])?;
    copy(
        &packaging("install.sh"),
        &release.directory.join("install.sh"),
        0o755,
    )
}

/// The units of systemd, below `packaging/systemd`.
pub(super) const UNITS: [&str; 3] = [
    "pinion-hub.service",
    "pinion-fleet@.service",
    "user/pinion-hub.service",
];

/// Writes `SHA256SUMS` of every package in the directory.
pub(super) fn write_checksums(directory: &Path) -> Outcome {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| failed(directory, &error))? {
        let path = entry.map_err(|error| failed(directory, &error))?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        names.extend(name.filter(|name| path.is_file() && name != "SHA256SUMS"));
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        let path = directory.join(&name);
        let sum = output(&["sha256sum", &path.to_string_lossy()]);
        let sum = sum.ok_or("sha256sum is not installed")?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        sums.push_str(&format!("{sum}  {name}\n"));
    }
    write(&directory.join("SHA256SUMS"), sums.as_bytes(), 0o644)
}
