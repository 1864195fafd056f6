//! Running one command in the user's shell, to its end, its timeout or its abort.
//!
//! The shell reads nothing, leads its own session, and its output and error output are one pipe, so that they
//! arrive in the order they were written.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use pinion_process::{Environment, Exit, KILLED, Launch, Running};

use crate::{ToolError, ToolSettings, blocking, fault};

/// After the shell has ended, what it left in the background may print for this long.
const GRACE: Duration = Duration::from_millis(100);
/// How long killed processes may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
const PIECE: usize = 64 * 1024;
/// The kernel takes no longer word.
const MAX_COMMAND: usize = 128 * 1024 - 1;

/// How to run a command.
#[derive(Debug, Clone)]
pub struct ShellOptions<'a> {
    /// Where it runs.
    pub cwd: &'a Path,
    /// Which shell, with which environment.
    pub settings: &'a ToolSettings,
    /// Kill it after this long.
    pub timeout: Option<Duration>,
    /// Who may be slower than the command, which then waits.
    pub follower: Option<&'a dyn Follower>,
}

/// Someone who follows what a command prints.
pub trait Follower: std::fmt::Debug + Send + Sync {
    /// Takes what was printed next, as plain text. Must not block.
    fn printed(&self, text: &str);

    /// Whether more may be printed; when not, the command waits for [`Follower::room`].
    fn has_room(&self) -> bool;

    /// Waits until more may be printed.
    fn room(&self) -> BoxFuture<'_, ()>;
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellOutcome {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled,
    /// It took too long and was killed.
    TimedOut,
    /// It was cancelled and killed.
    Aborted,
}

/// Runs `command` and hands every piece of its output to `on_chunk`.
///
/// Returns when the command has ended and its output is complete, or shortly after its end if something in
/// the background keeps the output open. That something lives on until the process ends; what a
/// cancelled or late command started is killed, whatever it did to get away.
pub async fn run_shell(
    command: &str,
    options: ShellOptions<'_>,
    cancel: &CancellationToken,
    mut on_chunk: impl FnMut(&[u8]) + Send,
) -> Result<ShellOutcome, ToolError> {
    if cancel.is_cancelled() {
        return Ok(ShellOutcome::Aborted);
    }
    let (mut running, mut pipe) = match start(command, &options, cancel).await {
        Err(_) if cancel.is_cancelled() => return Ok(ShellOutcome::Aborted),
        started => started?,
    };
    let mut piece = vec![0; PIECE];
    let mut masked = options.settings.mask.stream();
    let mut open = true;
    let mut exit = None;
    let mut killed = None;
    let timeout = options
        .timeout
        .and_then(|timeout| Instant::now().checked_add(timeout));
    // Set when waiting any longer than that makes no sense.
    let mut deadline = None;
    // Since when the follower has had enough. What is killed is not held up by that.
    let mut crowded: Option<Instant> = None;
    while open || exit.is_none() {
        tokio::select! {
            biased;
            () = cancel.cancelled(), if killed.is_none() => {
                killed = Some(ShellOutcome::Aborted);
                running.kill();
                deadline = Some(Instant::now() + KILL_PATIENCE);
            }
            () = at(timeout), if killed.is_none() && exit.is_none() => {
                killed = Some(ShellOutcome::TimedOut);
                running.kill();
                deadline = Some(Instant::now() + KILL_PATIENCE);
            }
            ended = running.wait(), if exit.is_none() => {
                exit = Some(ended);
                crowded = crowded.map(|_| Instant::now());
                deadline = deadline.or_else(|| Some(Instant::now() + GRACE));
            }
            () = room(options.follower), if crowded.is_some() && killed.is_none() => {
                let waited = crowded.take().map_or(Duration::ZERO, |since| since.elapsed());
                deadline = deadline.map(|deadline| deadline + waited);
            }
            read = pipe.read(&mut piece), if open && (crowded.is_none() || killed.is_some()) => {
                match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        on_chunk(&masked.push(&piece[..count]));
                        let has_room = options.follower.is_none_or(Follower::has_room);
                        crowded = (!has_room).then(Instant::now);
                    }
                }
            },
            () = at(deadline), if crowded.is_none() || killed.is_some() => break,
        }
    }
    let held = masked.finish();
    if !held.is_empty() {
        on_chunk(&held);
    }
    Ok(match (killed, exit) {
        (Some(outcome), _) => outcome,
        (None, Some(Exit::Code(code))) => ShellOutcome::Exited(code),
        (None, Some(Exit::Unknown)) => {
            return Err(ToolError(KILLED.into()));
        }
        (None, _) => ShellOutcome::Signalled,
    })
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
    if command.len() > MAX_COMMAND {
        return Err(ToolError(format!(
            "spawn E2BIG: the command is {} bytes long and the system takes {MAX_COMMAND}. \
             Write it to a file and run that.",
            command.len()
        )));
    }
    let failed = |error: std::io::Error| match error.raw_os_error() {
        Some(_) => ToolError(format!("spawn {} {}", shell.display(), fault::code(&error))),
        None if error.to_string() == KILLED => ToolError(KILLED.into()),
        None => ToolError(format!("The command could not be started: {error}")),
    };
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let errors = writer.try_clone().map_err(failed)?;
    let (base, variables) = environment(options.settings);
    let launch = Launch {
        words: vec![shell.clone().into(), "-c".into(), command.into()],
        directory: options.cwd.to_owned(),
        variables,
        base,
        stdin: None,
        stdout: Some(writer.into()),
        stderr: Some(errors.into()),
    };
    let running = pinion_process::launch(launch).await.map_err(failed)?;
    let pipe = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;
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

/// What the environment of a command starts from, and what is added.
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
