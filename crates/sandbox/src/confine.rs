//! Prepares the confinement of a process, and applies it between fork and exec.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use libc::sock_filter;

use crate::judge::Judge;
use crate::mutation::is_disabled;
use crate::ruleset::Ruleset;
use crate::system::{self, Errno};
use crate::warden::{self, DenialSink, OwnThings, Rules};
use crate::{Limits, Policy, filter};

/// The oldest interface of Landlock that confines signals: Linux 6.12.
const NEEDED_ABI: i32 = 6;
/// `CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `KILL`, `SETGID` and `SETUID`.
const KEPT_CAPABILITIES: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;
const MIB: u64 = 1024 * 1024;

/// A step between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Limits = 1,
    Privileges,
    Capabilities,
    Landlock,
    Filter,
    Listener,
    Done,
}

impl Step {
    fn described(byte: u8) -> &'static str {
        const fn is(byte: u8, step: Step) -> bool {
            byte == step as u8
        }
        match byte {
            byte if is(byte, Self::Limits) => "setting the limits",
            byte if is(byte, Self::Privileges) => "giving up privileges (no_new_privs)",
            byte if is(byte, Self::Capabilities) => "giving up capabilities",
            byte if is(byte, Self::Landlock) => "restricting files and sockets (Landlock)",
            byte if is(byte, Self::Filter) => {
                "installing the filter with a listener (seccomp). A container or an outer sandbox may hold the only \
                 listener"
            }
            byte if is(byte, Self::Listener) => "handing over the listener",
            _ => "starting",
        }
    }
}

/// The reason why a process cannot be confined, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfineError(pub String);

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfineError {}

fn failed(step: &str, error: Errno) -> ConfineError {
    let error = io::Error::from_raw_os_error(error);
    ConfineError(format!(
        "sandbox: {step} failed: {error}. Use --sandbox off, or a container."
    ))
}

/// Checks that this system has what the sandbox needs, and returns the version of Landlock.
///
/// # Errors
///
/// Fails with the kernel feature that is missing.
pub fn check_system() -> Result<i32, ConfineError> {
    let help = "Use --sandbox off, or a container.";
    let abi = system::landlock_abi().map_err(|_| {
        ConfineError(format!(
            "sandbox: this system has no Landlock (Linux 5.13 or later with lsm=…,landlock). {help}"
        ))
    })?;
    if abi < NEEDED_ABI {
        return Err(ConfineError(format!(
            "sandbox: Landlock of this system (version {abi}) cannot confine signals; Linux 6.12 or later can. {help}"
        )));
    }
    Ok(abi)
}

/// A policy in the form that is applied to processes. It may be used for many.
#[derive(Debug)]
pub struct Compiled {
    policy: Policy,
    rules: Arc<Rules>,
    ruleset: Mutex<Arc<Ruleset>>,
    filter: Arc<Vec<sock_filter>>,
}

impl Compiled {
    /// Makes the rule set and the filter of a policy.
    ///
    /// # Errors
    ///
    /// Fails if this system cannot apply the policy.
    pub fn new(policy: Policy) -> Result<Self, ConfineError> {
        check_system()?;
        if policy.require_namespaces {
            return Err(ConfineError(
                "sandbox: strict.namespaces is set, and this version of pinion makes no mount namespace. Remove it, or use \
                 a container."
                    .into(),
            ));
        }
        let ruleset =
            Ruleset::make(&policy).map_err(|error| failed("making the rules (Landlock)", error))?;
        let filter = filter::assemble(&policy).ok_or_else(|| {
            ConfineError("sandbox: this processor is not supported. Use --sandbox off.".into())
        })?;
        let rules = Rules {
            judge: Judge::new(&policy),
            network: policy.network.clone(),
            own: OwnThings::default(),
        };
        Ok(Self {
            policy,
            rules: Arc::new(rules),
            ruleset: Mutex::new(Arc::new(ruleset)),
            filter: Arc::new(filter),
        })
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The number of rules about places.
    pub fn rules(&self) -> usize {
        self.current().rules
    }

    fn current(&self) -> Arc<Ruleset> {
        let slot = self.ruleset.lock();
        Arc::clone(&slot.unwrap_or_else(PoisonError::into_inner))
    }

    /// Prepares the confinement of one process.
    ///
    /// # Errors
    ///
    /// Fails if the rules have to be made again and cannot be.
    pub fn prepare(&self) -> Result<Confiner, ConfineError> {
        let mut ruleset = self.current();
        if ruleset.is_stale() {
            let made = Ruleset::make(&self.policy)
                .map_err(|error| failed("making the rules (Landlock)", error))?;
            ruleset = Arc::new(made);
            let mut slot = self.ruleset.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = Arc::clone(&ruleset);
        }
        let (ours, theirs) =
            system::message_pair().map_err(|error| failed("making a socket", error))?;
        Ok(Confiner {
            limits: self.policy.limits.clone(),
            capabilities: (system::user() == 0)
                .then(|| KEPT_CAPABILITIES & system::held_capabilities()),
            ruleset,
            filter: Arc::clone(&self.filter),
            rules: Arc::clone(&self.rules),
            ours,
            theirs,
        })
    }
}

/// The confinement of one process that is about to start.
#[derive(Debug)]
pub struct Confiner {
    limits: Limits,
    /// The capabilities that remain; `None` for an ordinary user, who has none.
    capabilities: Option<u64>,
    ruleset: Arc<Ruleset>,
    filter: Arc<Vec<sock_filter>>,
    rules: Arc<Rules>,
    ours: OwnedFd,
    theirs: OwnedFd,
}

/// The part of a confinement that runs between fork and exec. It allocates nothing and takes no lock.
#[derive(Debug)]
pub struct ChildSteps {
    limits: Limits,
    /// The capabilities that remain; `None` for an ordinary user, who has none.
    capabilities: Option<u64>,
    ruleset: RawFd,
    filter: Arc<Vec<sock_filter>>,
    socket: RawFd,
    /// For tests only.
    without_landlock: bool,
}

impl Confiner {
    /// Returns the steps for the child. They must run before the confiner is dropped.
    pub fn steps(&self) -> ChildSteps {
        ChildSteps {
            limits: self.limits.clone(),
            capabilities: self.capabilities,
            ruleset: self.ruleset.descriptor.as_raw_fd(),
            filter: Arc::clone(&self.filter),
            socket: self.theirs.as_raw_fd(),
            without_landlock: is_disabled("landlock"),
        }
    }

    /// Begins to answer the calls of the process, which has just started.
    ///
    /// # Errors
    ///
    /// Fails if the process did not hand over its listener; it must be killed then.
    pub fn supervise(self, sink: DenialSink) -> Result<(), ConfineError> {
        drop(self.theirs);
        let mut listener = None;
        while let Some((_, received)) = system::receive_byte(&self.ours) {
            listener = listener.or(received);
        }
        let listener =
            listener.ok_or_else(|| failed(Step::described(Step::Listener as u8), libc::EPROTO))?;
        warden::supervise(listener, self.rules, sink)
            .map_err(|error| failed("starting the supervisor", error.raw_os_error().unwrap_or(0)))
    }

    /// Explains why the process did not start: the error of a step, or `None` if it was confined and the program could not
    /// be run.
    pub fn explain(self, error: &io::Error) -> Option<ConfineError> {
        drop(self.theirs);
        let mut last = None;
        while let Some((step, _)) = system::receive_byte(&self.ours) {
            last = Some(step);
        }
        match last {
            Some(step) if step == Step::Done as u8 => None,
            // The process failed before the first step.
            None => None,
            Some(step) => Some(failed(
                Step::described(step),
                error.raw_os_error().unwrap_or(libc::EIO),
            )),
        }
    }
}

impl ChildSteps {
    /// Confines the calling process for good. Called between fork and exec.
    ///
    /// # Errors
    ///
    /// Fails with the error of the step that failed; the process must end then.
    pub fn apply(&self) -> io::Result<()> {
        self.run().map_err(io::Error::from_raw_os_error)
    }

    fn run(&self) -> Result<(), Errno> {
        let begin = |step: Step| system::send_byte(self.socket, step as u8);
        begin(Step::Limits);
        system::limit(libc::RLIMIT_CORE, 0)?;
        let limits = [
            (
                libc::RLIMIT_FSIZE,
                self.limits.file_mb.map(|mb| mb.saturating_mul(MIB)),
            ),
            (libc::RLIMIT_CPU, self.limits.cpu_seconds),
            (libc::RLIMIT_NOFILE, self.limits.open_files),
        ];
        for (resource, most) in limits {
            if let Some(most) = most {
                system::limit(resource, most)?;
            }
        }
        begin(Step::Privileges);
        system::set_no_new_privileges()?;
        if let Some(kept) = self.capabilities {
            begin(Step::Capabilities);
            system::drop_capabilities(kept)?;
        }
        begin(Step::Landlock);
        if !self.without_landlock {
            system::restrict_self(self.ruleset)?;
        }
        begin(Step::Filter);
        let listener = system::install_filter(&self.filter)?;
        // The listener sends its own step: a failure after this line means that it did not arrive.
        system::send_descriptor(self.socket, Step::Listener as u8, listener)?;
        system::close(listener);
        begin(Step::Done);
        Ok(())
    }
}
