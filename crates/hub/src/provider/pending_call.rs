//! One running call to a provider: the parts of the answer that have arrived, and its single end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use pinion_clip::CallError;
use pinion_proto::Text;
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use crate::limits::Limits;

/// The output of a command that answers with nothing.
const EMPTY_OBJECT: Bytes = Bytes::from_static(b"{}");

/// A call that a provider is answering.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) id: Text,
    pub(super) deadline: Option<Instant>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Set once.
    end: Option<Result<(), CallError>>,
    /// A part of the answer has arrived.
    answered: bool,
    /// The time that other calls have waited for this one to be read.
    stalled: Duration,
    waker: Option<Waker>,
}

/// The result of adding a part of an answer.
#[derive(Debug)]
pub(super) enum PushResult {
    /// The part is queued, or dropped because the call has ended.
    Done,
    /// The queue is full; contains the part.
    Full(Bytes),
}

impl PendingCall {
    pub(super) fn new(deadline: Option<Instant>) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string().into(),
            deadline,
            progress: Mutex::default(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, chunk: Bytes, limits: &Limits) -> PushResult {
        let mut progress = self.progress();
        if progress.end.is_some() {
            return PushResult::Done;
        }
        let length = chunk.len();
        // One chunk always fits, whatever its length: its message was within the limit.
        let full = progress.chunks.len() >= limits.chunks
            || !progress.chunks.is_empty() && progress.bytes + length > limits.chunk_bytes;
        if full {
            return PushResult::Full(chunk);
        }
        if progress.chunks.len() < limits.chunks / 2 {
            progress.stalled = Duration::ZERO;
        }
        progress.put(chunk);
        wake(progress);
        PushResult::Done
    }

    /// Ends the call with a last part, for which there is always room.
    pub(super) fn complete(&self, chunk: Bytes) {
        let mut progress = self.progress();
        if progress.end.is_some() {
            return;
        }
        match (chunk.is_empty(), progress.answered) {
            (false, _) => progress.put(chunk),
            (true, false) => progress.put(EMPTY_OBJECT),
            (true, true) => {}
        }
        progress.end = Some(Ok(()));
        wake(progress);
    }

    /// Ends the call with a failure. Only the first end counts.
    pub(super) fn fail(&self, error: CallError) {
        let mut progress = self.progress();
        if progress.end.is_none() {
            progress.end = Some(Err(error));
            wake(progress);
        }
    }

    pub(super) fn stalled(&self) -> Duration {
        self.progress().stalled
    }

    /// Adds to the time that other calls have waited for this one.
    pub(super) fn add_stalled(&self, time: Duration) {
        self.progress().stalled += time;
    }

    /// Polls for the next part of the answer or its end.
    pub(super) fn poll(&self, context: &Context<'_>) -> Poll<Option<Result<Bytes, CallError>>> {
        let mut progress = self.progress();
        if let Some(chunk) = progress.chunks.pop_front() {
            progress.bytes -= chunk.len();
            return Poll::Ready(Some(Ok(chunk)));
        }
        match &progress.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error.clone()))),
            None => {
                let known = progress.waker.as_ref();
                if !known.is_some_and(|waker| waker.will_wake(context.waker())) {
                    progress.waker = Some(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// The `reason` of the `invoke_cancel` message: `deadline_exceeded` if the deadline has passed, `canceled`
    /// otherwise.
    pub(super) fn reason(&self) -> &'static str {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Code::DeadlineExceeded.as_str(),
            _ => Code::Canceled.as_str(),
        }
    }

    /// The remaining time of the caller in milliseconds, at least 1; 0 if the call has no deadline.
    pub(super) fn time_left(&self) -> i64 {
        self.deadline.map_or(0, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            i64::try_from(left.as_millis()).unwrap_or(i64::MAX).max(1)
        })
    }
}

impl Progress {
    fn put(&mut self, chunk: Bytes) {
        self.answered = true;
        self.bytes += chunk.len();
        self.chunks.push_back(chunk);
    }
}

fn wake(mut progress: MutexGuard<'_, Progress>) {
    let waker = progress.waker.take();
    drop(progress);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The failure of calls whose provider has disconnected.
pub(super) fn disconnected() -> Failure {
    Failure::new(Code::Unavailable, "provider disconnected")
}
