//! Running a child to its end while the script waits, for `spawnSync` and its relatives.

use std::io;
use std::time::Duration;

use pinion_process::Exit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use super::super::bytes::LARGEST;
use super::super::span;
use super::send_signal;
use super::spec::Spec;

const PIECE: usize = 64 * 1024;

/// A child that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) pid: i32,
    pub(super) exit: Exit,
    /// Its output and its error output, where they were piped.
    pub(super) outputs: (Option<Vec<u8>>, Option<Vec<u8>>),
    /// Why it was killed before its time: `ETIMEDOUT` or `ENOBUFS`.
    pub(super) cut: Option<&'static str>,
}

/// Runs it on a thread with a runtime of its own, because this one's is busy with the script that waits.
///
/// The child ends after `limit`, together with everything it started.
pub(super) fn to_the_end(
    spec: Spec,
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
        Err(_) => Err(io::Error::other("the thread that ran the child broke")),
    }
}

async fn run(spec: Spec, input: Option<Vec<u8>>, limit: Duration) -> io::Result<Finished> {
    let last = Instant::now() + limit;
    let (launch, pipes) = spec
        .prepare()
        .map_err(|fault| io::Error::other(format!("{fault:?}")))?;
    let mut running = pinion_process::launch(launch).await?;
    let pid = running.pid();
    let (stdin, stdout, stderr) = pipes.open()?;
    let most = spec
        .max_buffer
        .filter(|most| most.is_finite())
        .map_or(LARGEST, |most| (most as usize).min(LARGEST));
    let deadline = spec
        .timeout
        .filter(|timeout| *timeout > 0.0)
        .map(|timeout| Instant::now() + span(timeout));
    let signal = spec.kill_signal.unwrap_or(libc::SIGTERM);

    let (mut out, mut err) = (Gather::new(stdout, most), Gather::new(stderr, most));
    let mut feed = std::pin::pin!(feed(stdin, input));
    let mut fed = false;
    let mut exit = None;
    let mut cut = None;
    while exit.is_none() || out.open() || err.open() {
        tokio::select! {
            () = tokio::time::sleep_until(last) => {
                cut = cut.or(Some("ETIMEDOUT"));
                running.kill();
                exit = exit.or(Some(Exit::Signal(libc::SIGKILL)));
                break;
            }
            () = at(deadline), if cut.is_none() => {
                cut = Some("ETIMEDOUT");
                let _ = send_signal(pid, signal);
                if exit.is_some() {
                    break;
                }
            }
            () = &mut feed, if !fed => fed = true,
            () = out.next(), if out.open() => {}
            () = err.next(), if err.open() => {}
            ended = running.wait(), if exit.is_none() => {
                exit = Some(ended);
                // What it left behind holds the pipes; nobody may wait for that longer than was said.
                if cut.is_some() {
                    break;
                }
            }
        }
        if cut.is_none() && (out.overflowed || err.overflowed) {
            cut = Some("ENOBUFS");
            let _ = send_signal(pid, signal);
        }
    }
    Ok(Finished {
        pid,
        exit: exit.unwrap_or(Exit::Unknown),
        outputs: (out.bytes, err.bytes),
        cut,
    })
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A child that does not read what it is given is its own business.
async fn feed(stdin: Option<Sender>, input: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        let _ = stdin.write_all(&input).await;
    }
}

struct Gather {
    pipe: Option<Receiver>,
    piece: Vec<u8>,
    bytes: Option<Vec<u8>>,
    limit: usize,
    overflowed: bool,
}

impl Gather {
    fn new(pipe: Option<Receiver>, limit: usize) -> Self {
        Self {
            bytes: pipe.is_some().then(Vec::new),
            pipe,
            piece: vec![0; PIECE],
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
