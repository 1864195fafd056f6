//! `cargo xtask bench`: runs the programs in `benches/` against an optimised build. Each is a script that reads
//! `PINION` (the binary) and `MOCK_MODEL` (the model server) and prints its results itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::shell::{self, Outcome, root, run_command, target};

/// Runs all benchmarks, or the named ones.
pub fn run(names: &[&str]) -> Outcome {
    let programs = programs(names)?;
    build()?;
    let built = target().join("fast-release");
    for program in programs {
        let mut command = std::process::Command::new(&program);
        command
            .current_dir(root())
            .env("PINION", built.join("pinion"))
            .env("MOCK_MODEL", built.join("mock-model"));
        run_command(&mut command, &program.display().to_string())?;
    }
    Ok(())
}

fn build() -> Outcome {
    shell::run(&[
        "cargo",
        "build",
        "--profile",
        "fast-release",
        "-p",
        "pinion",
        "-p",
        "pinion-testkit",
    ])
}

fn programs(names: &[&str]) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(root().join("benches")).map_err(|error| format!("benches: {error}"))?;
    let wanted = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        names.is_empty() || names.contains(&&*name)
    };
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut programs: Vec<PathBuf> = paths.filter(executable).filter(wanted).collect();
    programs.sort();
    if programs.is_empty() {
        return Err("there is no such program in benches/".into());
    }
    Ok(programs)
}
