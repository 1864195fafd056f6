//! Programs that extensions run to completion, without a shell.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use pinion_process::{
    Child, ChildEvent, Confinement, EndingLimits, EndingStep, Environment, Exit, Launch, Reason,
    launch, output_pipe,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::extensions::Inner;

const ENDING: EndingLimits = EndingLimits {
    // A program has no input, so its end begins with SIGTERM.
    input_closed: Duration::ZERO,
    terminated: Duration::from_secs(5),
    killed: Duration::from_secs(5),
    // Background processes may still print.
    exited: Duration::from_millis(100),
};
/// Bytes stored per output stream; the rest is dropped.
const MAX_OUTPUT: usize = 64 << 20;
const READ_SIZE: usize = 64 * 1024;

#[derive(Deserialize)]
struct Program {
    job: String,
    command: String,
    arguments: Vec<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// Milliseconds.
    #[serde(default)]
    timeout: Option<f64>,
    /// The extension cancelled the program before it started.
    #[serde(default)]
    stopped: bool,
}

#[derive(Default)]
struct ProgramOutcome {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Option<Exit>,
    killed: bool,
}

impl Inner {
    /// Runs a program to completion and returns `{stdout, stderr, code, killed}`.
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

    /// Requests the end of a program.
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
) -> std::io::Result<ProgramOutcome> {
    let timeout = program.timeout.map(crate::ops::duration_from_millis);
    let (mut child, mut stdout, mut stderr) = start(program, directory).await?;
    let mut outcome = ProgramOutcome::default();
    let mut piece = vec![0; READ_SIZE];
    let mut error_piece = vec![0; READ_SIZE];
    let (mut out_open, mut err_open) = (true, true);
    let mut deadline = timeout.map(|timeout| Instant::now() + timeout);
    while outcome.exit.is_none() || out_open || err_open {
        tokio::select! {
            () = stop.cancelled(), if !outcome.killed && outcome.exit.is_none() => {
                outcome.killed = true;
                child.terminate();
            }
            () = sleep_until(deadline), if !outcome.killed && outcome.exit.is_none() => {
                deadline = None;
                outcome.killed = true;
                child.terminate();
            }
            event = child.next() => match event {
                ChildEvent::Exited(exit) => outcome.exit = Some(exit),
                ChildEvent::Step(EndingStep::GivenUp) => break,
                ChildEvent::Step(_) => {}
            },
            read = stdout.read(&mut piece), if out_open => {
                out_open = store_output(&mut outcome.stdout, &piece, read);
            }
            read = stderr.read(&mut error_piece), if err_open => {
                err_open = store_output(&mut outcome.stderr, &error_piece, read);
            }
        }
    }
    Ok(outcome)
}

fn store_output(stored: &mut Vec<u8>, piece: &[u8], read: std::io::Result<usize>) -> bool {
    match read {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            let room = MAX_OUTPUT.saturating_sub(stored.len());
            stored.extend_from_slice(&piece[..count.min(room)]);
            true
        }
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn start(
    program: Program,
    directory: PathBuf,
) -> std::io::Result<(Child, Receiver, Receiver)> {
    let (stdout, their_stdout) = output_pipe()?;
    let (stderr, their_stderr) = output_pipe()?;
    let mut words = vec![program.command.into()];
    words.extend(program.arguments.into_iter().map(Into::into));
    let running = launch(Launch {
        words,
        directory: program.cwd.unwrap_or(directory),
        variables: crate::ops::environment(),
        base: Environment::Empty,
        confinement: Confinement::Unconfined(Reason::ModeOff),
        stdin: None,
        stdout: Some(their_stdout),
        stderr: Some(their_stderr),
    })
    .await?;
    Ok((Child::new(running, ENDING), stdout, stderr))
}
