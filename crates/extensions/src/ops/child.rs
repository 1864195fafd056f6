//! Child processes, for `node:child_process`. All are started through the guardian, so that none outlives pinion.

mod run;
mod spec;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_process::{Exit, Running};
use rquickjs::prelude::{Async, Func, Opt};
use rquickjs::{Ctx, Object};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::bytes::Bytes;
use super::syscall_error::SyscallError;
use crate::script::Host;
use spec::{ChildSpec, block_on};

const READ_SIZE: usize = 64 * 1024;

/// A child that scripts can communicate with.
struct Child {
    pid: i32,
    /// Taken by the operation that waits for the exit.
    running: RefCell<Option<Running>>,
    ended: Cell<bool>,
    /// Standard input, then the descriptors 3 and up.
    inputs: Vec<Input>,
    /// Standard output, standard error, then the descriptors 3 and up.
    outputs: Vec<Output>,
}

/// An end of a pipe that scripts write to; absent after it was closed.
type Input = tokio::sync::Mutex<Option<Box<dyn AsyncWrite + Unpin>>>;

/// An end of a pipe that scripts read from.
type Reader = Box<dyn AsyncRead + Unpin>;

/// An end of a pipe that scripts read from.
struct Output {
    /// Absent during a read, and after the end.
    pipe: RefCell<Option<Reader>>,
    closed: CancellationToken,
}

impl Output {
    fn new(pipe: Option<impl AsyncRead + Unpin + 'static>, closed: &CancellationToken) -> Self {
        Self {
            pipe: RefCell::new(pipe.map(|pipe| Box::new(pipe) as Reader)),
            closed: closed.child_token(),
        }
    }

    /// Returns the next bytes; `None` at the end.
    async fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let Some(mut pipe) = self.pipe.take() else {
            return Ok(None);
        };
        let mut piece = vec![0; READ_SIZE];
        let count = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Ok(None),
            count = pipe.read(&mut piece) => count?,
        };
        if count == 0 {
            return Ok(None);
        }
        piece.truncate(count);
        self.pipe.replace(Some(pipe));
        Ok(Some(piece))
    }

    fn close(&self) {
        self.closed.cancel();
        self.pipe.take();
    }
}

type Children = Rc<RefCell<HashMap<u32, Rc<Child>>>>;

/// Returns the exit code and the signal, of which one is null.
pub(super) fn ending(exit: Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
        Exit::Unknown => (None, Some(libc::SIGKILL)),
    }
}

/// Sends `signal` to a process, or to a group if `pid` is negative; signal 0 only checks that it exists.
pub(super) fn send_signal(pid: i32, signal: i32) -> io::Result<()> {
    let signal = match signal {
        0 => None,
        number => Some(Signal::try_from(number)?),
    };
    Ok(kill(Pid::from_raw(pid), signal)?)
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "child")?;
    let children = Children::default();
    let next = Cell::new(1_u32);

    let table = children.clone();
    let closed = host.closed().clone();
    group.set(
        "spawn",
        Func::from(move |ctx: Ctx<'js>, spec: String| {
            let spec =
                ChildSpec::parse(&spec).map_err(|syscall_error| syscall_error.throw(&ctx))?;
            let call = format!("spawn {}", spec.file);
            let fail = |error: io::Error| SyscallError::new(error, call.as_str()).throw(&ctx);
            let (launch, mut pipes) = spec
                .prepare()
                .map_err(|syscall_error| syscall_error.throw(&ctx))?;
            let extra_theirs = std::mem::take(&mut pipes.extra_theirs);
            let running =
                block_on(pinion_process::launch_with(launch, extra_theirs)).map_err(fail)?;
            let pid = running.pid();
            let id = next.replace(next.get() + 1);
            let stdin = pipes.stdin.map(|pipe| Box::new(pipe) as Box<_>);
            let mut inputs = vec![Input::new(stdin)];
            let mut outputs = vec![
                Output::new(pipes.stdout, &closed),
                Output::new(pipes.stderr, &closed),
            ];
            for pipe in pipes.extra {
                let (reader, writer) = pipe.map(UnixStream::into_split).unzip();
                inputs.push(Input::new(writer.map(|pipe| Box::new(pipe) as Box<_>)));
                outputs.push(Output::new(reader, &closed));
            }
            let child = Child {
                pid,
                running: RefCell::new(Some(running)),
                ended: Cell::new(false),
                inputs,
                outputs,
            };
            table.borrow_mut().insert(id, Rc::new(child));
            rquickjs::Result::Ok(vec![id as i32, pid])
        }),
    )?;

    let table = children.clone();
    let closed = host.closed().clone();
    group.set(
        "wait",
        Func::from(Async(move |id: u32| {
            let child = table.borrow().get(&id).cloned();
            let closed = closed.clone();
            async move {
                let Some(child) = child else {
                    return (None, None).into_list();
                };
                let Some(mut running) = child.running.take() else {
                    return (None, None).into_list();
                };
                // When the generation ends, no script waits for the child any more, so it ends too.
                let exit = tokio::select! {
                    biased;
                    exit = running.wait() => exit,
                    () = closed.cancelled() => Exit::Signal(libc::SIGKILL),
                };
                child.ended.set(true);
                ending(exit).into_list()
            }
        })),
    )?;

    let table = children.clone();
    group.set(
        "read",
        Func::from(Async(move |ctx: Ctx<'js>, id: u32, which: usize| {
            let child = table.borrow().get(&id).cloned();
            async move {
                let Some(child) = child else { return Ok(None) };
                let Some(output) = child.outputs.get(which) else {
                    return Ok(None);
                };
                match output.read().await {
                    Ok(piece) => Ok(piece.map(Bytes)),
                    Err(error) => Err(SyscallError::new(error, "read").throw(&ctx)),
                }
            }
        })),
    )?;

    let table = children.clone();
    group.set(
        "write",
        Func::from(Async(
            move |ctx: Ctx<'js>, id: u32, which: usize, bytes: Bytes| {
                let child = table.borrow().get(&id).cloned();
                async move {
                    let closed =
                        || SyscallError::new(io::Error::from_raw_os_error(libc::EPIPE), "write");
                    let Some(child) = child else {
                        return Err(closed().throw(&ctx));
                    };
                    let Some(input) = child.inputs.get(which) else {
                        return Err(closed().throw(&ctx));
                    };
                    let mut input = input.lock().await;
                    let Some(pipe) = input.as_mut() else {
                        return Err(closed().throw(&ctx));
                    };
                    let written = pipe.write_all(&bytes.0).await;
                    written.map_err(|error| SyscallError::new(error, "write").throw(&ctx))
                }
            },
        )),
    )?;

    let table = children.clone();
    group.set(
        "closeInput",
        Func::from(Async(move |id: u32, which: usize| {
            let child = table.borrow().get(&id).cloned();
            async move {
                let input = child.as_ref().and_then(|child| child.inputs.get(which));
                if let Some(input) = input
                    && let Some(mut pipe) = input.lock().await.take()
                {
                    // Closes the direction of a pipe that works in both.
                    let _ = pipe.shutdown().await;
                }
            }
        })),
    )?;

    let table = children.clone();
    group.set(
        "closeOutput",
        Func::from(move |id: u32, which: usize| {
            let child = table.borrow().get(&id).cloned();
            if let Some(output) = child.as_ref().and_then(|child| child.outputs.get(which)) {
                output.close();
            }
        }),
    )?;

    let table = children.clone();
    group.set(
        "kill",
        Func::from(move |ctx: Ctx<'js>, id: u32, signal: i32| {
            let child = table.borrow().get(&id).cloned();
            let Some(child) = child.filter(|child| !child.ended.get()) else {
                return Ok(false);
            };
            match send_signal(child.pid, signal) {
                Ok(()) => Ok(true),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
                Err(error) => Err(SyscallError::new(error, "kill").throw(&ctx)),
            }
        }),
    )?;

    let table = children;
    group.set(
        "forget",
        Func::from(move |id: u32| {
            table.borrow_mut().remove(&id);
        }),
    )?;

    let host = host.clone();
    group.set(
        "runSync",
        Func::from(
            move |ctx: Ctx<'js>, spec: String, input: Opt<Option<Bytes>>| {
                let spec =
                    ChildSpec::parse(&spec).map_err(|syscall_error| syscall_error.throw(&ctx))?;
                let call = format!("spawnSync {}", spec.file);
                let input = input.0.flatten().map(|input| input.0);
                let finished = run::run_to_completion(spec, input, host.time_left());
                host.waited();
                let finished =
                    finished.map_err(|error| SyscallError::new(error, call).throw(&ctx))?;
                let result = Object::new(ctx.clone())?;
                let (status, signal) = ending(finished.exit);
                result.set("pid", finished.pid)?;
                result.set("status", status)?;
                result.set("signal", signal)?;
                result.set("stdout", finished.outputs.0.map(Bytes))?;
                result.set("stderr", finished.outputs.1.map(Bytes))?;
                result.set("cut", finished.killed_for)?;
                rquickjs::Result::Ok(result)
            },
        ),
    )
}

trait IntoList {
    fn into_list(self) -> Vec<Option<i32>>;
}

impl IntoList for (Option<i32>, Option<i32>) {
    fn into_list(self) -> Vec<Option<i32>> {
        vec![self.0, self.1]
    }
}
