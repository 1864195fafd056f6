//! A server that is a program: one message per line on its standard input and output, and any text on its standard
//! error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pinion_clip::ClipState;
use pinion_clip::logs::{Level, Origin};
use pinion_jsonl::{InputLine, Splitter};
use pinion_process::{Child, ChildEvent, EndingLimits, Exit};
use pinion_status::{Code, Failure};
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
use super::connection::{RequestError, ServerMessages};
use super::launch;
use crate::rpc::{self, Id, Incoming, Message};

/// The longest line that a server may print, in bytes.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;
/// Unsent messages to a server from which senders wait.
const MAX_UNSENT: usize = 64;
/// Consecutive malformed lines after which a server is stopped.
const MAX_MALFORMED_LINES: usize = 100;
/// Bytes of a malformed line that go to the log.
const MAX_LOGGED_BYTES: usize = 2048;
/// Time for which the pipes of an exited program may stay open, so that its last output is read.
const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

type ReplySender = oneshot::Sender<Result<Box<RawValue>, rpc::Fault>>;

/// A running server. Its program ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    shared: Arc<ProcessShared>,
    out: mpsc::Sender<Bytes>,
    stop: CancellationToken,
    _stop: DropGuard,
}

#[derive(Debug)]
struct ProcessShared {
    server_messages: Arc<ServerMessages>,
    pending: Mutex<PendingReplies>,
    last_id: AtomicU64,
    /// Cancelled when the program has exited.
    exited: CancellationToken,
}

#[derive(Debug, Default)]
struct PendingReplies {
    replies: HashMap<u64, ReplySender>,
    /// The time after which no more replies will arrive, and the reason.
    closed: Option<(Instant, Failure)>,
}

impl ProcessShared {
    fn pending(&self) -> MutexGuard<'_, PendingReplies> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that no more replies will arrive. Only the first reason counts.
    fn end(&self, failure: Failure) {
        let mut pending = self.pending();
        if pending.closed.is_none() {
            pending.closed = Some((Instant::now(), failure));
            pending.replies.clear();
        }
    }

    fn reason(&self) -> Failure {
        let closed = self
            .pending()
            .closed
            .as_ref()
            .map(|(_, failure)| failure.clone());
        closed.unwrap_or_else(|| Failure::new(Code::Unavailable, "the MCP server is gone"))
    }
}

impl Process {
    pub(super) async fn start(
        config: &MountConfig,
        server_messages: Arc<ServerMessages>,
    ) -> Result<Self, Failure> {
        let (running, pipes) = launch::start(config).await.map_err(|error| {
            let message = format!("its program cannot be started: {error}");
            Failure::new(Code::Unavailable, message)
        })?;
        let shared = Arc::new(ProcessShared {
            server_messages,
            pending: Mutex::default(),
            last_id: AtomicU64::new(0),
            exited: CancellationToken::new(),
        });
        let (out, messages) = mpsc::channel(MAX_UNSENT);
        let stop = CancellationToken::new();
        let ending = config.limits.ending;
        let limits = EndingLimits {
            input_closed: ending,
            terminated: ending,
            killed: ending,
            exited: PIPE_DRAIN_TIMEOUT,
        };
        let watch = ProcessWatch {
            shared: shared.clone(),
            child: Child::new(running, limits),
            reader: tokio::spawn(read(shared.clone(), pipes.stdout, out.downgrade())),
            writer: tokio::spawn(write(messages, pipes.stdin)),
            stderr: tokio::spawn(drain(shared.clone(), pipes.stderr)),
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
    ) -> Result<Box<RawValue>, RequestError> {
        let id = self.shared.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, replied) = oneshot::channel();
        {
            let mut pending = self.shared.pending();
            if let Some((_, failure)) = &pending.closed {
                return Err(RequestError::Lost(failure.clone()));
            }
            pending.replies.insert(id, reply);
        }
        let wanted = CancelOnDrop { process: self, id };
        let message = rpc::request(&Id::Number(id.into()), method, Some(params));
        // If the message cannot be sent, no reply will arrive, which is handled below.
        let _ = self.out.send(message).await;
        let outcome = replied.await;
        drop(wanted);
        match outcome {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(fault)) => Err(RequestError::Answered(fault)),
            Err(_) => Err(RequestError::Lost(self.shared.reason())),
        }
    }

    pub(super) async fn notify(&self, method: &str) {
        let _ = self.out.send(rpc::notification::<()>(method, None)).await;
    }

    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.shared.pending().closed.as_ref().map(|(at, _)| *at)
    }

    pub(super) fn reason(&self) -> String {
        self.shared.reason().message.into_owned()
    }

    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.shared.exited.cancelled().await;
    }
}

/// Cancels the request at the server when its reply is no longer wanted.
struct CancelOnDrop<'a> {
    process: &'a Process,
    id: u64,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self
            .process
            .shared
            .pending()
            .replies
            .remove(&self.id)
            .is_some()
        {
            let notification = json!({ "requestId": self.id, "reason": "the caller went away" });
            let notification = rpc::notification("notifications/cancelled", Some(&notification));
            // A server that does not read need not receive the cancellation.
            let _ = self.process.out.try_send(notification);
        }
    }
}

async fn write(mut messages: mpsc::Receiver<Bytes>, mut pipe: Sender) {
    while let Some(message) = messages.recv().await {
        let mut line = message.to_vec();
        line.push(b'\n');
        if pipe.write_all(&line).await.is_err() {
            // The server is stopping, and its end decides the result of its requests.
            return;
        }
    }
}

/// Reads messages until the end of the output or a line that is too long.
async fn read(shared: Arc<ProcessShared>, mut pipe: Receiver, out: mpsc::WeakSender<Bytes>) {
    let mut splitter = Splitter::new(MAX_LINE_BYTES);
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
            lines.push(InputLine::TooLong {
                length: MAX_LINE_BYTES,
            });
        }
        for line in lines.drain(..) {
            let InputLine::Complete(line) = line else {
                let message = format!(
                    "it was stopped: it printed a line of more than {MAX_LINE_BYTES} bytes"
                );
                return shared.end(Failure::new(Code::ResourceExhausted, message));
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            junk = if handle_line(&shared, &line, &out).await {
                0
            } else {
                junk + 1
            };
            if junk >= MAX_MALFORMED_LINES {
                let message = format!(
                    "it was stopped: it printed {MAX_MALFORMED_LINES} lines in a row that are not messages. Only messages belong on stdout"
                );
                return shared.end(Failure::new(Code::Unavailable, message));
            }
        }
    }
}

/// Handles a line and reports whether it is a message.
async fn handle_line(shared: &ProcessShared, line: &[u8], out: &mpsc::WeakSender<Bytes>) -> bool {
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
                    // The server could not parse a message and so cannot name its id.
                    (None, Err(fault)) if response.id.is_none() => {
                        shared.server_messages.mount_status.log.push(
                            Level::Warn,
                            Origin::Ipc,
                            &fault.message,
                        );
                    }
                    (None, _) => {}
                }
            }
            Ok(message) => {
                let answer = shared.server_messages.handle(&message);
                if let Some((answer, out)) = answer.zip(out.upgrade()) {
                    let _ = out.send(answer).await;
                }
            }
            Err(_) => {
                made_sense = false;
                let shown = String::from_utf8_lossy(&line[..line.len().min(MAX_LOGGED_BYTES)]);
                shared
                    .server_messages
                    .mount_status
                    .log
                    .push(Level::Warn, Origin::Stdout, &shown);
            }
        }
    }
    made_sense
}

/// Copies the standard error to the log, line by line.
async fn drain(shared: Arc<ProcessShared>, mut pipe: Receiver) {
    let mut splitter = Splitter::new(pinion_clip::logs::MAX_LINE);
    let mut buffer = vec![0; 16 * 1024];
    let log = &shared.server_messages.mount_status.log;
    let keep = |line: InputLine| match line {
        InputLine::Complete(line) => log.stderr(&line),
        InputLine::TooLong { length } => {
            let message = format!("a line of {length} bytes on stderr was skipped");
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

/// Watches one program until it has exited.
struct ProcessWatch {
    shared: Arc<ProcessShared>,
    child: Child,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
}

impl ProcessWatch {
    async fn run(mut self, stop: CancellationToken) {
        let exit = tokio::select! {
            event = self.child.next() => match event {
                ChildEvent::Exited(exit) => Some(exit),
                ChildEvent::Step(_) => None,
            },
            // Without its output no reply can arrive.
            _ = &mut self.reader => None,
            () = stop.cancelled() => None,
        };
        let requested = stop.is_cancelled();
        let exit = match exit {
            Some(exit) => {
                // The last output may contain replies.
                if !self.reader.is_finished() {
                    let _ = tokio::time::timeout(PIPE_DRAIN_TIMEOUT, &mut self.reader).await;
                }
                exit
            }
            None => {
                // This closes its input.
                self.writer.abort();
                self.child.end().await
            }
        };
        self.child.kill_descendants();
        self.reader.abort();
        self.writer.abort();
        let _ = tokio::time::timeout(PIPE_DRAIN_TIMEOUT, &mut self.stderr).await;
        self.stderr.abort();
        self.close(exit, requested);
    }

    fn close(self, exit: Exit, requested: bool) {
        let mount_status = &self.shared.server_messages.mount_status;
        let message = if requested {
            format!("MCP server \"{}\" was stopped", mount_status.alias)
        } else {
            format!("MCP server \"{}\" ended: {exit}", mount_status.alias)
        };
        self.shared
            .end(Failure::new(Code::Unavailable, message.clone()));
        let reported = self.shared.reason().message.into_owned();
        if requested {
            mount_status.set_status(ClipState::Sleeping, String::new());
        } else {
            mount_status
                .log
                .push(Level::Error, Origin::System, &reported);
            mount_status.set_status(ClipState::Error, reported);
        }
        self.shared.exited.cancel();
    }
}
