//! Programs that extensions run, without a shell and to their end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use pinion_process::{Environment, Exit, Launch, Running, launch};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::extensions::Inner;

/// How long a program that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);
/// After a program has ended, what it left in the background may print for this long.
const AFTER_END: Duration = Duration::from_millis(100);
/// What is printed beyond this is not kept.
const MAX_OUTPUT: usize = 64 << 20;
const PIECE: usize = 64 * 1024;

/// A program to run.
#[derive(Deserialize)]
struct Program {
    job: String,
    command: String,
    arguments: Vec<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// In milliseconds.
    #[serde(default)]
    timeout: Option<f64>,
    /// It was asked to end before it began.
    #[serde(default)]
    stopped: bool,
}

/// What a program did.
#[derive(Default)]
struct Outcome {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Option<Exit>,
    killed: bool,
}

impl Inner {
    /// Runs a program to its end: `{stdout, stderr, code, killed}`.
    pub(super) async fn run_program(&self, request: &Value) -> Value {
        let failed = || json!({"stdout": "", "stderr": "", "code": 1, "killed": false});
        let Ok(program) = Program::deserialize(request) else {
            return failed();
        };
        let stop = CancellationToken::new();
        if program.stopped {
            stop.cancel();
        }
        let programs = || self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs().insert(program.job.clone(), stop.clone());
        let job = program.job.clone();
        let outcome = run(program, self.working_directory(), &stop).await;
        programs().remove(&job);
        let Ok(outcome) = outcome else {
            return failed();
        };
        json!({
            "stdout": String::from_utf8_lossy(&outcome.stdout),
            "stderr": String::from_utf8_lossy(&outcome.stderr),
            "code": match outcome.exit {
                Some(Exit::Code(code)) => code,
                _ => 0,
            },
            "killed": outcome.killed,
        })
    }

    /// Asks a program to end.
    pub(super) fn stop_program(&self, job: &str) {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = programs.get(job) {
            stop.cancel();
        }
    }

    fn working_directory(&self) -> PathBuf {
        let of_session = self
            .desk()
            .and_then(|desk| desk.read(|store| store.cwd().to_owned()).ok());
        let of_process = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        of_session.unwrap_or_else(of_process)
    }
}

async fn run(
    program: Program,
    directory: PathBuf,
    stop: &CancellationToken,
) -> std::io::Result<Outcome> {
    let timeout = program.timeout.map(crate::ops::span);
    let (mut running, mut stdout, mut stderr) = start(program, directory).await?;
    let mut outcome = Outcome::default();
    let mut piece = vec![0; PIECE];
    let mut error_piece = vec![0; PIECE];
    let (mut out_open, mut err_open) = (true, true);
    let mut late = timeout.map(|timeout| Instant::now() + timeout);
    // Set when it was asked to end, and then when it need not be waited for any more.
    let mut kill_at = None;
    let mut give_up = None;
    while outcome.exit.is_none() || out_open || err_open {
        tokio::select! {
            () = stop.cancelled(), if !outcome.killed && outcome.exit.is_none() => {
                outcome.killed = true;
                kill_at = terminate(&running);
            }
            () = at(late), if !outcome.killed && outcome.exit.is_none() => {
                late = None;
                outcome.killed = true;
                kill_at = terminate(&running);
            }
            () = at(kill_at) => {
                kill_at = None;
                running.kill();
                give_up = Some(Instant::now() + GRACE);
            }
            exit = running.wait(), if outcome.exit.is_none() => {
                outcome.exit = Some(exit);
                kill_at = None;
                give_up = Some(Instant::now() + AFTER_END);
            }
            read = stdout.read(&mut piece), if out_open => {
                out_open = keep(&mut outcome.stdout, &piece, read);
            }
            read = stderr.read(&mut error_piece), if err_open => {
                err_open = keep(&mut outcome.stderr, &error_piece, read);
            }
            () = at(give_up) => break,
        }
    }
    Ok(outcome)
}

/// Asks a program to end; when it must have.
fn terminate(running: &Running) -> Option<Instant> {
    // It may be gone already; then its end is about to be told.
    let _ = killpg(Pid::from_raw(running.pid()), Signal::SIGTERM);
    Some(Instant::now() + GRACE)
}

fn keep(kept: &mut Vec<u8>, piece: &[u8], read: std::io::Result<usize>) -> bool {
    match read {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            let room = MAX_OUTPUT.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..count.min(room)]);
            true
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn start(
    program: Program,
    directory: PathBuf,
) -> std::io::Result<(Running, Receiver, Receiver)> {
    let (out_reader, out_writer) = std::io::pipe()?;
    let (err_reader, err_writer) = std::io::pipe()?;
    let mut words = vec![program.command.into()];
    words.extend(program.arguments.into_iter().map(Into::into));
    let running = launch(Launch {
        words,
        directory: program.cwd.unwrap_or(directory),
        variables: crate::ops::environment(),
        base: Environment::Empty,
        stdin: None,
        stdout: Some(out_writer.into()),
        stderr: Some(err_writer.into()),
    })
    .await?;
    let stdout = Receiver::from_owned_fd(OwnedFd::from(out_reader))?;
    let stderr = Receiver::from_owned_fd(OwnedFd::from(err_reader))?;
    Ok((running, stdout, stderr))
}
