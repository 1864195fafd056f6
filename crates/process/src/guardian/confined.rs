//! Starts processes in a sandbox: policies in the form for the kernel, and the self-test of each.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use pinion_sandbox::{
    Compiled, ConfineError, DenialSink, Policy, Record, SelfTest, confined_environment,
};

use super::wire::{Report, Start};
use super::{Guardian, Role, spawn, sweep};
use crate::launch::Environment;
use crate::link;

/// An argument of a guardian that runs the self-test instead; the test itself follows it.
pub const SELF_TEST_ARGUMENT: &str = "__sandbox-test";
/// The most policies that stay compiled.
const MAX_POLICIES: usize = 64;
/// Time limit of the self-test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two looks at the self-test.
const TEST_PAUSE: Duration = Duration::from_micros(200);
/// Variables of pinion that find a process again.
const KEPT: &[&str] = &[sweep::MARK, sweep::FAMILY];

/// Policies in the form for the kernel, by their text.
#[derive(Debug, Default)]
pub(crate) struct Policies(Mutex<HashMap<String, Arc<Compiled>>>);

impl Policies {
    /// Returns a policy that has passed the self-test.
    fn compiled(&self, text: &str, role: Role) -> Result<Arc<Compiled>, ConfineError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(text) {
            return Ok(Arc::clone(compiled));
        }
        let policy: Policy = serde_json::from_str(text)
            .map_err(|error| ConfineError(format!("sandbox: invalid policy: {error}")))?;
        let compiled = Arc::new(Compiled::new(policy)?);
        self_test(&compiled, role)?;
        if known.len() >= MAX_POLICIES {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

impl Guardian {
    /// Starts a confined process. The outer error means that it could not be confined, and does not run.
    pub(super) fn spawn_confined(
        self: &Arc<Self>,
        id: u64,
        start: Start,
        policy: &str,
    ) -> Result<io::Result<i32>, ConfineError> {
        let compiled = self.policies.compiled(policy, self.role)?;
        let guardian = Arc::clone(self);
        let sink: DenialSink = Arc::new(move |denial, program| {
            let ask = denial.ask();
            let record = Record {
                denial,
                count: 1,
                program,
                ask,
            };
            if let Ok(record) = serde_json::to_string(&record) {
                guardian.report(id, Report::Denied(record));
            }
        });
        spawn_in(&compiled, start, sink)
    }
}

fn spawn_in(
    compiled: &Compiled,
    mut start: Start,
    sink: DenialSink,
) -> Result<io::Result<i32>, ConfineError> {
    let confiner = compiled.prepare()?;
    let mut all: HashMap<OsString, OsString> = match start.base {
        Environment::Inherited => std::env::vars_os().collect(),
        Environment::Empty => HashMap::new(),
    };
    all.extend(std::mem::take(&mut start.variables));
    start.base = Environment::Empty;
    start.variables = confined_environment(compiled.policy(), all, KEPT);
    match spawn(start, Some(confiner.steps())) {
        Ok(pid) => match confiner.supervise(sink) {
            Ok(()) => Ok(Ok(pid)),
            Err(error) => {
                // The reaper takes it away.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                Err(error)
            }
        },
        Err(error) => match confiner.explain(&error) {
            Some(reason) => Err(reason),
            None => Ok(Err(error)),
        },
    }
}

/// Runs the self-test as a confined process. The caller holds the lock of the children, so that no other thread reaps it.
fn self_test(compiled: &Compiled, role: Role) -> Result<(), ConfineError> {
    let failed = |problem: String| {
        ConfineError(format!(
            "sandbox: the self-test failed: {problem}. Use --sandbox off, or a container."
        ))
    };
    let (program, mut arguments): (OsString, Vec<OsString>) = match role {
        Role::Process => (
            "/proc/self/exe".into(),
            std::env::args_os().skip(1).collect(),
        ),
        Role::Thread => {
            let (program, arguments) = link::guardian_command();
            (program.into(), arguments)
        }
    };
    let server = TcpListener::bind("127.0.0.1:0").ok();
    let port = server.as_ref().and_then(|server| server.local_addr().ok());
    let (test, _files) =
        SelfTest::prepare(compiled.policy(), port.map(|address| address.port()))
            .map_err(|error| failed(format!("its files could not be made: {error}")))?;
    let test = serde_json::to_string(&test).map_err(|error| failed(error.to_string()))?;
    arguments.extend([SELF_TEST_ARGUMENT.into(), test.into()]);
    let mut words = vec![program];
    words.extend(arguments);
    let null = || -> io::Result<OwnedFd> {
        Ok(File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?
            .into())
    };
    let stdio = (|| Ok::<_, io::Error>([null()?, null()?, null()?]))()
        .map_err(|error| failed(error.to_string()))?;
    let start = Start {
        directory: "/".into(),
        words,
        variables: Vec::new(),
        base: Environment::Empty,
        policy: None,
        stdio,
        extra: Vec::new(),
    };
    let pid = spawn_in(compiled, start, Arc::new(|_, _| {}))?
        .map_err(|error| failed(format!("it could not be started: {error}")))?;
    match wait(pid) {
        Some(code) => SelfTest::judge(code).map_err(failed),
        None => Err(failed("it did not end".into())),
    }
}

/// Waits for the self-test. `None` if it was killed.
fn wait(pid: i32) -> Option<i32> {
    let pid = Pid::from_raw(pid);
    let deadline = Instant::now() + TEST_TIMEOUT;
    loop {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if Instant::now() < deadline => {
                std::thread::sleep(TEST_PAUSE);
            }
            Ok(WaitStatus::Exited(_, code)) => return Some(code),
            Err(nix::Error::EINTR) => {}
            _ => {
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, None);
                return None;
            }
        }
    }
}

/// Runs the self-test if the arguments ask for it, and returns the exit code.
pub(super) fn self_test_main() -> Option<i32> {
    let mut arguments = std::env::args_os();
    arguments.find(|argument| argument == SELF_TEST_ARGUMENT)?;
    Some(SelfTest::run(&arguments.next()?.to_string_lossy()))
}
