//! The guardian: the parent process of every command.
//!
//! The kernel makes the guardian the new parent of all orphans below it (`PR_SET_CHILD_SUBREAPER`), so it finds commands that
//! daemonise. It holds one end of a socket. When the other end closes, because pinion exited or was killed, it kills
//! everything below it and exits. It does not judge commands and does not read their output.
//!
//! Where a guardian process cannot be started, the same code runs in a thread of pinion. It then finds orphans by the mark in
//! their environment, and only direct children end with a process that was killed.

pub(crate) mod confined;
mod dead;
pub(crate) mod sweep;
pub(crate) mod wire;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{self, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::{Pid, getpid, getppid, setsid};
use pinion_sandbox::ChildSteps;

use wire::{Order, Report, Start};

use crate::launch::Environment;
use crate::link::RECURSION_GUARD;

/// Time limit of the last sweep.
const LAST_SWEEP: Duration = Duration::from_secs(5);

/// Runs as guardian with the socket on stdin, then exits.
///
/// A binary calls this before anything else when its first argument is [`GUARDIAN_ARGUMENT`].
///
/// [`GUARDIAN_ARGUMENT`]: crate::GUARDIAN_ARGUMENT
pub fn guardian_main() -> ! {
    if let Some(code) = confined::self_test_main() {
        process::exit(code);
    }
    let served = become_guardian().and_then(|stream| serve(stream, Role::Process));
    process::exit(i32::from(served.is_err()));
}

fn become_guardian() -> io::Result<UnixStream> {
    close_inherited();
    // Signals to the parent's process group must not end the guardian before its last sweep.
    let _ = setsid();
    survive_signals()?;
    prctl::set_child_subreaper(true)?;
    let _ = prctl::set_name(c"guardian");
    std::env::set_current_dir("/")?;
    let socket = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    Ok(UnixStream::from(socket))
}

/// Closes the descriptors beyond stderr: they belong to the parent, and one may carry its protocol.
#[allow(
    unsafe_code,
    reason = "there is no safe way to close a range of descriptors"
)]
fn close_inherited() {
    // SAFETY: this runs first thing in a fresh process, in which nothing has opened a descriptor yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

#[allow(unsafe_code, reason = "installing a signal handler")]
fn survive_signals() -> io::Result<()> {
    extern "C" fn ignore(_: libc::c_int) {}
    // Commands do not inherit a handler, but would inherit SIG_IGN.
    let action = SigAction::new(
        SigHandler::Handler(ignore),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        // SAFETY: the handler does nothing, which is safe in any context.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Selects where the guardian's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// In a process of its own, which adopts all orphans below it.
    Process,
    /// In a thread of the process that gives the orders.
    Thread,
}

/// Carries out orders until the stream ends, then kills everything that is left.
pub(crate) fn serve(stream: UnixStream, role: Role) -> io::Result<()> {
    let guardian = Arc::new(Guardian {
        role,
        stream,
        children: Mutex::default(),
        born: Condvar::new(),
        commands: Mutex::default(),
        reporting: Mutex::default(),
        policies: confined::Policies::default(),
    });
    if role == Role::Process {
        let reaper = guardian.clone();
        spawn_thread("reaper", move || reaper.reap())?;
        spawn_thread("sweeper", sweep::kill_stale)?;
    }
    let ended = loop {
        match wire::receive_order(&guardian.stream) {
            Ok(Some((id, Order::Start(start)))) => guardian.start(id, start),
            Ok(Some((id, Order::Kill))) => guardian.kill(id),
            Ok(Some((id, Order::Forget))) => drop(guardian.commands().remove(&id)),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    guardian.kill_everything();
    ended
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
}

struct Guardian {
    role: Role,
    stream: UnixStream,
    /// Direct children that are not reaped yet: process id to order id. The lock is held while a process starts or is
    /// reaped, so a process id in the map was never reused.
    children: Mutex<HashMap<i32, u64>>,
    /// Notified when `children` is no longer empty.
    born: Condvar,
    /// The commands that may still be killed, by order id.
    commands: Mutex<HashMap<u64, Command>>,
    /// Held while a report is written, so that reports do not mix.
    reporting: Mutex<()>,
    policies: confined::Policies,
}

/// Identifies the processes of an order: each is in the session of the first process, carries the mark, or both.
#[derive(Debug, Clone)]
struct Command {
    session: i32,
    mark: Option<String>,
}

impl Guardian {
    fn children(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commands(&self) -> MutexGuard<'_, HashMap<u64, Command>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, id: u64, report: Report) {
        let reporting = self.reporting.lock();
        let _one = reporting.unwrap_or_else(PoisonError::into_inner);
        // When the other side is gone, the next read ends the loop.
        let _ = wire::send_report(&self.stream, id, report);
    }

    fn start(self: &Arc<Self>, id: u64, start: Start) {
        let mark = start.variables.iter().find(|(name, _)| name == sweep::MARK);
        let mark = mark.map(|(_, mark)| mark.to_string_lossy().into_owned());
        let mut children = self.children();
        // A command may kill the guardian before its start is reported. It must not run a second time then.
        self.report(id, Report::Taken);
        let spawned = match start.policy.clone() {
            None => spawn(start, None),
            Some(policy) => match self.spawn_confined(id, start, &policy) {
                Ok(spawned) => spawned,
                Err(error) => {
                    self.report(id, Report::Refused(error.to_string()));
                    return;
                }
            },
        };
        match spawned {
            Ok(pid) => {
                children.insert(pid, id);
                let command = Command { session: pid, mark };
                self.commands().insert(id, command);
                self.report(id, Report::Started(pid));
                self.born.notify_one();
                if self.role == Role::Thread {
                    let guardian = self.clone();
                    // Without a thread that waits, the end of the process would never be reported.
                    if spawn_thread("waiter", move || guardian.wait_for(pid)).is_err() {
                        let _ = kill(Pid::from_raw(-pid), Signal::SIGKILL);
                        self.report(id, Report::Exited(-libc::SIGKILL));
                    }
                }
            }
            Err(error) => {
                self.report(
                    id,
                    Report::Failed(error.raw_os_error().unwrap_or(libc::EINVAL)),
                );
            }
        }
    }

    /// Reaps everything, orphans of commands included.
    fn reap(&self) {
        loop {
            match dead::next(dead::Among::All) {
                Ok(pid) => self.reap_one(pid),
                // There is no child: wait until one starts.
                Err(_) => {
                    let children = self.children();
                    let wait = self
                        .born
                        .wait_while(children, |children| children.is_empty());
                    drop(wait.unwrap_or_else(PoisonError::into_inner));
                }
            }
        }
    }

    fn reap_one(&self, pid: i32) {
        let mut children = self.children();
        // A process that failed to start was reaped by `spawn`.
        let Some(code) = dead::reap(pid) else { return };
        if let Some(id) = children.remove(&pid) {
            self.report(id, Report::Exited(code));
        }
    }

    /// Waits for one child; other children of the process do not belong to the guardian.
    fn wait_for(&self, pid: i32) {
        if dead::next(dead::Among::One(pid)).is_ok() {
            self.reap_one(pid);
        }
    }

    /// Kills the processes of order `id` and their descendants.
    fn kill(&self, id: u64) {
        let Some(Command { session, mark }) = self.commands().get(&id).cloned() else {
            return;
        };
        // A thread adopts no orphans, so it can rely on a session id only while the session leader is its child.
        let sure = self.role == Role::Process || self.children().contains_key(&session);
        sweep::kill_all(|processes| {
            let ours = self.reach(processes);
            let belongs = |process: &&sweep::Process| {
                ours.as_ref().is_none_or(|ours| ours.contains(&process.pid))
                    && (sure && process.session == session
                        || mark.is_some() && sweep::mark_of(process.pid) == mark)
            };
            let seeds = processes
                .iter()
                .filter(belongs)
                .map(|process| process.pid)
                .collect();
            sweep::with_descendants(processes, seeds)
        });
        // Without `/proc` the process group is still known.
        if self.children().contains_key(&session) {
            let _ = kill(Pid::from_raw(-session), Signal::SIGKILL);
        }
    }

    /// All descendants of the guardian; `None` in a thread, which adopts no orphans.
    fn reach(&self, processes: &[sweep::Process]) -> Option<HashSet<i32>> {
        let ourselves = HashSet::from([std::process::id() as i32]);
        (self.role == Role::Process).then(|| sweep::with_descendants(processes, ourselves))
    }

    fn kill_everything(&self) {
        if self.role == Role::Thread {
            if let Some(owner) = sweep::owner(std::process::id() as i32) {
                sweep::kill_marked(&owner);
            }
            return;
        }
        let deadline = Instant::now() + LAST_SWEEP;
        // Every orphan becomes a child of the guardian, so without a child nothing is left.
        while dead::have_children() && Instant::now() < deadline {
            sweep::kill_all(|processes| self.reach(processes).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Starts a process as leader of its own session, with its own descriptors and no others, and with its confinement.
#[allow(unsafe_code, reason = "preparing a child between fork and exec")]
fn spawn(start: Start, confinement: Option<ChildSteps>) -> io::Result<i32> {
    let mut words = start.words.iter();
    let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = start
        .stdio
        .map(|descriptor: OwnedFd| Stdio::from(descriptor));
    let mut command = process::Command::new(program);
    if start.base == Environment::Empty {
        command.env_clear();
    }
    command
        .args(words)
        .env_remove(RECURSION_GUARD)
        .envs(start.variables)
        .current_dir(start.directory);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let mut extra: Vec<i32> = start.extra.iter().map(AsRawFd::as_raw_fd).collect();
    // Copies above the numbers that the process gets, so that none overwrites another.
    let above = 3 + extra.len() as i32;
    let parent = getpid();
    // SAFETY: only system calls that are safe between fork and exec; nothing allocates or locks.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            // A second safety net; the sweep works without it.
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            if getppid() != parent {
                // The parent died before the death signal was set.
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            let flag = libc::CLOSE_RANGE_CLOEXEC;
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flag);
            for source in &mut extra {
                *source = libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, above);
            }
            for (target, copy) in (3..).zip(&extra) {
                if libc::dup2(*copy, target) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            // Last, because it forbids much of what was done before.
            match &confinement {
                Some(confinement) => confinement.apply(),
                None => Ok(()),
            }
        });
    }
    // The handle is dropped without waiting: the reaper reaps by process id.
    Ok(command.spawn()?.id() as i32)
}
