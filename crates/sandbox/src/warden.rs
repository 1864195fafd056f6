//! The warden: answers the calls of confined processes that the filter does not decide.
//!
//! One thread serves the listener of one command, so a command that makes many calls delays only itself. The rule of every
//! answer: copy what the call points to once, check that the caller still waits, decide, act on descriptors, answer. A call
//! that was inspected never continues, because the caller could change what it points to: the warden performs what it
//! permits, as the caller's user, and returns the result.

mod attributes;
mod caller;
mod names;
mod open;
mod own;
mod sockets;
mod walk;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use self::own::OwnThings;
use crate::Denial;
use crate::judge::Judge;
use crate::system::{self, Errno, Notification};
use caller::Caller;

/// The most calls of one command that wait at a time, such as opening a pipe that has no reader.
const MAX_WAITING: usize = 8;

/// Receives each denial together with the name of the program.
pub type DenialSink = Arc<dyn Fn(Denial, Option<String>) + Send + Sync>;

/// The rules and the knowledge that one warden shares with others of the same policy.
#[derive(Debug)]
pub(crate) struct Rules {
    pub judge: Judge,
    pub network: crate::Network,
    /// Files, sockets and terminals that were made in this sandbox.
    pub own: OwnThings,
}

/// Serves a listener on a thread of its own until every process of its filter has ended.
pub(crate) fn supervise(listener: OwnedFd, rules: Arc<Rules>, sink: DenialSink) -> io::Result<()> {
    let warden = Warden {
        listener: Arc::new(listener),
        rules,
        sink,
        waiting: Arc::default(),
    };
    std::thread::Builder::new()
        .name("warden".into())
        .spawn(move || warden.serve())
        .map(drop)
}

struct Warden {
    listener: Arc<OwnedFd>,
    rules: Arc<Rules>,
    sink: DenialSink,
    waiting: Arc<AtomicUsize>,
}

/// The end of a call.
enum Answer {
    Value(i64),
    /// A descriptor for the caller.
    Descriptor {
        file: OwnedFd,
        close_on_exec: bool,
    },
    /// Another thread answers.
    Later,
}

impl From<()> for Answer {
    fn from((): ()) -> Self {
        Self::Value(0)
    }
}

/// The reason why a call is not performed.
#[derive(Debug)]
enum Refusal {
    /// The system's own reason, which is not recorded.
    System(Errno),
    /// The policy's reason, and the error that the caller receives.
    Policy(Denial, Errno),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

type Answered = Result<Answer, Refusal>;

impl Warden {
    fn serve(self) {
        // Without a mask and a directory of its own the thread would change those of the whole process.
        if system::unshare_directory().is_err() {
            return;
        }
        while system::wait_for_call(&self.listener) {
            if let Ok(call) = system::receive(&self.listener) {
                self.handle(&call);
            }
        }
    }

    fn handle(&self, call: &Notification) {
        let caller = Caller::new(&self.listener, call);
        let answered = self.answer(&caller, call);
        let result = match answered {
            Ok(Answer::Value(value)) => Ok(value),
            Ok(Answer::Later) => return,
            Ok(Answer::Descriptor {
                file,
                close_on_exec,
            }) => {
                let id = call.id;
                match system::respond_with_descriptor(&self.listener, id, file, close_on_exec) {
                    Ok(()) => return,
                    Err(error) => Err(error),
                }
            }
            Err(Refusal::System(error)) => Err(error),
            Err(Refusal::Policy(denial, error)) => {
                (self.sink)(denial, caller.program());
                Err(error)
            }
        };
        system::respond(&self.listener, call.id, result);
    }

    fn answer(&self, caller: &Caller<'_>, call: &Notification) -> Answered {
        let number = libc::c_long::from(call.number);
        let a = &call.arguments;
        let (int, word) = (|at: usize| a[at] as i32, |at: usize| a[at] as u32);
        let here = libc::AT_FDCWD;
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_open => return self.open(caller, here, a[0], int(1), word(2)),
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                return self.open(caller, here, a[0], flags, word(1));
            }
            libc::SYS_chmod => return self.chmod(caller, here, a[0], word(1), 0),
            libc::SYS_chown => return self.chown(caller, here, a[0], (word(1), word(2)), 0),
            libc::SYS_lchown => {
                let flags = libc::AT_SYMLINK_NOFOLLOW;
                return self.chown(caller, here, a[0], (word(1), word(2)), flags);
            }
            libc::SYS_utime => return self.utime(caller, a[0], a[1]),
            libc::SYS_utimes => return self.futimesat(caller, here, a[0], a[1]),
            libc::SYS_futimesat => return self.futimesat(caller, int(0), a[1], a[2]),
            libc::SYS_mkdir => return self.mkdir(caller, here, a[0], word(1)),
            libc::SYS_rmdir => return self.unlink(caller, here, a[0], libc::AT_REMOVEDIR),
            libc::SYS_unlink => return self.unlink(caller, here, a[0], 0),
            libc::SYS_mknod => return self.mknod(caller, here, a[0], word(1)),
            libc::SYS_rename => return self.rename(caller, (here, a[0]), (here, a[1]), 0),
            libc::SYS_link => return self.link(caller, (here, a[0]), (here, a[1]), 0),
            libc::SYS_symlink => return self.symlink(caller, a[0], here, a[1]),
            _ => {}
        }
        match number {
            libc::SYS_openat => self.open(caller, int(0), a[1], int(2), word(3)),
            libc::SYS_fchmodat => self.chmod(caller, int(0), a[1], word(2), 0),
            libc::SYS_fchmodat2 => self.chmod(caller, int(0), a[1], word(2), int(3)),
            libc::SYS_fchmod => self.fchmod(caller, int(0), word(1)),
            libc::SYS_fchownat => self.chown(caller, int(0), a[1], (word(2), word(3)), int(4)),
            libc::SYS_fchown => self.fchown(caller, int(0), word(1), word(2)),
            libc::SYS_utimensat => self.utimensat(caller, int(0), a[1], a[2], int(3)),
            libc::SYS_setxattr => self.setxattr(caller, a, true),
            libc::SYS_lsetxattr => self.setxattr(caller, a, false),
            libc::SYS_fsetxattr => self.fsetxattr(caller, a),
            libc::SYS_removexattr => self.removexattr(caller, a[0], a[1], true),
            libc::SYS_lremovexattr => self.removexattr(caller, a[0], a[1], false),
            libc::SYS_fremovexattr => self.fremovexattr(caller, int(0), a[1]),
            libc::SYS_mkdirat => self.mkdir(caller, int(0), a[1], word(2)),
            libc::SYS_mknodat => self.mknod(caller, int(0), a[1], word(2)),
            libc::SYS_unlinkat => self.unlink(caller, int(0), a[1], int(2)),
            libc::SYS_renameat => self.rename(caller, (int(0), a[1]), (int(2), a[3]), 0),
            libc::SYS_renameat2 => self.rename(caller, (int(0), a[1]), (int(2), a[3]), word(4)),
            libc::SYS_linkat => self.link(caller, (int(0), a[1]), (int(2), a[3]), int(4)),
            libc::SYS_symlinkat => self.symlink(caller, a[0], int(1), a[2]),
            libc::SYS_truncate => self.truncate(caller, a[0], a[1] as i64),
            libc::SYS_connect => self.connect(caller, int(0), a[1], word(2)),
            libc::SYS_bind => self.bind(caller, int(0), a[1], word(2)),
            libc::SYS_listen => self.listen(caller, int(0), int(1)),
            libc::SYS_socket => Err(sockets::refused_socket(int(0), int(1))),
            libc::SYS_socketpair => Err(sockets::refused_socket(int(0), int(1))),
            _ => Err(libc::EPERM.into()),
        }
    }

    /// Runs `work` on a thread of its own, which answers the call. Too many of one command are refused.
    fn later(
        &self,
        call: u64,
        work: impl FnOnce(&OwnedFd) -> Result<Answer, Errno> + Send + 'static,
    ) -> Answered {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(libc::EAGAIN.into());
        }
        let (listener, waiting) = (Arc::clone(&self.listener), Arc::clone(&self.waiting));
        let waiter = move || {
            match work(&listener) {
                Ok(Answer::Value(value)) => system::respond(&listener, call, Ok(value)),
                Ok(Answer::Descriptor {
                    file,
                    close_on_exec,
                }) => {
                    let sent =
                        system::respond_with_descriptor(&listener, call, file, close_on_exec);
                    if let Err(error) = sent {
                        system::respond(&listener, call, Err(error));
                    }
                }
                Ok(Answer::Later) => {}
                Err(error) => system::respond(&listener, call, Err(error)),
            }
            waiting.fetch_sub(1, Ordering::Relaxed);
        };
        let started = std::thread::Builder::new()
            .name("warden-waiter".into())
            .spawn(waiter);
        match started {
            Ok(_) => Ok(Answer::Later),
            Err(_) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Err(libc::EAGAIN.into())
            }
        }
    }
}
