//! Runs a child to completion while the script waits, for `spawnSync` and similar functions.

use std::io;
use std::time::Duration;

use pinion_process::Exit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use super::super::bytes::MAX_BYTES;
use super::super::duration_from_millis;
use super::send_signal;
use super::spec::ChildSpec;

const READ_SIZE: usize = 64 * 1024;

/// A child that has exited.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) pid: i32,
    pub(super) exit: Exit,
    /// The contents of stdout and stderr, where they were piped.
    pub(super) outputs: (Option<Vec<u8>>, Option<Vec<u8>>),
    /// The reason why the child was killed early: `ETIMEDOUT` or `ENOBUFS`.
    pub(super) killed_for: Option<&'static str>,
}

/// Runs a child on a thread with its own runtime, because the engine's thread is blocked by the waiting script.
///
/// The child and everything that it started end after `limit`.
pub(super) fn run_to_completion(
    spec: ChildSpec,
    input: Option<Vec<u8>>,
    limit: Duration,
) -> io::Result<Finished> {
    let worker = std::thread::Builder::new()
        .name("spawn-sync".into())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(run(spec, input, limit))
        })?;
    match worker.join() {
        Ok(finished) => finished,
        Err(_) => Err(io::Error::other("the thread that ran the child panicked")),
    }
}

async fn run(spec: ChildSpec, input: Option<Vec<u8>>, limit: Duration) -> io::Result<Finished> {
    let hard_deadline = Instant::now() + limit;
    let (launch, mut pipes) = spec
        .prepare()
        .map_err(|syscall_error| io::Error::other(format!("{syscall_error:?}")))?;
    let extra_theirs = std::mem::take(&mut pipes.extra_theirs);
    let mut running = pinion_process::launch_with(launch, extra_theirs).await?;
    let pid = running.pid();
    let most = spec
        .max_buffer
        .filter(|most| most.is_finite())
        .map_or(MAX_BYTES, |most| (most as usize).min(MAX_BYTES));
    let deadline = spec
        .timeout
        .filter(|timeout| *timeout > 0.0)
        .map(|timeout| Instant::now() + duration_from_millis(timeout));
    let signal = spec.kill_signal.unwrap_or(libc::SIGTERM);

    let (mut out, mut err) = (
        OutputReader::new(pipes.stdout, most),
        OutputReader::new(pipes.stderr, most),
    );
    let mut write_input = std::pin::pin!(write_input(pipes.stdin, input));
    let mut input_written = false;
    let mut exit = None;
    let mut killed_for = None;
    while exit.is_none() || out.open() || err.open() {
        tokio::select! {
            () = tokio::time::sleep_until(hard_deadline) => {
                killed_for = killed_for.or(Some("ETIMEDOUT"));
                running.kill();
                exit = exit.or(Some(Exit::Signal(libc::SIGKILL)));
                break;
            }
            () = sleep_until(deadline), if killed_for.is_none() => {
                killed_for = Some("ETIMEDOUT");
                let _ = send_signal(pid, signal);
                if exit.is_some() {
                    break;
                }
            }
            () = &mut write_input, if !input_written => input_written = true,
            () = out.next(), if out.open() => {}
            () = err.next(), if err.open() => {}
            ended = running.wait(), if exit.is_none() => {
                exit = Some(ended);
                // Background processes still hold the pipes; the timeout or size limit also ends the wait for them.
                if killed_for.is_some() {
                    break;
                }
            }
        }
        if killed_for.is_none() && (out.overflowed || err.overflowed) {
            killed_for = Some("ENOBUFS");
            let _ = send_signal(pid, signal);
        }
    }
    Ok(Finished {
        pid,
        exit: exit.unwrap_or(Exit::Unknown),
        outputs: (out.bytes, err.bytes),
        killed_for,
    })
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Writes the input to the child. A child that does not read its input is not an error.
async fn write_input(stdin: Option<Sender>, input: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        let _ = stdin.write_all(&input).await;
    }
}

struct OutputReader {
    pipe: Option<Receiver>,
    piece: Vec<u8>,
    bytes: Option<Vec<u8>>,
    limit: usize,
    overflowed: bool,
}

impl OutputReader {
    fn new(pipe: Option<Receiver>, limit: usize) -> Self {
        Self {
            bytes: pipe.is_some().then(Vec::new),
            pipe,
            piece: vec![0; READ_SIZE],
            limit,
            overflowed: false,
        }
    }

    fn open(&self) -> bool {
        self.pipe.is_some()
    }

    async fn next(&mut self) {
        let (Some(pipe), Some(bytes)) = (&mut self.pipe, &mut self.bytes) else {
            return;
        };
        match pipe.read(&mut self.piece).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(count) => {
                let room = self.limit.saturating_sub(bytes.len());
                bytes.extend_from_slice(&self.piece[..count.min(room)]);
                self.overflowed |= count > room;
            }
        }
    }
}
