//! Starting a hub or a runtime as a process in the background.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pinion_status::{Code, Failure};

use crate::HubProcess;

/// The time limit for the start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The largest output of the process that is read, in bytes.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// A hub or a runtime that starts in the background. It does not end with this process.
#[derive(Debug)]
pub struct BackgroundHub {
    child: Child,
    pid_file: PathBuf,
    /// The file with the process's stderr.
    output: PathBuf,
}

impl BackgroundHub {
    /// Starts `command`, which is to write its pid to `pid_file`, with its stderr in the directory `root`. Fails if a
    /// hub or a runtime is running there.
    pub fn spawn(mut command: Command, root: &Path, pid_file: &Path) -> Result<Self, Failure> {
        if let Some(process) = HubProcess::at(pid_file) {
            let message = format!("{process}.");
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        let output = root.join("logs").join("pinixd.err");
        let stderr = create(&output).map_err(|error| Failure::io(output.display(), &error))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::io("the hub's process", &error))?;
        Ok(Self {
            child,
            pid_file: pid_file.to_owned(),
            output,
        })
    }

    /// Waits until the process has started to serve; `None` if it has exited instead. A process that does neither
    /// within twenty seconds is killed.
    pub fn wait(&mut self) -> Result<Option<HubProcess>, Failure> {
        let start = Instant::now();
        loop {
            let process = HubProcess::at(&self.pid_file);
            if let Some(process) = process.filter(|process| process.pid == self.child.id()) {
                return Ok(Some(process));
            }
            let exited = self.child.try_wait();
            let exited = exited.map_err(|error| Failure::io("the hub's process", &error))?;
            if exited.is_some() {
                return Ok(None);
            }
            if start.elapsed() > START_TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let message = format!(
                    "the hub did not start within {} s. Its output is in {}.",
                    START_TIMEOUT.as_secs(),
                    self.output.display()
                );
                return Err(Failure::new(Code::DeadlineExceeded, message));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns what the process has written to stderr.
    pub fn output(&self) -> String {
        pinion_files::read_text(&self.output, OUTPUT_LIMIT).unwrap_or_default()
    }
}

/// Creates a file, or empties it, and its directory.
fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    pinion_files::create_or_empty(path, 0o666)
}
