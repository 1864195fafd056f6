//! Lines that wait to be written to a process, and the task that writes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::Notify;

use crate::shared::SharedClip;

/// Short lines are written together up to this number of bytes.
const BATCH: usize = 64 * 1024;

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    lines: Mutex<OutboxLines>,
    /// Wakes the writer.
    filled: Notify,
    /// Wakes the tasks that wait for room.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct OutboxLines {
    queue: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

impl Outbox {
    fn lines(&self) -> MutexGuard<'_, OutboxLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. After [`Outbox::close`] it is dropped.
    pub(crate) fn push(&self, line: Bytes) {
        let mut lines = self.lines();
        if !lines.closed {
            lines.bytes += line.len();
            lines.queue.push_back(line);
            drop(lines);
            self.filled.notify_one();
        }
    }

    /// Adds a line once fewer than `limit` bytes wait before it.
    pub(crate) async fn push_within(&self, line: Bytes, limit: usize) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            {
                let lines = self.lines();
                if lines.closed || lines.bytes < limit {
                    break;
                }
            }
            emptied.await;
        }
        self.push(line);
    }

    /// Returns the number of bytes that wait to be written.
    pub(crate) fn bytes(&self) -> usize {
        self.lines().bytes
    }

    /// Accepts no more lines. Waiting lines are written, then the stdin of the process is closed.
    pub(crate) fn close(&self) {
        self.lines().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }

    /// Drops all lines, because the process no longer reads.
    fn discard(&self) {
        let mut lines = self.lines();
        lines.closed = true;
        lines.queue.clear();
        lines.bytes = 0;
        drop(lines);
        self.emptied.notify_waiters();
    }

    /// Returns the next bytes to write; `None` when the outbox is closed and empty.
    async fn next(&self, batch: &mut Vec<u8>) -> Option<Bytes> {
        loop {
            {
                let mut lines = self.lines();
                if let Some(first) = lines.queue.pop_front() {
                    if lines.queue.is_empty() || first.len() >= BATCH {
                        return Some(first);
                    }
                    batch.clear();
                    batch.extend_from_slice(&first);
                    while let Some(next) = lines.queue.front()
                        && batch.len() + next.len() <= BATCH
                    {
                        batch.extend_from_slice(next);
                        lines.queue.pop_front();
                    }
                    return Some(Bytes::copy_from_slice(batch));
                }
                if lines.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    fn written(&self, count: usize) {
        let mut lines = self.lines();
        lines.bytes = lines.bytes.saturating_sub(count);
        drop(lines);
        self.emptied.notify_waiters();
    }
}

/// Writes lines until the outbox is closed or the process stops reading.
pub(super) async fn write(shared: Arc<SharedClip>, outbox: Arc<Outbox>, mut pipe: Sender) {
    let mut batch = Vec::new();
    while let Some(bytes) = outbox.next(&mut batch).await {
        if pipe.write_all(&bytes).await.is_err() {
            // The process is exiting; its calls are settled when it has.
            outbox.discard();
            if let Some(process) = shared.state().stage.process_mut() {
                process.close_stdin();
            }
            shared.work.notify_one();
            return;
        }
        outbox.written(bytes.len());
        let mut state = shared.state();
        if !state.waiting.is_empty() {
            shared.pump(&mut state);
        }
    }
}
