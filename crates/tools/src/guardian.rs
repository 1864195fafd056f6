//! The parent of every command, and the end of every command when we die.
//!
//! Commands are started by a guardian: a small process that the kernel makes the heir of all orphans below
//! it, so that a command may daemonise as it likes and still be found. The guardian holds one end of a
//! socket; when the other end closes, because we exited or were killed, it kills everything below it and
//! exits. It does not judge commands and does not read their output.
//!
//! Where no guardian process can be had, the same code serves from a thread of our own. Then orphans are
//! found by the mark in their environment, and only direct children end with a killed process.

mod dead;
pub(crate) mod sweep;
pub(crate) mod wire;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::{Pid, getpid, getppid, setsid};

use wire::{Order, Report, Start};

use crate::link::RECURSION_GUARD;
use crate::process::Environment;

/// How long the last sweep may take.
const LAST_SWEEP: Duration = Duration::from_secs(5);

/// Serves as guardian on stdin, which is a socket, and exits.
///
/// A binary calls this when its first argument is [`GUARDIAN_ARGUMENT`], before it does anything else.
///
/// [`GUARDIAN_ARGUMENT`]: crate::GUARDIAN_ARGUMENT
pub fn guardian_main() -> ! {
    let served = become_guardian().and_then(|stream| serve(stream, Role::Process));
    std::process::exit(i32::from(served.is_err()));
}

fn become_guardian() -> io::Result<UnixStream> {
    close_inherited();
    // Signals meant for the group of our parent must not end us before our work is done.
    let _ = setsid();
    survive_signals()?;
    prctl::set_child_subreaper(true)?;
    let _ = prctl::set_name(c"guardian");
    std::env::set_current_dir("/")?;
    let socket = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    Ok(UnixStream::from(socket))
}

/// Descriptors beyond stderr belong to the process that started us; one of them may be its protocol.
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
    // A handler, unlike SIG_IGN, is not inherited by the commands we start.
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

/// Where the guardian's code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// In a process of its own, which adopts all orphans below it.
    Process,
    /// In a thread of the process that gives the orders.
    Thread,
}

/// Carries out orders until the stream ends, then kills everything that is left.
pub(crate) fn serve(stream: UnixStream, role: Role) -> io::Result<()> {
    let yard = Arc::new(Yard {
        role,
        stream,
        children: Mutex::default(),
        born: Condvar::new(),
        calls: Mutex::default(),
    });
    if role == Role::Process {
        let reaper = yard.clone();
        spawn_thread("reaper", move || reaper.reap())?;
        spawn_thread("sweeper", sweep::kill_stale)?;
    }
    let ended = loop {
        match wire::receive_order(&yard.stream) {
            Ok(Some((id, Order::Start(start)))) => yard.start(id, start),
            Ok(Some((id, Order::Kill))) => yard.kill(id),
            Ok(Some((id, Order::Forget))) => drop(yard.calls().remove(&id)),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    yard.kill_everything();
    ended
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
}

struct Yard {
    role: Role,
    stream: UnixStream,
    /// Started by us and not yet reaped: process id to order id. Held while a process is started or
    /// reaped, so that a process id in it is never one that has been reused.
    children: Mutex<HashMap<i32, u64>>,
    /// Told when `children` is no longer empty.
    born: Condvar,
    /// How to recognise the processes of an order that may still be killed.
    calls: Mutex<HashMap<u64, Call>>,
}

/// Everything an order started is in the session of its first process, or carries its mark, or both.
#[derive(Debug, Clone)]
struct Call {
    session: i32,
    mark: Option<String>,
}

impl Yard {
    fn children(&self) -> MutexGuard<'_, HashMap<i32, u64>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, id: u64, report: Report) {
        // If nobody listens any more, the stream's end will tell us soon.
        let _ = wire::send_report(&self.stream, id, report);
    }

    fn start(self: &Arc<Self>, id: u64, start: Start) {
        let mark = start.variables.iter().find(|(name, _)| name == sweep::MARK);
        let mark = mark.map(|(_, mark)| mark.to_string_lossy().into_owned());
        let mut children = self.children();
        // A command may kill us before we can say that it runs. It must not be run again then.
        self.report(id, Report::Taken);
        match spawn(start) {
            Ok(pid) => {
                children.insert(pid, id);
                self.calls().insert(id, Call { session: pid, mark });
                self.report(id, Report::Started(pid));
                self.born.notify_one();
                if self.role == Role::Thread {
                    let yard = self.clone();
                    // Without a thread to wait, the process would never be reported as ended.
                    if spawn_thread("waiter", move || yard.wait_for(pid)).is_err() {
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
                // No child at all: there is nothing to do until one is started.
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
        // Where there is nothing to reap, the process had failed to start and was reaped then.
        let Some(code) = dead::reap(pid) else { return };
        if let Some(id) = children.remove(&pid) {
            self.report(id, Report::Exited(code));
        }
    }

    /// Waits for one child, beside which the process may have children that are not our business.
    fn wait_for(&self, pid: i32) {
        if dead::next(dead::Among::One(pid)).is_ok() {
            self.reap_one(pid);
        }
    }

    /// Kills what order `id` started and everything that came of it.
    fn kill(&self, id: u64) {
        let Some(Call { session, mark }) = self.calls().get(&id).cloned() else {
            return;
        };
        // Without adopting orphans, a session is only known to be ours while its leader is.
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
        // Where `/proc` shows nothing, at least the group is known.
        if self.children().contains_key(&session) {
            let _ = kill(Pid::from_raw(-session), Signal::SIGKILL);
        }
    }

    /// The processes below us; `None` if we cannot tell, because we adopt nobody.
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
        // Every orphan becomes our child, so when we have no child, nothing is left.
        while dead::have_children() && Instant::now() < deadline {
            sweep::kill_all(|processes| self.reach(processes).unwrap_or_default());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Starts a process as leader of its own session, with nothing but its three descriptors.
#[allow(unsafe_code, reason = "preparing a child between fork and exec")]
fn spawn(start: Start) -> io::Result<i32> {
    let mut words = start.words.iter();
    let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = start
        .stdio
        .map(|descriptor: OwnedFd| Stdio::from(descriptor));
    let mut command = Command::new(program);
    if start.base == Environment::Nothing {
        command.env_clear();
    }
    command
        .args(words)
        .env_remove(RECURSION_GUARD)
        .envs(start.variables)
        .current_dir(start.directory);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let parent = getpid();
    // SAFETY: only system calls that are safe between fork and exec; nothing allocates or locks.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            // Where this is refused, the guardian has to do without the second net.
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            if getppid() != parent {
                // The parent died before it could be watched.
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            let flag = libc::CLOSE_RANGE_CLOEXEC;
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, flag);
            Ok(())
        });
    }
    // The handle is dropped without waiting: reaping is done by process id.
    Ok(command.spawn()?.id() as i32)
}
