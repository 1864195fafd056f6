//! One call to a provider: what has come of it so far, and its one end.

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

/// What a command has said that said nothing.
const NOTHING: Bytes = Bytes::from_static(b"{}");

/// A call on its way.
#[derive(Debug)]
pub(super) struct Flow {
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
    /// A part of the answer has come.
    answered: bool,
    /// How long others have waited for it to be read.
    stalled: Duration,
    waker: Option<Waker>,
}

/// What became of a part of an answer.
#[derive(Debug)]
pub(super) enum Push {
    /// It waits to be read, or the call has ended and it is dropped.
    Done,
    /// Too much waits to be read already; here it is again.
    Full(Bytes),
}

impl Flow {
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

    pub(super) fn push(&self, chunk: Bytes, limits: &Limits) -> Push {
        let mut progress = self.progress();
        if progress.end.is_some() {
            return Push::Done;
        }
        let length = chunk.len();
        // One chunk always fits, however long it is: its message was within the limit.
        let full = progress.chunks.len() >= limits.chunks
            || !progress.chunks.is_empty() && progress.bytes + length > limits.chunk_bytes;
        if full {
            return Push::Full(chunk);
        }
        if progress.chunks.len() < limits.chunks / 2 {
            progress.stalled = Duration::ZERO;
        }
        progress.put(chunk);
        wake(progress);
        Push::Done
    }

    /// The end, with a last part of the answer, for which there is always room.
    pub(super) fn complete(&self, chunk: Bytes) {
        let mut progress = self.progress();
        if progress.end.is_some() {
            return;
        }
        match (chunk.is_empty(), progress.answered) {
            (false, _) => progress.put(chunk),
            (true, false) => progress.put(NOTHING),
            (true, true) => {}
        }
        progress.end = Some(Ok(()));
        wake(progress);
    }

    /// Ends the call. Only the first end counts.
    pub(super) fn fail(&self, error: CallError) {
        let mut progress = self.progress();
        if progress.end.is_none() {
            progress.end = Some(Err(error));
            wake(progress);
        }
    }

    /// How long others have waited for it to be read.
    pub(super) fn stalled(&self) -> Duration {
        self.progress().stalled
    }

    /// Others have waited for it.
    pub(super) fn stall(&self, time: Duration) {
        self.progress().stalled += time;
    }

    /// The next part of the answer, its end, or a promise to wake.
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

    /// Why nobody waits for it any more, in the words of `invoke_cancel`.
    pub(super) fn reason(&self) -> &'static str {
        match self.deadline {
            Some(deadline) if deadline <= Instant::now() => Code::DeadlineExceeded.as_str(),
            _ => Code::Canceled.as_str(),
        }
    }

    /// How long its caller will still wait, in milliseconds; 0 is for ever.
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

/// That a provider is no longer there.
pub(super) fn disconnected() -> Failure {
    Failure::new(Code::Unavailable, "provider disconnected")
}
