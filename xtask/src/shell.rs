//! Runs other programs: prints the command, and turns a failure into one sentence.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a task; the error is a message for people.
pub type Outcome = Result<(), String>;

/// The root of the project.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns cargo's target directory.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a command that runs in the root of the project.
pub fn command(line: &[&str]) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = match line[0] {
        "cargo" => Command::new(cargo),
        program => Command::new(program),
    };
    // Variables that `cargo run` sets for this package would make other packages look changed and rebuild them.
    let ours = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    command.args(&line[1..]).current_dir(root());
    command
}

/// Prints and runs a command line.
pub fn run(line: &[&str]) -> Outcome {
    run_command(&mut command(line), &line.join(" "))
}

/// Runs a prepared command, printed as `name`.
pub fn run_command(command: &mut Command, name: &str) -> Outcome {
    eprintln!("\n> {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed ({status})")),
        Err(error) => Err(format!("`{name}` could not be run: {error}")),
    }
}

/// Returns the standard output of a command, or `None` if it failed.
pub fn output(line: &[&str]) -> Option<String> {
    let output = command(line).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Reports whether a program is installed: it answers to `--version`.
pub fn present(program: &str) -> bool {
    output(&[program, "--version"]).is_some()
}
