//! Runs `npm` and `git`, which fetch packages for pinion.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use pinion_process::{Confinement, Environment, Exit, Launch, Reason, Running, Tail};
use tokio::net::unix::pipe::Receiver;

use crate::PackageError;

/// The time limit for fetching one package.
const FETCH_TIMEOUT: Duration = Duration::from_secs(600);
/// Time to read the last output after the exit of a program.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);
/// The number of a failed program's last output lines that the error repeats.
const LAST_LINES: usize = 12;
/// Bytes at the end of the output that are stored for them.
const TAIL_BYTES: usize = 16 * 1024;

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
        let runtime = pinion_process::runtime::build()?;
        let mut tail = Tail::new(TAIL_BYTES);
        let exit = runtime.block_on(async {
            let (mut running, mut output) = self.start(arguments, directory).await?;
            let ended = wait(&mut running, &mut output, &mut tail);
            let ended = tokio::time::timeout(FETCH_TIMEOUT, ended).await;
            ended.map_err(|_| PackageError::Timeout {
                program: self.name,
                minutes: FETCH_TIMEOUT.as_secs() / 60,
            })
        })?;
        if exit == Exit::Code(0) {
            return Ok(());
        }
        let lines = tail.lines(LAST_LINES);
        let output = lines.iter().map(|line| format!("\n  {line}")).collect();
        Err(PackageError::Program {
            program: self.name,
            exit,
            output,
        })
    }

    async fn start(
        &self,
        arguments: &[&str],
        directory: &Path,
    ) -> Result<(Running, Receiver), PackageError> {
        let (output, stdout) = pinion_process::output_pipe()?;
        let stderr = stdout.try_clone()?;
        let words = arguments.iter().map(OsString::from);
        let launch = Launch {
            words: std::iter::once(self.path.clone().into())
                .chain(words)
                .collect(),
            directory: directory.to_owned(),
            variables: vec![
                ("GIT_TERMINAL_PROMPT".into(), "0".into()),
                ("GIT_SSH_COMMAND".into(), ssh_command()),
            ],
            base: Environment::Inherited,
            confinement: Confinement::Unconfined(Reason::UsersOwn),
            stdin: None,
            stdout: Some(stdout),
            stderr: Some(stderr),
        };
        let running = pinion_process::launch(launch).await;
        let running = running.map_err(|error| PackageError::Launch {
            program: self.name,
            error,
        })?;
        Ok((running, output))
    }
}

/// Waits for the exit of a program and reads its output meanwhile. Its background processes may hold the output open.
async fn wait(running: &mut Running, output: &mut Receiver, tail: &mut Tail) -> Exit {
    let mut reading = pin!(tail.fill(output));
    let mut open = true;
    let exit = loop {
        tokio::select! {
            exit = running.wait() => break exit,
            () = &mut reading, if open => open = false,
        }
    };
    if open {
        let _ = tokio::time::timeout(OUTPUT_GRACE, reading).await;
    }
    exit
}

/// Returns the ssh command of git. A connection that would prompt for a password fails instead, because there is no
/// terminal for an answer.
fn ssh_command() -> OsString {
    std::env::var_os("GIT_SSH_COMMAND").unwrap_or_else(|| "ssh -o BatchMode=yes".into())
}
