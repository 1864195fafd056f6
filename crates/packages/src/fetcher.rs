//! Runs `npm` and `git`, which fetch packages for pinion.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::PackageError;

/// The time limit for fetching one package.
const FETCH_TIMEOUT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The number of a failed program's last output lines that the error repeats.
const LAST_LINES: usize = 12;

/// A program on the `PATH`.
#[derive(Debug)]
pub(super) struct Fetcher {
    name: &'static str,
    path: PathBuf,
}

impl Fetcher {
    /// Finds a program; ignores relative entries of the `PATH`, which would let a project choose the program.
    pub fn find(name: &'static str) -> Option<Self> {
        let directories = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&directories)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name));
        let path = places.find(|path| path.is_file())?;
        Some(Self { name, path })
    }

    /// Runs the program without a terminal and waits; the error repeats the end of its output.
    pub fn run(&self, arguments: &[&str], directory: &Path) -> Result<(), PackageError> {
        let mut output = tempfile::tempfile()?;
        let mut child = Command::new(&self.path)
            .args(arguments)
            .current_dir(directory)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_SSH_COMMAND", ssh_command())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()
            .map_err(|error| PackageError::Launch {
                program: self.name,
                error,
            })?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if started.elapsed() > FETCH_TIMEOUT {
                child.kill()?;
                child.wait()?;
                return Err(PackageError::Timeout {
                    program: self.name,
                    minutes: FETCH_TIMEOUT.as_secs() / 60,
                });
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        if status.success() {
            Ok(())
        } else {
            Err(self.failure(status, &mut output))
        }
    }

    fn failure(&self, status: ExitStatus, output: &mut File) -> PackageError {
        let mut bytes = Vec::new();
        // If the output cannot be read back, the message lacks it.
        let _ = output
            .rewind()
            .and_then(|()| output.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let last: String = last.iter().map(|line| format!("\n  {line}")).collect();
        PackageError::Program {
            program: self.name,
            status,
            output: last,
        }
    }
}

/// Returns the ssh command of git. A connection that would prompt for a password fails instead, because there is no
/// terminal for an answer.
fn ssh_command() -> std::ffi::OsString {
    std::env::var_os("GIT_SSH_COMMAND").unwrap_or_else(|| "ssh -o BatchMode=yes".into())
}
