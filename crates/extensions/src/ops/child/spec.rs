//! A script's description of a child to start, and the pipes to it.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use pinion_process::{Confinement, Environment, Launch, Reason, input_pipe, output_pipe};
use serde::Deserialize;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::ops::fs::duplicate;
use crate::ops::syscall_error::{Outcome, SyscallError};

/// A child to start.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChildSpec {
    pub(super) file: String,
    args: Vec<String>,
    cwd: Option<PathBuf>,
    /// The whole environment.
    env: Vec<(String, String)>,
    /// At least three.
    stdio: Vec<Stdio>,
    /// Milliseconds; for a synchronous run.
    #[serde(default)]
    pub(super) timeout: Option<f64>,
    /// Bytes per output; for a synchronous run.
    #[serde(default)]
    pub(super) max_buffer: Option<f64>,
    /// Sent when the timeout or the size limit is exceeded.
    #[serde(default)]
    pub(super) kill_signal: Option<i32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Stdio {
    /// A file that the script has open; 1 and 2 are pinion's standard error.
    File(i32),
    Named(Named),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Named {
    Pipe,
    Ignore,
}

/// pinion's ends of the pipes.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pub(super) stdin: Option<Sender>,
    pub(super) stdout: Option<Receiver>,
    pub(super) stderr: Option<Receiver>,
    /// pinion's ends of the descriptors 3 and up; `None` for those that are not pipes.
    pub(super) extra: Vec<Option<UnixStream>>,
    /// The ends of the child.
    pub(super) extra_theirs: Vec<OwnedFd>,
}

impl ChildSpec {
    pub(super) fn parse(json: &str) -> Outcome<Self> {
        let spec: Self = serde_json::from_str(json)
            .map_err(|error| SyscallError::new(io::Error::other(error), "spawn"))?;
        if spec.stdio.len() < 3 {
            return Err(SyscallError::new(io::ErrorKind::InvalidInput, "spawn"));
        }
        Ok(spec)
    }

    /// Returns the launch request and pinion's ends of the pipes.
    pub(super) fn prepare(&self) -> Outcome<(Launch, Pipes)> {
        let fail = |error: io::Error| SyscallError::new(error, "pipe");
        let mut pipes = Pipes::default();
        let mut launch = Launch {
            words: std::iter::once(&self.file)
                .chain(&self.args)
                .map(Into::into)
                .collect(),
            directory: match &self.cwd {
                Some(directory) => std::path::absolute(directory).map_err(fail)?,
                None => std::env::current_dir().map_err(fail)?,
            },
            variables: self
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            base: Environment::Empty,
            confinement: Confinement::Unconfined(Reason::ModeOff),
            stdin: None,
            stdout: None,
            stderr: None,
        };
        if let Stdio::Named(Named::Pipe) = self.stdio[0] {
            let (theirs, ours) = input_pipe().map_err(fail)?;
            launch.stdin = Some(theirs);
            pipes.stdin = Some(ours);
        } else if let Stdio::File(fd @ 3..) = self.stdio[0] {
            launch.stdin = Some(duplicate(fd)?);
        }
        launch.stdout = output(self.stdio[1], &mut pipes.stdout)?;
        launch.stderr = output(self.stdio[2], &mut pipes.stderr)?;
        for stdio in &self.stdio[3..] {
            let (ours, theirs) = extra(*stdio)?;
            pipes.extra.push(ours);
            pipes.extra_theirs.push(theirs);
        }
        Ok((launch, pipes))
    }
}

fn output(stdio: Stdio, ours: &mut Option<Receiver>) -> Outcome<Option<OwnedFd>> {
    let fail = |error: io::Error| SyscallError::new(error, "pipe");
    match stdio {
        Stdio::Named(Named::Ignore) | Stdio::File(0) => Ok(None),
        Stdio::Named(Named::Pipe) => {
            let (reader, theirs) = output_pipe().map_err(fail)?;
            *ours = Some(reader);
            Ok(Some(theirs))
        }
        Stdio::File(1 | 2) => {
            let copy = io::stderr().as_fd().try_clone_to_owned();
            copy.map(Some).map_err(fail)
        }
        Stdio::File(fd) => duplicate(fd).map(Some),
    }
}

/// Returns both ends of a descriptor beyond standard error. A pipe there works in both directions.
fn extra(stdio: Stdio) -> Outcome<(Option<UnixStream>, OwnedFd)> {
    let fail = |error: io::Error| SyscallError::new(error, "pipe");
    match stdio {
        Stdio::Named(Named::Pipe) => {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(fail)?;
            ours.set_nonblocking(true).map_err(fail)?;
            let ours = UnixStream::from_std(ours).map_err(fail)?;
            Ok((Some(ours), theirs.into()))
        }
        Stdio::Named(Named::Ignore) | Stdio::File(0) => {
            let null = std::fs::File::open("/dev/null").map_err(fail)?;
            Ok((None, null.into()))
        }
        Stdio::File(1 | 2) => {
            let copy = io::stderr().as_fd().try_clone_to_owned();
            copy.map(|copy| (None, copy)).map_err(fail)
        }
        Stdio::File(fd) => duplicate(fd).map(|copy| (None, copy)),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// AwaitCache for a future that needs no runtime, on a thread that has one.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    // The cooperative budget of the surrounding task would never be refilled while this thread waits.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
