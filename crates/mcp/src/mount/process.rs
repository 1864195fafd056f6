//! A server that is a program: one message a line on its input and output, and whatever it likes on its error output.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinion_clip::State;
use pinion_clip::logs::{Level, Origin};
use pinion_jsonl::{InputLine, Splitter};
use pinion_status::{Code, Failure};
use pinion_tools::{Exit, Running};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::MountConfig;
use super::connection::{Asides, Broken};
use super::launch;
use crate::rpc::{self, Id, Incoming, Message};

/// The longest line a server may print.
const LINE: usize = 32 * 1024 * 1024;
/// Messages on their way to a server; who has more waits.
const AHEAD: usize = 64;
/// Lines in a row that make no sense before a server is ended.
const JUNK: usize = 100;
/// So much of a line that makes no sense goes into the log.
const SHOWN: usize = 2048;
/// How long the pipes of a program that is gone may stay open.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Reply = oneshot::Sender<Result<Box<RawValue>, rpc::Fault>>;

/// A running server. Its program ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    shared: Arc<Shared>,
    out: mpsc::Sender<Bytes>,
    stop: CancellationToken,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    asides: Arc<Asides>,
    pending: Mutex<Pending>,
    last_id: AtomicU64,
    /// Told when the program is gone.
    gone: CancellationToken,
}

#[derive(Debug, Default)]
struct Pending {
    replies: HashMap<u64, Reply>,
    /// Why there will be no more replies, and since when.
    over: Option<(Instant, Failure)>,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No more replies will come. Only the first reason counts.
    fn end(&self, failure: Failure) {
        let mut pending = self.pending();
        if pending.over.is_none() {
            pending.over = Some((Instant::now(), failure));
            pending.replies.clear();
        }
    }

    fn reason(&self) -> Failure {
        let over = self
            .pending()
            .over
            .as_ref()
            .map(|(_, failure)| failure.clone());
        over.unwrap_or_else(|| Failure::new(Code::Unavailable, "the MCP server is gone"))
    }
}

impl Process {
    pub(super) async fn start(config: &MountConfig, asides: Arc<Asides>) -> Result<Self, Failure> {
        let started = launch::start(config).await.map_err(|error| {
            let message = format!("its program cannot be started: {error}");
            Failure::new(Code::Unavailable, message)
        })?;
        let shared = Arc::new(Shared {
            asides,
            pending: Mutex::default(),
            last_id: AtomicU64::new(0),
            gone: CancellationToken::new(),
        });
        let (out, messages) = mpsc::channel(AHEAD);
        let stop = CancellationToken::new();
        let watch = Watch {
            shared: shared.clone(),
            running: started.running,
            reader: tokio::spawn(read(shared.clone(), started.stdout, out.downgrade())),
            writer: tokio::spawn(write(messages, started.stdin)),
            stderr: tokio::spawn(drain(shared.clone(), started.stderr)),
            ending: config.limits.ending,
        };
        tokio::spawn(watch.run(stop.clone()));
        Ok(Self {
            shared,
            out,
            _stop: stop.clone().drop_guard(),
            stop,
        })
    }

    pub(super) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Broken> {
        let id = self.shared.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, replied) = oneshot::channel();
        {
            let mut pending = self.shared.pending();
            if let Some((_, failure)) = &pending.over {
                return Err(Broken::Lost(failure.clone()));
            }
            pending.replies.insert(id, reply);
        }
        let wanted = Wanted { process: self, id };
        let message = rpc::request(&Id::Number(id.into()), method, Some(params));
        // If it cannot be sent, no reply will come, which is seen below.
        let _ = self.out.send(message).await;
        let outcome = replied.await;
        drop(wanted);
        match outcome {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(fault)) => Err(Broken::Answered(fault)),
            Err(_) => Err(Broken::Lost(self.shared.reason())),
        }
    }

    pub(super) async fn notify(&self, method: &str) {
        let _ = self.out.send(rpc::notification::<()>(method, None)).await;
    }

    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.shared.pending().over.as_ref().map(|(at, _)| *at)
    }

    pub(super) fn reason(&self) -> String {
        self.shared.reason().message.into_owned()
    }

    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.shared.gone.cancelled().await;
    }
}

/// Tells the server when a reply is no longer wanted.
struct Wanted<'a> {
    process: &'a Process,
    id: u64,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if self
            .process
            .shared
            .pending()
            .replies
            .remove(&self.id)
            .is_some()
        {
            let told = json!({ "requestId": self.id, "reason": "the caller went away" });
            let told = rpc::notification("notifications/cancelled", Some(&told));
            // A server that does not read need not be told.
            let _ = self.process.out.try_send(told);
        }
    }
}

async fn write(mut messages: mpsc::Receiver<Bytes>, mut pipe: Sender) {
    while let Some(message) = messages.recv().await {
        let mut line = message.to_vec();
        line.push(b'\n');
        if pipe.write_all(&line).await.is_err() {
            // It is ending; what becomes of requests is decided when it has.
            return;
        }
    }
}

/// Reads to the end, or to what cannot be read on from.
async fn read(shared: Arc<Shared>, mut pipe: Receiver, out: mpsc::WeakSender<Bytes>) {
    let mut splitter = Splitter::new(LINE);
    let mut buffer = vec![0; 64 * 1024];
    let mut lines = Vec::new();
    let mut junk = 0;
    loop {
        let count = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        splitter.feed(&buffer[..count], |line| lines.push(line));
        if splitter.is_too_long() {
            lines.push(InputLine::TooLong { length: LINE });
        }
        for line in lines.drain(..) {
            let InputLine::Complete(line) = line else {
                let message = format!("it was ended: it printed a line of more than {LINE} bytes");
                return shared.end(Failure::new(Code::ResourceExhausted, message));
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            junk = if take(&shared, &line, &out).await {
                0
            } else {
                junk + 1
            };
            if junk >= JUNK {
                let message = format!(
                    "it was ended: it printed {JUNK} lines in a row that are no messages. Only messages belong on stdout"
                );
                return shared.end(Failure::new(Code::Unavailable, message));
            }
        }
    }
}

/// Deals with a line; whether it makes sense.
async fn take(shared: &Shared, line: &[u8], out: &mpsc::WeakSender<Bytes>) -> bool {
    let messages = match rpc::read(line) {
        Incoming::One(message) => vec![message],
        Incoming::Batch(messages) => messages,
    };
    let mut made_sense = true;
    for message in messages {
        match message {
            Ok(Message::Response(response)) => {
                let id = match &response.id {
                    Some(Id::Number(id)) => id.as_u64(),
                    _ => None,
                };
                let reply = id.and_then(|id| shared.pending().replies.remove(&id));
                match (reply, response.outcome) {
                    (Some(reply), outcome) => drop(reply.send(outcome)),
                    // It could not read something of ours, and does not know what it was.
                    (None, Err(fault)) if response.id.is_none() => {
                        shared
                            .asides
                            .board
                            .log
                            .push(Level::Warn, Origin::Ipc, &fault.message);
                    }
                    (None, _) => {}
                }
            }
            Ok(message) => {
                let answer = shared.asides.take(&message);
                if let Some((answer, out)) = answer.zip(out.upgrade()) {
                    let _ = out.send(answer).await;
                }
            }
            Err(_) => {
                made_sense = false;
                let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
                shared
                    .asides
                    .board
                    .log
                    .push(Level::Warn, Origin::Stdout, &shown);
            }
        }
    }
    made_sense
}

/// The error output, line by line into the log.
async fn drain(shared: Arc<Shared>, mut pipe: Receiver) {
    let mut splitter = Splitter::new(pinion_clip::logs::MAX_LINE);
    let mut buffer = vec![0; 16 * 1024];
    let log = &shared.asides.board.log;
    let keep = |line: InputLine| match line {
        InputLine::Complete(line) => log.stderr(&line),
        InputLine::TooLong { length } => {
            let message = format!("a line of {length} bytes on stderr was left out");
            log.push(Level::Warn, Origin::Stderr, &message);
        }
    };
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => splitter.feed(&buffer[..count], keep),
        }
    }
    splitter.finish().into_iter().for_each(keep);
}

/// One program and all that belongs to it.
struct Watch {
    shared: Arc<Shared>,
    running: Running,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
    ending: Duration,
}

impl Watch {
    async fn run(mut self, stop: CancellationToken) {
        let exit = tokio::select! {
            exit = self.running.wait() => Some(exit),
            // Without its output no reply can come.
            _ = &mut self.reader => None,
            () = stop.cancelled() => None,
        };
        let wished = stop.is_cancelled();
        let exit = match exit {
            Some(exit) => {
                // Its last words may hold replies.
                if !self.reader.is_finished() {
                    let _ = tokio::time::timeout(LAST_WORDS, &mut self.reader).await;
                }
                exit
            }
            None => self.end().await,
        };
        self.running.kill();
        self.reader.abort();
        self.writer.abort();
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr).await;
        self.stderr.abort();
        self.close(exit, wished);
    }

    /// Makes it end: by closing its input, by asking, by force.
    async fn end(&mut self) -> Exit {
        self.writer.abort();
        if let Ok(exit) = tokio::time::timeout(self.ending, self.running.wait()).await {
            return exit;
        }
        // Not yet reaped as far as we know, so the number is still its own.
        let _ = kill(Pid::from_raw(-self.running.pid()), Signal::SIGTERM);
        if let Ok(exit) = tokio::time::timeout(self.ending, self.running.wait()).await {
            return exit;
        }
        self.running.kill();
        let exit = tokio::time::timeout(self.ending, self.running.wait()).await;
        exit.unwrap_or(Exit::Unknown)
    }

    fn close(self, exit: Exit, wished: bool) {
        let board = &self.shared.asides.board;
        let reason = match exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
            Exit::Unknown => "it went away".to_owned(),
        };
        let message = if wished {
            format!("MCP server \"{}\" was stopped", board.alias)
        } else {
            format!("MCP server \"{}\" ended: {reason}", board.alias)
        };
        self.shared
            .end(Failure::new(Code::Unavailable, message.clone()));
        let told = self.shared.reason().message.into_owned();
        if wished {
            board.set_status(State::Sleeping, String::new());
        } else {
            board.log.push(Level::Error, Origin::System, &told);
            board.set_status(State::Error, told);
        }
        self.shared.gone.cancel();
    }
}
