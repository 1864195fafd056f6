//! Launches processes that end with pinion.
//!
//! [`launch`] asks the guardian (`guardian.rs`) to start a process and returns a handle that kills it when dropped. The first
//! launch starts the guardian.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use nix::sys::signal::Signal;
use pinion_sandbox::{Ledger, Level, Mode, Policy, SandboxReport};
use pinion_sync::lock;
use tokio::sync::oneshot;

use crate::guardian::sweep;
use crate::guardian::wire::{self, Start};
use crate::link::{self, Link};

/// The first argument of a binary that is started as guardian.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";
/// Launches that may fail in a row because the guardian was killed.
const MAX_ATTEMPTS: usize = 3;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Returns variables for a process that is about to start, such as the trace that it belongs to.
pub type VariableSource = fn() -> Option<(&'static str, String)>;

static VARIABLE_SOURCE: OnceLock<VariableSource> = OnceLock::new();

/// Adds a variable to the environment of every process that is launched from now on. Only the first source is used.
pub fn set_variable_source(source: VariableSource) {
    let _ = VARIABLE_SOURCE.set(source);
}

/// A process to start. It leads its own session, so signals to pinion's group do not reach it.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// Variables added to `base`; a variable of the same name is replaced.
    pub variables: Vec<(OsString, OsString)>,
    /// The environment that `variables` are added to.
    pub base: Environment,
    /// The sandbox of the process, or the reason why it has none.
    pub confinement: Confinement,
    /// The null device if `None`.
    pub stdin: Option<OwnedFd>,
    /// The null device if `None`.
    pub stdout: Option<OwnedFd>,
    /// The null device if `None`.
    pub stderr: Option<OwnedFd>,
}

impl Launch {
    fn texts(&self) -> impl Iterator<Item = &OsString> {
        let variables = self.variables.iter();
        self.words
            .iter()
            .chain(variables.flat_map(|(name, value)| [name, value]))
    }
}

/// The sandbox of a process. Every launch chooses one: there is no default.
#[derive(Debug, Clone)]
pub enum Confinement {
    /// The process may do what pinion may do.
    Unconfined(Reason),
    /// The process and everything that it starts may do what the policy permits.
    Confined(Arc<Policy>),
}

/// The reason why a process is not confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The sandbox is off.
    ModeOff,
    /// The user typed the command, or wrote it in a file of their own.
    UsersOwn,
    /// The user installed the program.
    Installed,
    /// The program is an agent, which talks to its provider.
    Agent,
    /// The program is a tool of pinion itself.
    Own,
}

impl Confinement {
    /// Returns the mode in force.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Unconfined(_) => Mode::Off,
            Self::Confined(policy) => policy.mode,
        }
    }
}

/// The environment that a process starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// The environment of pinion.
    Inherited,
    /// No variables.
    Empty,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// Its guardian was killed, and the process with it.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match Signal::try_from(signal) {
                Ok(signal) => write!(f, "signal {signal}"),
                Err(_) => write!(f, "signal {signal}"),
            },
            Self::Unknown => f.write_str("its exit status is unknown"),
        }
    }
}

/// A running process. Dropping the handle kills the process and its descendants, unless [`wait`] has returned: background
/// processes may then run until pinion ends.
///
/// [`wait`]: Running::wait
#[derive(Debug)]
pub struct Running {
    link: Arc<Link>,
    id: u64,
    pid: i32,
    exited: oneshot::Receiver<Exit>,
    exit: Option<Exit>,
    mode: Mode,
    denials: Arc<Mutex<Ledger>>,
}

impl Running {
    /// The process id, which is also the id of its session and group.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the denials so far; `None` if nothing was denied.
    pub fn sandbox_report(&self) -> Option<SandboxReport> {
        let denials = lock(&self.denials).clone();
        denials.report(self.mode, Level::Landlock)
    }

    /// Waits until it ends. May be called again and dropped at any time.
    pub async fn wait(&mut self) -> Exit {
        match self.exit {
            Some(exit) => exit,
            None => {
                let exit = (&mut self.exited).await.unwrap_or(Exit::Unknown);
                *self.exit.insert(exit)
            }
        }
    }

    /// Kills the process and its descendants, including those that left its session. Does not wait.
    pub fn kill(&self) {
        self.link.send(|stream| wire::send_kill(stream, self.id));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        self.link.send(|stream| wire::send_forget(stream, self.id));
    }
}

/// Like [`launch`], with `extra` as the descriptors 3 and up of the process.
pub async fn launch_with(request: Launch, extra: Vec<OwnedFd>) -> io::Result<Running> {
    if extra.len() > wire::MAX_EXTRA {
        let reason = format!("a process gets at most {} descriptors", 3 + wire::MAX_EXTRA);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    start(request, extra).await
}

/// Starts a process. The error is the system's, or [`KILLED`](crate::KILLED) if the guardian died meanwhile.
pub async fn launch(launch: Launch) -> io::Result<Running> {
    start(launch, Vec::new()).await
}

async fn start(launch: Launch, extra: Vec<OwnedFd>) -> io::Result<Running> {
    if launch.texts().any(|text| !wire::is_sendable(text)) {
        let reason = "a text contains a NUL character";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let mode = launch.confinement.mode();
    let policy = match &launch.confinement {
        Confinement::Unconfined(_) => None,
        Confinement::Confined(policy) => {
            Some(serde_json::to_string(&**policy).map_err(io::Error::other)?)
        }
    };
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut variables = launch.variables;
    if let Some((name, value)) = VARIABLE_SOURCE.get().and_then(|source| source()) {
        variables.push((name.into(), value.into()));
    }
    variables.push((sweep::MARK.into(), format!("{}/{id}", *link::OWNER).into()));
    let start = Start {
        directory: launch.directory,
        words: launch.words,
        variables,
        base: launch.base,
        policy,
        stdio: [
            or_null(launch.stdin)?,
            or_null(launch.stdout)?,
            or_null(launch.stderr)?,
        ],
        extra,
    };
    for _ in 0..MAX_ATTEMPTS {
        let link = link::link().await?;
        match start_through(&link, id, &start, mode).await {
            Some(started) => return started,
            None => link.give_up(),
        }
    }
    let reason = "the process that starts commands was killed three times in a row";
    Err(io::Error::other(reason))
}

/// Returns `None` if the guardian ended without an answer.
async fn start_through(
    link: &Arc<Link>,
    id: u64,
    start: &Start,
    mode: Mode,
) -> Option<io::Result<Running>> {
    let expected = link.expect(id)?;
    // From here on, dropping the future kills the process, even before its id is known.
    let mut running = Running {
        link: link.clone(),
        id,
        pid: 0,
        exited: expected.exited,
        exit: None,
        mode,
        denials: expected.denials,
    };
    link.send(|stream| wire::send_start(stream, id, start));
    match expected.started.await {
        Ok(Ok(pid)) => {
            running.pid = pid;
            Some(Ok(running))
        }
        Ok(Err(error)) => Some(Err(error)),
        Err(_) => None,
    }
}

fn or_null(descriptor: Option<OwnedFd>) -> io::Result<OwnedFd> {
    match descriptor {
        Some(descriptor) => Ok(descriptor),
        None => {
            let null = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/null")?;
            Ok(null.into())
        }
    }
}
