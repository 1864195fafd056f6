//! Runs one command in the user's shell, to its end, its timeout or its abort.
//!
//! The shell has no input, leads its own session, and its standard output and error are one pipe,
//! so that they arrive in the order they were written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use pinion_process::{Environment, Exit, KILLED, Launch, Running, output_pipe};
use pinion_sandbox::SandboxReport;

use crate::{ToolError, ToolSettings, blocking, node_error};

/// After the shell has ended, its background processes may print for this long.
const BACKGROUND_GRACE: Duration = Duration::from_millis(100);
/// The longest wait until killed processes are gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes; the kernel rejects a longer argument.
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// The options of a command.
#[derive(Debug, Clone)]
pub struct ShellOptions<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    /// The shell and its environment.
    pub settings: &'a ToolSettings,
    /// The time after which the command is killed.
    pub timeout: Option<Duration>,
    /// A receiver of the output. If it is slower than the command, the command waits.
    pub follower: Option<&'a dyn Follower>,
}

/// Follows the output of a command.
pub trait Follower: std::fmt::Debug + Send + Sync {
    /// Receives the next output, as plain text. Must not block.
    fn printed(&self, text: &str);

    /// Reports whether more may be printed; if not, the command waits for [`Follower::room`].
    fn has_room(&self) -> bool;

    /// Waits until more may be printed.
    fn room(&self) -> BoxFuture<'_, ()>;
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellOutcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal that pinion did not send ended it.
    Signalled,
    /// It took too long and was killed.
    TimedOut,
    /// It was cancelled and killed.
    Aborted,
}

/// Runs `command` and passes every piece of its output to `on_chunk`.
///
/// Returns when the command has ended and its output is complete, or shortly after its end if a
/// background process holds the output open. Such a process lives until pinion ends. If a command
/// is cancelled or times out, everything it started is killed, including processes that left its
/// session.
pub async fn run_shell(
    command: &str,
    options: ShellOptions<'_>,
    cancel: &CancellationToken,
    on_chunk: impl FnMut(&[u8]) + Send,
) -> Result<ShellOutcome, ToolError> {
    let ended = run_reported(command, options, cancel, on_chunk).await;
    ended.map(|(outcome, _)| outcome)
}

/// Like [`run_shell`], with the operations that the sandbox refused; `None` if it refused none.
pub(crate) async fn run_reported(
    command: &str,
    options: ShellOptions<'_>,
    cancel: &CancellationToken,
    mut on_chunk: impl FnMut(&[u8]) + Send,
) -> Result<(ShellOutcome, Option<SandboxReport>), ToolError> {
    if cancel.is_cancelled() {
        return Ok((ShellOutcome::Aborted, None));
    }
    let (mut running, mut pipe) = match start(command, &options, cancel).await {
        Err(_) if cancel.is_cancelled() => return Ok((ShellOutcome::Aborted, None)),
        started => started?,
    };
    let mut piece = vec![0; READ_BUFFER_BYTES];
    let mut masked = options.settings.mask.stream();
    let mut open = true;
    let mut exit = None;
    let mut killed = None;
    let timeout = options
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));
    // Set when the wait must end.
    let mut deadline = None;
    // The time since which the follower has had no room. Killed commands do not wait for it.
    let mut blocked_since: Option<Instant> = None;
    while open || exit.is_none() {
        tokio::select! {
            biased;
            () = cancel.cancelled(), if killed.is_none() => {
                killed = Some(ShellOutcome::Aborted);
                running.kill();
                deadline = Some(Instant::now() + KILL_TIMEOUT);
            }
            () = at(timeout), if killed.is_none() && exit.is_none() => {
                killed = Some(ShellOutcome::TimedOut);
                running.kill();
                deadline = Some(Instant::now() + KILL_TIMEOUT);
            }
            ended = running.wait(), if exit.is_none() => {
                exit = Some(ended);
                blocked_since = blocked_since.map(|_| Instant::now());
                deadline = deadline.or_else(|| Some(Instant::now() + BACKGROUND_GRACE));
            }
            () = room(options.follower), if blocked_since.is_some() && killed.is_none() => {
                let waited = blocked_since.take().map_or(Duration::ZERO, |since| since.elapsed());
                deadline = deadline.map(|deadline| deadline + waited);
            }
            read = pipe.read(&mut piece), if open && (blocked_since.is_none() || killed.is_some()) => {
                match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        on_chunk(&masked.push(&piece[..count]));
                        let has_room = options.follower.is_none_or(Follower::has_room);
                        blocked_since = (!has_room).then(Instant::now);
                    }
                }
            },
            () = at(deadline), if blocked_since.is_none() || killed.is_some() => break,
        }
    }
    let held = masked.finish();
    if !held.is_empty() {
        on_chunk(&held);
    }
    let outcome = match (killed, exit) {
        (Some(outcome), _) => outcome,
        (None, Some(Exit::Code(code))) => ShellOutcome::Exited(code),
        (None, Some(Exit::Unknown)) => {
            return Err(ToolError(KILLED.into()));
        }
        (None, _) => ShellOutcome::Signalled,
    };
    Ok((outcome, running.sandbox_report()))
}

async fn room(follower: Option<&dyn Follower>) {
    if let Some(follower) = follower {
        follower.room().await;
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn start(
    command: &str,
    options: &ShellOptions<'_>,
    cancel: &CancellationToken,
) -> Result<(Running, Receiver), ToolError> {
    let (custom, cwd) = (options.settings.shell_path.clone(), options.cwd.to_owned());
    // The working directory may be on a mount that does not answer.
    let shell = blocking::run(cancel, move || {
        let shell = shell(custom)?;
        if !cwd.is_dir() {
            return Err(ToolError(format!(
                "Working directory does not exist: {}\nCannot execute bash commands.",
                cwd.display()
            )));
        }
        Ok(shell)
    });
    let shell = shell.await?;
    let command = match &options.settings.shell_command_prefix {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
        _ => command.to_owned(),
    };
    if command.len() > MAX_COMMAND_BYTES {
        return Err(ToolError(format!(
            "spawn E2BIG: the command is {} bytes long and the system takes {MAX_COMMAND_BYTES}. \
             Write it to a file and run that.",
            command.len()
        )));
    }
    let failed = |error: std::io::Error| match error.raw_os_error() {
        Some(_) => ToolError(format!(
            "spawn {} {}",
            shell.display(),
            node_error::code(&error)
        )),
        None if error.to_string() == KILLED => ToolError(KILLED.into()),
        None => ToolError(format!("The command could not be started: {error}")),
    };
    let (pipe, writer) = output_pipe().map_err(failed)?;
    let errors = writer.try_clone().map_err(failed)?;
    let (base, variables) = environment(options.settings);
    let launch = Launch {
        words: vec![shell.clone().into(), "-c".into(), command.into()],
        directory: options.cwd.to_owned(),
        variables,
        base,
        confinement: options.settings.confinement.clone(),
        stdin: None,
        stdout: Some(writer),
        stderr: Some(errors),
    };
    let running = pinion_process::launch(launch).await.map_err(failed)?;
    Ok((running, pipe))
}

/// The shell that runs commands.
fn shell(custom: Option<PathBuf>) -> Result<PathBuf, ToolError> {
    if let Some(path) = custom {
        return if path.exists() {
            Ok(path)
        } else {
            Err(ToolError(format!(
                "Custom shell path not found: {}\nLet shellPath in settings.json name an existing shell.",
                path.display()
            )))
        };
    }
    let system = PathBuf::from("/bin/bash");
    if system.exists() {
        return Ok(system);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join("bash"))
        .find(|bash| bash.exists());
    Ok(found.unwrap_or_else(|| "sh".into()))
}

/// The base environment of a command, and the variables that are added.
fn environment(settings: &ToolSettings) -> (Environment, Vec<(OsString, OsString)>) {
    let (base, mut variables) = match (settings.environment)() {
        None => (Environment::Inherited, Vec::new()),
        Some(all) => (Environment::Empty, all),
    };
    variables.push(("PI_CODING_AGENT".into(), "true".into()));
    if let Some(dir) = &settings.bin_dir {
        let path = match base {
            Environment::Inherited => std::env::var_os("PATH"),
            Environment::Empty => variables
                .iter()
                .find(|(name, _)| name == "PATH")
                .map(|(_, path)| path.clone()),
        };
        let path = path.unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        if !dirs.contains(dir) {
            dirs.insert(0, dir.clone());
            // Fails only for a directory with a colon in its name, which PATH cannot express.
            if let Ok(path) = std::env::join_paths(dirs) {
                variables.push(("PATH".into(), path));
            }
        }
    }
    variables.extend(
        settings
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    (base, variables)
}
