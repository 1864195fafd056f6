//! Reads the output of a process, decodes its lines, and hands them to the calls that wait for them.
//!
//! The reader never waits for one caller while others wait for the process. A caller that is alone may slow the process
//! down; with others behind it, a call whose answer is not read is cancelled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use nix::fcntl::{FcntlArg, fcntl};
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::lines::{Lines, TooLong};
use super::requests::{ClipRequest, Requests};
use crate::Code;
use crate::call::ClipCall;
use crate::codec::{self, Junk, Message};
use crate::logs::{Level, Origin};
use crate::manifest::Manifest;
use crate::shared::{CallOutcome, SharedClip, Shutdown};

/// The size of the pipe of a process that prints a lot, in bytes.
const LARGE_PIPE: i32 = 1024 * 1024;
/// Bytes of a line that is not a message that are written to the log.
const SHOWN: usize = 2048;

/// Reads the output of one process.
pub(super) struct Reader {
    shared: Arc<SharedClip>,
    requests: Requests,
    /// Consecutive lines that were not messages.
    junk: usize,
}

impl Reader {
    pub(super) fn new(shared: Arc<SharedClip>, requests: Requests) -> Self {
        Self {
            shared,
            requests,
            junk: 0,
        }
    }

    /// Reads to the end of the output, or to a line for which the process must end.
    pub(super) async fn read(mut self, mut pipe: Receiver) {
        let mut lines = Lines::new(self.shared.limits.line_in);
        loop {
            let count = match pipe.read_buf(lines.room()).await {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            while let Some(line) = lines.next() {
                if !self.line(line).await {
                    return;
                }
            }
            if Lines::is_filled_by(count) {
                if lines.enlarge() {
                    // If the system does not allow a larger pipe, the pipe stays as it is.
                    let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(LARGE_PIPE));
                }
            } else if lines.is_large() && self.shared.state().pending.is_empty() {
                lines.shrink();
            }
        }
        if let Some(line) = lines.finish() {
            self.line(line).await;
        }
    }

    /// Handles a line. Returns whether to read further.
    async fn line(&mut self, line: Result<Bytes, TooLong>) -> bool {
        let Ok(line) = line else {
            self.too_long();
            return false;
        };
        if line.trim_ascii().is_empty() {
            return true;
        }
        match codec::decode(&line) {
            Ok((message, line_dialect)) => {
                self.junk = 0;
                self.shared.note_dialect(line_dialect) && self.message(message, line.len()).await
            }
            Err(junk) => self.skip(&junk, &line),
        }
    }

    fn too_long(&self) {
        let message = format!(
            "clip \"{}\" was stopped: it printed a line of more than {} bytes",
            self.shared.alias(),
            self.shared.limits.line_in
        );
        self.shared
            .set_fatal(Code::ResourceExhausted, Shutdown::Immediate, message);
    }

    async fn message(&mut self, message: Message, length: usize) -> bool {
        let shared = &self.shared;
        if matches!(
            message,
            Message::Call(..) | Message::ListClips(..) | Message::Data(..)
        ) {
            shared.progressed();
        }
        match message {
            Message::Chunk(id, chunk) => self.chunk(&id, chunk).await,
            Message::Result(id, output) => shared.ended(&id, CallOutcome::Result(output)),
            Message::Done(id) => shared.ended(&id, CallOutcome::Result(None)),
            Message::Failed(id, failure) => shared.ended(&id, CallOutcome::Failed(failure)),
            Message::Call(request, call) => {
                self.requests.take(request, ClipRequest::Call(call), length)
            }
            Message::ListClips(request) => self.requests.take(request, ClipRequest::List, length),
            Message::Data(request, data) => {
                self.requests.take(request, ClipRequest::Data(data), length)
            }
            Message::Log(level, message) => shared.log.push(level, Origin::Ipc, &message),
            Message::Register(manifest) => return self.register(manifest),
        }
        true
    }

    fn register(&self, manifest: Option<Box<RawValue>>) -> bool {
        let shared = &self.shared;
        let violation = if shared.is_registered() {
            Some("it registered twice")
        } else if manifest.is_none() {
            Some("it registered without a manifest")
        } else {
            None
        };
        if let Some(violation) = violation {
            let message = format!("clip \"{}\" was stopped: {violation}", shared.alias());
            shared.set_fatal(Code::Unavailable, Shutdown::Immediate, message);
            return false;
        }
        let manifest = manifest.and_then(|manifest| serde_json::from_str(manifest.get()).ok());
        shared.set_manifest(Manifest::read(&manifest.unwrap_or_default()));
        shared.registered();
        true
    }

    async fn chunk(&self, id: &str, chunk: Bytes) {
        let mut chunk = chunk;
        loop {
            let room = self.shared.room.notified();
            let Some((call, back)) = self.shared.chunk(id, chunk) else {
                return;
            };
            chunk = back;
            self.shared.paused.store(true, Ordering::Relaxed);
            let may_retry = self.wait(&call, room).await;
            self.shared.paused.store(false, Ordering::Relaxed);
            if !may_retry {
                return self.shared.overflow(&call);
            }
        }
    }

    /// Waits until part of the answer to `call` may have been read: without limit if the call is alone, else for the
    /// rest of [`ClipCall::stall_left`]. Returns false if that time has passed.
    async fn wait(&self, call: &ClipCall, room: Notified<'_>) -> bool {
        if self.shared.is_alone(call) {
            room.await;
            return true;
        }
        let stall_left = call.stall_left();
        if stall_left.is_zero() {
            return false;
        }
        let since = Instant::now();
        let _ = tokio::time::timeout(stall_left, room).await;
        call.stall(since.elapsed());
        true
    }

    fn skip(&mut self, junk: &Junk, line: &[u8]) -> bool {
        self.junk += 1;
        let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
        let message = match junk {
            Junk::NotJson => shown.into_owned(),
            Junk::UnknownType(kind) => format!("unknown message type \"{kind}\": {shown}"),
            Junk::NoId => format!("message without an id: {shown}"),
        };
        self.shared.log.push(Level::Warn, Origin::Stdout, &message);
        if self.junk < self.shared.limits.junk {
            return true;
        }
        let message = format!(
            "clip \"{}\" was stopped: it printed {} lines in a row that are not messages. Print only messages on stdout, and everything else on stderr",
            self.shared.alias(),
            self.junk
        );
        self.shared
            .set_fatal(Code::Unavailable, Shutdown::Immediate, message);
        false
    }
}
