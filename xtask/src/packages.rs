//! `cargo xtask packages BINARY DIRECTORY`: the packages of a release, all around one binary: an archive with checksums
//! and the script that installs it, a Debian package, two npm packages and a Python wheel.

mod archive;
mod debian;
mod npm;
mod symbols;
mod wheel;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, root};

pub use symbols::{Requirements, requirements};

/// The commands with a manual of their own.
const MANUALS: [&str; 6] = ["", "hub", "clip", "fleet", "invoke", "run-command"];

/// The binary and what the packages say about it.
pub struct Release {
    binary: PathBuf,
    /// The directory of the packages.
    directory: PathBuf,
    version: &'static str,
    /// The processor, as in `x86_64`.
    machine: String,
    requirements: Requirements,
}

impl Release {
    fn of(binary: &Path, directory: &Path) -> Result<Self, String> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|error| failed(path, &error));
        Ok(Self {
            binary: absolute(binary)?,
            directory: absolute(directory)?,
            version: env!("CARGO_PKG_VERSION"),
            machine: std::env::consts::ARCH.to_owned(),
            requirements: requirements(binary)?,
        })
    }

    /// Returns what the binary prints.
    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let line = format!("{} {}", self.binary.display(), arguments.join(" "));
        let output = Command::new(&self.binary).args(arguments).output();
        let output = output.map_err(|error| format!("{line}: {error}"))?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{line} failed: {printed}"));
        }
        String::from_utf8(output.stdout)
            .map_err(|_| format!("{line} printed bytes that are not UTF-8"))
    }

    /// Writes the manuals as `NAME.1` into a directory.
    fn write_manuals(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        let mut written = Vec::new();
        for command in MANUALS {
            let name = match command {
                "" => "pinion.1".to_owned(),
                command => format!("pinion-{command}.1"),
            };
            let arguments = [
                &["man"][..],
                if command.is_empty() {
                    &[]
                } else {
                    std::slice::from_ref(&command)
                },
            ];
            let page = self.ask(&arguments.concat())?;
            let path = directory.join(name);
            write(&path, page.as_bytes(), 0o644)?;
            written.push(path);
        }
        Ok(written)
    }
}

/// Makes all packages.
pub fn run(binary: &str, directory: &str) -> Outcome {
    let release = Release::of(Path::new(binary), Path::new(directory))?;
    make_directory(&release.directory)?;
    let Requirements { major, minor } = release.requirements;
    eprintln!("the binary needs glibc {major}.{minor} or newer");
    for (name, make) in [
        (
            "archive",
            archive::make as fn(&Release) -> Result<(), String>,
        ),
        ("Debian package", debian::make),
        ("npm packages", npm::make),
        ("wheel", wheel::make),
    ] {
        make(&release).map_err(|error| format!("{name}: {error}"))?;
    }
    archive::write_checksums(&release.directory)?;
    let mut names: Vec<String> = fs::read_dir(&release.directory)
        .map_err(|error| failed(&release.directory, &error))?
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    eprintln!("{}: {}", release.directory.display(), names.join(", "));
    Ok(())
}

/// Returns the path of a file in `packaging`.
fn packaging(name: &str) -> PathBuf {
    root().join("packaging").join(name)
}

fn make_directory(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| failed(path, &error))
}

/// Writes a file with its mode, and the directories above it.
fn write(path: &Path, content: &[u8], mode: u32) -> Outcome {
    if let Some(above) = path.parent() {
        make_directory(above)?;
    }
    fs::write(path, content).map_err(|error| failed(path, &error))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(|error| failed(path, &error))
}

/// Copies a file with its mode, and makes the directories above the copy.
fn copy(from: &Path, to: &Path, mode: u32) -> Outcome {
    let content = fs::read(from).map_err(|error| failed(from, &error))?;
    write(to, &content, mode)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Removes a directory of an earlier run, and makes it again.
fn fresh(path: &Path) -> Outcome {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(path, &error)),
        _ => make_directory(path),
    }
}
