//! Starting processes that end with us.
//!
//! [`launch`] asks the guardian (see `guardian.rs`) to start a process, and gives a handle that kills it
//! when dropped. The guardian is started with the first process, never before.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use crate::guardian::sweep;
use crate::guardian::wire::{self, Start};
use crate::link::{self, Link};

/// The first argument of a binary that is started as guardian.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";
/// A guardian may be killed by others; more often than this in a row means that none can live here.
const MAX_ATTEMPTS: usize = 3;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A process to start. It gets its own session, so signals to our group do not reach it.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables added to `base`.
    pub variables: Vec<(OsString, OsString)>,
    /// What its environment is made of beside the variables.
    pub base: Environment,
    /// Its input; the null device if `None`.
    pub stdin: Option<OwnedFd>,
    /// Its output; the null device if `None`.
    pub stdout: Option<OwnedFd>,
    /// Its error output; the null device if `None`.
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

/// What the environment of a process starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Our own environment.
    Ours,
    /// No variables at all.
    Nothing,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Together with its guardian, in a way we were not told.
    Unknown,
}

/// A running process. Dropping it kills the process and everything that came of it, unless [`wait`]
/// has returned: then what it left in the background may go on for as long as we do.
///
/// [`wait`]: Running::wait
#[derive(Debug)]
pub struct Running {
    link: Arc<Link>,
    id: u64,
    pid: i32,
    exited: oneshot::Receiver<Exit>,
    exit: Option<Exit>,
}

impl Running {
    /// Its process id, which is also the id of its session and group.
    pub fn pid(&self) -> i32 {
        self.pid
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

    /// Kills it and everything that came of it, also what has left its session. Does not wait.
    pub fn kill(&self) {
        self.link.tell(|stream| wire::send_kill(stream, self.id));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
        self.link.tell(|stream| wire::send_forget(stream, self.id));
    }
}

/// Starts a process.
pub async fn launch(launch: Launch) -> io::Result<Running> {
    if launch.texts().any(|text| !wire::is_sendable(text)) {
        let reason = "a text contains a NUL character";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut variables = launch.variables;
    variables.push((sweep::MARK.into(), format!("{}/{id}", *link::OWNER).into()));
    let start = Start {
        directory: launch.directory,
        words: launch.words,
        variables,
        base: launch.base,
        stdio: [
            or_null(launch.stdin)?,
            or_null(launch.stdout)?,
            or_null(launch.stderr)?,
        ],
    };
    for _ in 0..MAX_ATTEMPTS {
        let link = link::link().await?;
        match start_over(&link, id, &start).await {
            Some(started) => return started,
            None => link.give_up(),
        }
    }
    let reason = "the process that starts commands keeps dying";
    Err(io::Error::other(reason))
}

/// `None` if the guardian is gone without an answer.
async fn start_over(link: &Arc<Link>, id: u64, start: &Start) -> Option<io::Result<Running>> {
    let expected = link.expect(id)?;
    // From here on, being dropped means being killed, even before the process id is known.
    let mut running = Running {
        link: link.clone(),
        id,
        pid: 0,
        exited: expected.exited,
        exit: None,
    };
    link.tell(|stream| wire::send_start(stream, id, start));
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
