//! The connection to the guardian, and the calls that wait for its reports.
//!
//! There is at most one connection. The first process opens it; when it breaks, the next process opens another.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use pinion_sandbox::{ConfineError, Ledger, Record};
use pinion_sync::lock;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::guardian::wire::{self, Report};
use crate::guardian::{self, Role, sweep};
use crate::launch::{Exit, GUARDIAN_ARGUMENT};

/// How long closing waits until the guardian has killed every process. Longer than the guardian's own last sweep.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);
/// Set in a guardian's environment. A program that finds it and wants a guardian cannot run as one itself, so it uses a thread.
pub(crate) const RECURSION_GUARD: &str = "PINION_GUARDIAN";

/// The error of a command whose guardian was killed, whether or not its start was reported.
pub const KILLED: &str = "The process that watches over commands was killed, and the command with it. \
                                 Run the command again.";

static PROGRAM: Mutex<Option<(PathBuf, Vec<OsString>)>> = Mutex::new(None);
static LINK: Mutex<Option<Arc<Link>>> = Mutex::new(None);
/// A guardian process did not work on this machine, so a thread replaces it.
static DEGRADED: AtomicBool = AtomicBool::new(false);
/// This process in the marks of the commands that it starts.
pub(crate) static OWNER: LazyLock<String> =
    LazyLock::new(|| sweep::owner(std::process::id() as i32).unwrap_or_default());

/// Sets the command that becomes a guardian by calling [`guardian_main`](crate::guardian_main), if it is
/// not the running binary with [`GUARDIAN_ARGUMENT`].
pub fn set_guardian(program: PathBuf, arguments: Vec<OsString>) {
    *lock(&PROGRAM) = Some((program, arguments));
    DEGRADED.store(false, Ordering::Relaxed);
}

/// Kills every process that this process launched, with all descendants, and waits until they are gone.
///
/// Called before exit. Processes may be launched again afterwards.
pub fn kill_all() {
    // The link stays in place: the next launch waits until everything is gone.
    let link = lock(&LINK).clone();
    if let Some(link) = link {
        link.close();
    }
}

/// Kills every process that was launched with [`FAMILY`](crate::FAMILY) set to `family`, with all descendants, including
/// background processes of commands that have ended. Does not wait until they are gone.
pub fn kill_family(family: &str) {
    // Without a link no process was launched.
    if lock(&LINK).is_some() {
        sweep::kill_family(&OWNER, family);
    }
}

/// Returns the connection to the guardian and opens it if there is none.
///
/// After a guardian was killed, its processes are killed by their marks. A new guardian starts after that, or its first commands
/// would be killed too.
pub(crate) async fn link() -> io::Result<Arc<Link>> {
    let known = lock(&LINK).clone();
    if let Some(link) = known.filter(|link| link.is_closed()) {
        // After this time the launch no longer waits for the old guardian.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, link.swept.cancelled()).await;
    }
    let mut slot = lock(&LINK);
    if let Some(link) = slot.as_ref().filter(|link| !link.is_closed()) {
        return Ok(link.clone());
    }
    Ok(slot.insert(connect()?).clone())
}

fn connect() -> io::Result<Arc<Link>> {
    if !DEGRADED.load(Ordering::Relaxed) && std::env::var_os(RECURSION_GUARD).is_none() {
        let (program, arguments) = guardian_command();
        match Link::to_process(&program, &arguments) {
            Ok(link) => return Ok(link),
            Err(error) => degrade(&error.to_string()),
        }
    }
    Link::to_thread()
}

/// Returns the command that becomes a guardian.
pub(crate) fn guardian_command() -> (PathBuf, Vec<OsString>) {
    let chosen = lock(&PROGRAM).clone();
    chosen.unwrap_or_else(this_binary)
}

/// The running binary. `/proc/self/exe` stays right when the file on disk is replaced.
fn this_binary() -> (PathBuf, Vec<OsString>) {
    ("/proc/self/exe".into(), vec![GUARDIAN_ARGUMENT.into()])
}

fn degrade(reason: &str) {
    if !DEGRADED.swap(true, Ordering::Relaxed) {
        eprintln!(
            "pinion: the guardian process could not be started ({reason}). Commands still end with pinion, \
             but background processes may survive if pinion is killed with SIGKILL."
        );
    }
}

/// One end of the socket to a guardian.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    /// Held while a message is written, so that messages do not mix.
    writing: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Notified when the guardian is gone.
    gone: Condvar,
    /// Fires when the guardian and its processes are gone.
    swept: CancellationToken,
    /// The guardian has reported something over this link.
    proven: AtomicBool,
    /// pinion itself closed the link.
    closed_by_us: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<u64, Call>,
    closed: bool,
    /// The guardian has ended, and all its processes with it.
    over: bool,
}

#[derive(Debug)]
struct Call {
    /// The guardian received the order, so the process may run.
    taken: bool,
    started: Option<oneshot::Sender<io::Result<i32>>>,
    exited: oneshot::Sender<Exit>,
    denials: Arc<Mutex<Ledger>>,
}

/// The reports to come about a process.
#[derive(Debug)]
pub(crate) struct Expected {
    pub started: oneshot::Receiver<io::Result<i32>>,
    pub exited: oneshot::Receiver<Exit>,
    /// The denials so far.
    pub denials: Arc<Mutex<Ledger>>,
}

impl Link {
    fn to_process(program: &Path, arguments: &[OsString]) -> io::Result<Arc<Self>> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .args(arguments)
            .env(RECURSION_GUARD, "1")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Self::over(ours, move || wait_for(child))
    }

    fn to_thread() -> io::Result<Arc<Self>> {
        let (ours, theirs) = UnixStream::pair()?;
        // The thread is the parent whose end kills its children (`PR_SET_PDEATHSIG`), so it runs as long as they may.
        let server = std::thread::Builder::new()
            .name("guardian".into())
            .spawn(move || drop(guardian::serve(theirs, Role::Thread)))?;
        Self::over(ours, move || drop(server.join()))
    }

    /// Starts the thread that reads reports. `end` waits until the guardian has ended.
    fn over(stream: UnixStream, end: impl FnOnce() + Send + 'static) -> io::Result<Arc<Self>> {
        let link = Arc::new(Self {
            stream,
            writing: Mutex::default(),
            waiting: Mutex::default(),
            gone: Condvar::new(),
            swept: CancellationToken::new(),
            proven: AtomicBool::new(false),
            closed_by_us: AtomicBool::new(false),
        });
        let reader = link.clone();
        std::thread::Builder::new()
            .name("guardian-reports".into())
            .spawn(move || {
                while let Ok((id, report)) = wire::receive_report(&reader.stream) {
                    reader.take(id, report);
                }
                let mut calls = {
                    let mut waiting = lock(&reader.waiting);
                    waiting.closed = true;
                    std::mem::take(&mut waiting.calls)
                };
                end();
                if !calls.is_empty() {
                    // The guardian was killed: only the marks identify its processes.
                    sweep::kill_marked(&OWNER);
                }
                // A caller without a report launches its process again with another guardian.
                for call in calls.values_mut().filter(|call| call.taken) {
                    if let Some(started) = call.started.take() {
                        let _ = started.send(Err(io::Error::other(KILLED)));
                    }
                }
                reader.swept.cancel();
                drop(calls);
                lock(&reader.waiting).over = true;
                reader.gone.notify_all();
            })?;
        Ok(link)
    }

    fn is_closed(&self) -> bool {
        lock(&self.waiting).closed
    }

    fn take(&self, id: u64, report: Report) {
        let mut waiting = lock(&self.waiting);
        let Some(call) = waiting.calls.get_mut(&id) else {
            return;
        };
        self.proven.store(true, Ordering::Relaxed);
        match report {
            Report::Taken => call.taken = true,
            Report::Started(pid) => {
                if let Some(started) = call.started.take() {
                    let _ = started.send(Ok(pid));
                }
            }
            Report::Failed(error) => {
                let call = waiting.calls.remove(&id);
                if let Some(started) = call.and_then(|call| call.started) {
                    let _ = started.send(Err(io::Error::from_raw_os_error(error)));
                }
            }
            Report::Refused(reason) => {
                let call = waiting.calls.remove(&id);
                if let Some(started) = call.and_then(|call| call.started) {
                    let _ = started.send(Err(io::Error::other(ConfineError(reason))));
                }
            }
            Report::Denied(record) => {
                if let Ok(record) = serde_json::from_str::<Record>(&record) {
                    lock(&call.denials).add(record.denial, record.program);
                }
            }
            Report::Exited(code) => {
                if let Some(call) = waiting.calls.remove(&id) {
                    let exit = if code < 0 {
                        Exit::Signal(-code)
                    } else {
                        Exit::Code(code)
                    };
                    let _ = call.exited.send(exit);
                }
            }
        }
    }

    /// Registers process `id` for reports: its start, then its end. `None` if the guardian is gone.
    pub fn expect(&self, id: u64) -> Option<Expected> {
        let (started_sender, started) = oneshot::channel();
        let (exited_sender, exited) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.closed {
            return None;
        }
        let denials = Arc::default();
        let call = Call {
            taken: false,
            started: Some(started_sender),
            exited: exited_sender,
            denials: Arc::clone(&denials),
        };
        waiting.calls.insert(id, call);
        Some(Expected {
            started,
            exited,
            denials,
        })
    }

    /// Sends a message. If that fails, the reader finds the link closed and reports it.
    pub fn send(&self, send: impl FnOnce(&UnixStream) -> io::Result<()>) {
        let _one = lock(&self.writing);
        if send(&self.stream).is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    /// Called when the guardian ended before it answered. One that never worked is not tried again.
    pub fn give_up(&self) {
        let known = [&self.proven, &self.closed_by_us];
        if !known.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            degrade("it ended at once");
        }
    }

    /// Ends the guardian, which kills all its processes, and waits for it.
    fn close(&self) {
        self.closed_by_us.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(Shutdown::Both);
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        let over = self
            .gone
            .wait_timeout_while(waiting, CLOSE_TIMEOUT, |waiting| !waiting.over);
        drop(over.unwrap_or_else(PoisonError::into_inner));
    }
}

fn wait_for(mut child: Child) {
    // An error means that the child was reaped elsewhere; it has ended either way.
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guardian_that_ends_by_itself_is_given_up() {
        let closed = Link::to_thread().unwrap();
        closed.close();
        closed.give_up();
        assert!(!DEGRADED.load(Ordering::Relaxed));
        let failed = Link::to_thread().unwrap();
        failed.give_up();
        assert!(DEGRADED.load(Ordering::Relaxed));
    }
}
