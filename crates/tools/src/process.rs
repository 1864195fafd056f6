//! Starting processes that end with us.
//!
//! [`launch`] asks the guardian (see `guardian.rs`) to start a process, and gives a handle that kills it
//! when dropped. The guardian is started with the first process, never before.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::guardian::wire::{self, Report, Start};
use crate::guardian::{self, Role, sweep};

/// The first argument of a binary that is started as guardian.
pub const GUARDIAN_ARGUMENT: &str = "__guardian";
/// How long [`kill_all`] waits for the last process to be gone.
const KILL_ALL_PATIENCE: Duration = Duration::from_secs(6);
/// A guardian may be killed by others; more often than this in a row means that none can live here.
const MAX_ATTEMPTS: usize = 3;

static PROGRAM: Mutex<Option<(PathBuf, Vec<OsString>)>> = Mutex::new(None);
static LINK: Mutex<Option<Arc<Link>>> = Mutex::new(None);
/// A guardian was tried and does not work here.
static DEGRADED: AtomicBool = AtomicBool::new(false);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// Names this process in the marks of what it starts.
static OWNER: LazyLock<String> =
    LazyLock::new(|| sweep::owner(std::process::id() as i32).unwrap_or_default());

/// To be called first thing in `main`: serves as guardian and never returns if this process was started
/// as one; otherwise remembers that this binary can be started as guardian.
pub fn install_guardian() {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == GUARDIAN_ARGUMENT)
    {
        guardian::guardian_main();
    }
    // The link to ourselves stays right even if the file on disk is replaced meanwhile.
    set_guardian("/proc/self/exe".into(), vec![GUARDIAN_ARGUMENT.into()]);
}

/// Sets the command that becomes a guardian by calling [`guardian_main`](crate::guardian_main).
pub fn set_guardian(program: PathBuf, arguments: Vec<OsString>) {
    *lock(&PROGRAM) = Some((program, arguments));
}

/// Kills every process that was ever started here, with all that came of it, and waits until they are gone.
///
/// For the way out. Processes may be started again afterwards.
pub fn kill_all() {
    if let Some(link) = lock(&LINK).take() {
        link.close();
    }
}

/// A process to start. It gets its own session, so signals to our group do not reach it.
#[derive(Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables added to our environment.
    pub variables: Vec<(OsString, OsString)>,
    /// Its input; the null device if `None`.
    pub stdin: Option<OwnedFd>,
    /// Its output; the null device if `None`.
    pub stdout: Option<OwnedFd>,
    /// Its error output; the null device if `None`.
    pub stderr: Option<OwnedFd>,
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
    let texts = launch
        .variables
        .iter()
        .flat_map(|(name, value)| [name, value]);
    if !launch
        .words
        .iter()
        .chain(texts)
        .all(|text| wire::is_sendable(text))
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a text contains a NUL character",
        ));
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let mut variables = launch.variables;
    variables.push((sweep::MARK.into(), format!("{}/{id}", *OWNER).into()));
    let start = Start {
        directory: launch.directory,
        words: launch.words,
        variables,
        stdio: [
            or_null(launch.stdin)?,
            or_null(launch.stdout)?,
            or_null(launch.stderr)?,
        ],
    };
    for _ in 0..MAX_ATTEMPTS {
        let link = link()?;
        match link.start(id, &start).await {
            Some(started) => return started,
            // The guardian is gone before it answered: one that never worked is not tried again.
            None => link.give_up(),
        }
    }
    Err(io::Error::other(
        "the process that starts commands keeps dying",
    ))
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection to the guardian, made if there is none.
fn link() -> io::Result<Arc<Link>> {
    let mut slot = lock(&LINK);
    if let Some(link) = slot.as_ref().filter(|link| !link.is_closed()) {
        return Ok(link.clone());
    }
    let program = lock(&PROGRAM)
        .clone()
        .filter(|_| !DEGRADED.load(Ordering::Relaxed));
    let link = match program {
        Some((program, arguments)) => match Link::to_process(&program, &arguments) {
            Ok(link) => link,
            Err(error) => {
                degrade(&error.to_string());
                Link::to_thread()?
            }
        },
        None => Link::to_thread()?,
    };
    Ok(slot.insert(link).clone())
}

fn degrade(reason: &str) {
    if !DEGRADED.swap(true, Ordering::Relaxed) {
        eprintln!(
            "pinion: no guardian process could be started ({reason}). Commands still end with pinion, \
             but what they leave in the background may survive if pinion is killed with SIGKILL."
        );
    }
}

/// One end of the socket to a guardian.
#[derive(Debug)]
struct Link {
    stream: UnixStream,
    /// One writer at a time; messages must not be torn.
    writing: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Told when the guardian is gone.
    gone: Condvar,
    /// A process was started over this link.
    proven: AtomicBool,
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
    started: Option<oneshot::Sender<io::Result<i32>>>,
    exited: oneshot::Sender<Exit>,
}

impl Link {
    fn to_process(program: &PathBuf, arguments: &[OsString]) -> io::Result<Arc<Self>> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .args(arguments)
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
            proven: AtomicBool::new(false),
        });
        let reader = link.clone();
        std::thread::Builder::new()
            .name("guardian-reports".into())
            .spawn(move || {
                while let Ok((id, report)) = wire::receive_report(&reader.stream) {
                    reader.take(id, report);
                }
                let calls = {
                    let mut waiting = lock(&reader.waiting);
                    waiting.closed = true;
                    std::mem::take(&mut waiting.calls)
                };
                end();
                if !calls.is_empty() {
                    // The guardian died on its own: what it left is known by its marks only.
                    sweep::kill_marked(&OWNER);
                }
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
        match report {
            Report::Started(pid) => {
                self.proven.store(true, Ordering::Relaxed);
                if let Some(started) = call.started.take() {
                    let _ = started.send(Ok(pid));
                }
            }
            Report::Failed(error) => {
                self.proven.store(true, Ordering::Relaxed);
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

    /// `None` if the guardian is gone without an answer.
    async fn start(self: &Arc<Self>, id: u64, start: &Start) -> Option<io::Result<Running>> {
        let (started_sender, started) = oneshot::channel();
        let (exited_sender, exited) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return None;
            }
            let call = Call {
                started: Some(started_sender),
                exited: exited_sender,
            };
            waiting.calls.insert(id, call);
        }
        // From here on, being dropped means being killed, even before the process id is known.
        let mut running = Running {
            link: self.clone(),
            id,
            pid: 0,
            exited,
            exit: None,
        };
        self.tell(|stream| wire::send_start(stream, id, start));
        match started.await {
            Ok(Ok(pid)) => {
                running.pid = pid;
                Some(Ok(running))
            }
            Ok(Err(error)) => Some(Err(error)),
            Err(_) => None,
        }
    }

    /// Sends a message. If it cannot be sent, the reader will find the link closed and say so.
    fn tell(&self, send: impl FnOnce(&UnixStream) -> io::Result<()>) {
        let _one = lock(&self.writing);
        if send(&self.stream).is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    fn give_up(&self) {
        if !self.proven.load(Ordering::Relaxed) {
            degrade("it ended at once");
        }
    }

    /// Ends the guardian, which kills everything, and waits for it.
    fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let waiting = lock(&self.waiting);
        let over = self
            .gone
            .wait_timeout_while(waiting, KILL_ALL_PATIENCE, |waiting| !waiting.over);
        drop(over.unwrap_or_else(PoisonError::into_inner));
    }
}

fn wait_for(mut child: Child) {
    // An error means that it was reaped by someone else; it is gone either way.
    let _ = child.wait();
}
