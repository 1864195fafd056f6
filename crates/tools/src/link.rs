//! The connection to the guardian: which one, when it is made, and who waits for what.
//!
//! There is at most one. It is made with the first process and made anew when it breaks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::guardian::wire::{self, Report};
use crate::guardian::{self, Role, sweep};
use crate::process::{Exit, GUARDIAN_ARGUMENT};

/// How long closing waits for the last process to be gone.
const CLOSE_PATIENCE: Duration = Duration::from_secs(6);
/// Set for a guardian. A program that has it and wants a guardian of its own does not know how to be one.
pub(crate) const RECURSION_GUARD: &str = "PINION_GUARDIAN";

/// The error of a command whose guardian dies, whether or not the guardian still reported that it started.
pub(crate) const KILLED: &str = "The process that watches over commands was killed, and the command with it. \
                                 Run the command again.";

static PROGRAM: Mutex<Option<(PathBuf, Vec<OsString>)>> = Mutex::new(None);
static LINK: Mutex<Option<Arc<Link>>> = Mutex::new(None);
/// A guardian was tried and does not work here.
static DEGRADED: AtomicBool = AtomicBool::new(false);
/// Names this process in the marks of what it starts.
pub(crate) static OWNER: LazyLock<String> =
    LazyLock::new(|| sweep::owner(std::process::id() as i32).unwrap_or_default());

/// Sets the command that becomes a guardian by calling [`guardian_main`](crate::guardian_main), if it is
/// not the running binary with [`GUARDIAN_ARGUMENT`].
pub fn set_guardian(program: PathBuf, arguments: Vec<OsString>) {
    *lock(&PROGRAM) = Some((program, arguments));
    DEGRADED.store(false, Ordering::Relaxed);
}

/// Kills every process that was started here, with all that came of it, and waits until they are gone.
///
/// For the way out. Processes may be started again afterwards.
pub fn kill_all() {
    // The link stays where the next start finds it, which then waits until everything is gone.
    let link = lock(&LINK).clone();
    if let Some(link) = link {
        link.close();
    }
}

/// Kills every process that was started here with [`FAMILY`](crate::FAMILY) set to `family`, and all that came of
/// it, also what commands that have ended left in the background. Does not wait until they are gone.
pub fn kill_family(family: &str) {
    // Without a guardian nothing was ever started.
    if lock(&LINK).is_some() {
        sweep::kill_family(&OWNER, family);
    }
}

/// The connection to the guardian, made if there is none.
///
/// A guardian that is gone leaves processes behind, which are then killed by the marks of this process. A new one starts
/// after that, or its first commands would be killed with them.
pub(crate) async fn link() -> io::Result<Arc<Link>> {
    let known = lock(&LINK).clone();
    if let Some(link) = known.filter(|link| link.is_closed()) {
        // A guardian that does not end in this time is given up.
        let _ = tokio::time::timeout(CLOSE_PATIENCE, link.swept.cancelled()).await;
    }
    let mut slot = lock(&LINK);
    if let Some(link) = slot.as_ref().filter(|link| !link.is_closed()) {
        return Ok(link.clone());
    }
    Ok(slot.insert(connect()?).clone())
}

fn connect() -> io::Result<Arc<Link>> {
    if !DEGRADED.load(Ordering::Relaxed) && std::env::var_os(RECURSION_GUARD).is_none() {
        let chosen = lock(&PROGRAM).clone();
        let (program, arguments) = chosen.unwrap_or_else(ourselves);
        match Link::to_process(&program, &arguments) {
            Ok(link) => return Ok(link),
            Err(error) => degrade(&error.to_string()),
        }
    }
    Link::to_thread()
}

/// The link to ourselves stays right even if the file on disk is replaced meanwhile.
fn ourselves() -> (PathBuf, Vec<OsString>) {
    ("/proc/self/exe".into(), vec![GUARDIAN_ARGUMENT.into()])
}

fn degrade(reason: &str) {
    if !DEGRADED.swap(true, Ordering::Relaxed) {
        eprintln!(
            "pinion: no guardian process could be started ({reason}). Commands still end with pinion, \
             but what they leave in the background may survive if pinion is killed with SIGKILL."
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of the socket to a guardian.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    /// One writer at a time; messages must not be torn.
    writing: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Told when the guardian is gone.
    gone: Condvar,
    /// Fires when the guardian is gone and so is what it left.
    swept: CancellationToken,
    /// A process was started over this link.
    proven: AtomicBool,
    /// We ended the guardian ourselves.
    dismissed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    calls: HashMap<u64, Call>,
    closed: bool,
    /// The guardian has ended and with it all processes.
    over: bool,
}

#[derive(Debug)]
struct Call {
    /// The guardian has the order and may have carried it out.
    taken: bool,
    started: Option<oneshot::Sender<io::Result<i32>>>,
    exited: oneshot::Sender<Exit>,
}

/// What will be heard about a process.
#[derive(Debug)]
pub(crate) struct Expected {
    pub started: oneshot::Receiver<io::Result<i32>>,
    pub exited: oneshot::Receiver<Exit>,
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
        // This thread is the parent whose death ends its children, so it must live as long as they may.
        let server = std::thread::Builder::new()
            .name("guardian".into())
            .spawn(move || drop(guardian::serve(theirs, Role::Thread)))?;
        Self::over(ours, move || drop(server.join()))
    }

    /// `end` waits until the guardian has ended.
    fn over(stream: UnixStream, end: impl FnOnce() + Send + 'static) -> io::Result<Arc<Self>> {
        let link = Arc::new(Self {
            stream,
            writing: Mutex::default(),
            waiting: Mutex::default(),
            gone: Condvar::new(),
            swept: CancellationToken::new(),
            proven: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
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
                    // The guardian died on its own: what it left is known by its marks only.
                    sweep::kill_marked(&OWNER);
                }
                // A caller that hears nothing but the end starts its process anew.
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

    /// Prepares to hear about process `id`: first whether it started, then how it ended. `None` if the
    /// guardian is gone.
    pub fn expect(&self, id: u64) -> Option<Expected> {
        let (started_sender, started) = oneshot::channel();
        let (exited_sender, exited) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.closed {
            return None;
        }
        let call = Call {
            taken: false,
            started: Some(started_sender),
            exited: exited_sender,
        };
        waiting.calls.insert(id, call);
        Some(Expected { started, exited })
    }

    /// Sends a message. If it cannot be sent, the reader will find the link closed and say so.
    pub fn tell(&self, send: impl FnOnce(&UnixStream) -> io::Result<()>) {
        let _one = lock(&self.writing);
        if send(&self.stream).is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    /// The guardian is gone before it answered: one that never worked is not tried again.
    pub fn give_up(&self) {
        let known = [&self.proven, &self.dismissed];
        if !known.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            degrade("it ended at once");
        }
    }

    /// Ends the guardian, which kills everything, and waits for it.
    fn close(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
        let _ = self.stream.shutdown(Shutdown::Both);
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        let over = self
            .gone
            .wait_timeout_while(waiting, CLOSE_PATIENCE, |waiting| !waiting.over);
        drop(over.unwrap_or_else(PoisonError::into_inner));
    }
}

fn wait_for(mut child: Child) {
    // An error means that it was reaped by someone else; it is gone either way.
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guardian_that_ends_by_itself_is_no_good() {
        let dismissed = Link::to_thread().unwrap();
        dismissed.close();
        dismissed.give_up();
        assert!(!DEGRADED.load(Ordering::Relaxed));
        let failed = Link::to_thread().unwrap();
        failed.give_up();
        assert!(DEGRADED.load(Ordering::Relaxed));
    }
}
