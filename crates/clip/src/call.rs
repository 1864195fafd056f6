//! One call of a clip: the request, the unread parts of its answer, and its end.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::limits::Limits;
use crate::output::Aggregate;
use crate::shared::SharedClip;
use crate::{ClipError, Code};

/// A request to call a command of a clip.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The name of the command, as the caller wrote it.
    pub command: String,
    /// The input as JSON text, passed on unchanged; empty means `{}`.
    pub input: Bytes,
    /// The time after which the call fails with `deadline_exceeded`.
    pub deadline: Option<Instant>,
    /// Cancels the call. Dropping the answer does the same.
    pub cancel: Option<CancellationToken>,
}

impl Invocation {
    /// Creates a call without a deadline.
    pub fn new(command: impl Into<String>, input: impl Into<Bytes>) -> Self {
        Self {
            command: command.into(),
            input: input.into(),
            deadline: None,
            cancel: None,
        }
    }
}

/// The failure of a call, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The clip answered with this error.
    Answered(ClipError),
    /// The answer is missing or incomplete: the clip could not be started, exited, or was too late, or the caller was
    /// too slow or cancelled the call.
    Unanswered(ClipError),
}

impl CallError {
    pub fn failure(&self) -> &ClipError {
        match self {
            Self::Answered(failure) | Self::Unanswered(failure) => failure,
        }
    }

    /// Returns the failure, whichever side reported it.
    pub fn into_failure(self) -> ClipError {
        match self {
            Self::Answered(failure) | Self::Unanswered(failure) => failure,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure().fmt(formatter)
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for ClipError {
    fn from(error: CallError) -> Self {
        error.into_failure()
    }
}

/// A call that was accepted, until its answer is read.
#[derive(Debug)]
pub(crate) struct ClipCall {
    pub(crate) id: Box<str>,
    /// The line that is written to the process.
    pub(crate) line: Bytes,
    pub(crate) deadline: Option<Instant>,
    limits: Arc<Limits>,
    /// Unread bytes of all answers of the clip.
    unread: Arc<AtomicUsize>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    chunks: VecDeque<Bytes>,
    bytes: usize,
    /// Set once.
    end: Option<Result<(), CallError>>,
    /// The process has sent a part of the answer.
    touched: bool,
    /// The call was sent a second time, or the only permission to do so was given.
    resent: bool,
    /// Total time that other calls have waited for this answer to be read.
    stalled: Duration,
    /// Set when a part was refused. The reader is woken when no more than this amount is unread.
    refused: Option<Amount>,
    waker: Option<Waker>,
}

/// An amount of unread parts and bytes.
#[derive(Debug, Clone, Copy)]
struct Amount {
    chunks: usize,
    bytes: usize,
}

impl Progress {
    /// Removes the next part. The flag is true if the reader waits for room and has it now.
    fn pop(&mut self) -> Option<(Bytes, bool)> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        let is_roomy =
            |most: &mut Amount| self.chunks.len() <= most.chunks && self.bytes <= most.bytes;
        Some((chunk, self.refused.take_if(is_roomy).is_some()))
    }
}

/// The result of adding a part to an answer.
#[derive(Debug)]
pub(crate) enum Push {
    /// The part was added.
    Taken,
    /// Too much is unread; the part is returned.
    Full(Bytes),
    /// The call has ended; the part is dropped.
    Over,
}

impl ClipCall {
    pub(crate) fn new(
        id: Box<str>,
        line: Vec<u8>,
        deadline: Option<Instant>,
        limits: Arc<Limits>,
        unread: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            id,
            line: line.into(),
            deadline,
            limits,
            unread,
            progress: Mutex::default(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part of the answer if there is room. A call that is alone with its process has less room, because parts
    /// that are read far ahead of the caller are no longer in the processor's caches when the caller reads them.
    pub(crate) fn push(&self, chunk: Bytes, is_alone: bool) -> Push {
        let limits = &self.limits;
        let most = if is_alone {
            limits.chunk_bytes.min(limits.alone_bytes)
        } else {
            limits.chunk_bytes
        };
        // Many callers that do not read must not fill the memory together.
        let most = if self.unread.load(Ordering::Relaxed) < limits.unread {
            most
        } else {
            most.min(limits.unread_share)
        };
        let mut progress = self.progress();
        progress.touched = true;
        if progress.end.is_some() {
            return Push::Over;
        }
        let length = chunk.len();
        // One chunk always fits, however long it is: its line was within the limit.
        let full = progress.chunks.len() >= limits.chunks
            || !progress.chunks.is_empty() && progress.bytes + length > most;
        if full {
            // With other calls waiting, any free room counts; a call that is alone continues when half of its room is
            // free.
            let share = if is_alone { 2 } else { 1 };
            progress.refused = Some(Amount {
                chunks: limits.chunks / share,
                bytes: most / share,
            });
            return Push::Full(chunk);
        }
        if progress.chunks.len() < limits.chunks / 2 {
            progress.stalled = Duration::ZERO;
        }
        progress.bytes += length;
        progress.chunks.push_back(chunk);
        self.unread.fetch_add(length, Ordering::Relaxed);
        wake(progress);
        Push::Taken
    }

    /// Returns how much longer other calls wait for this answer to be read.
    pub(crate) fn stall_left(&self) -> Duration {
        let stalled = self.progress().stalled;
        self.limits.slow_reader_time.saturating_sub(stalled)
    }

    /// Adds to the time that other calls have waited for this answer.
    pub(crate) fn stall(&self, time: Duration) {
        self.progress().stalled += time;
    }

    /// Adds the last part of an answer, for which there is always room, and ends the call.
    pub(crate) fn push_last(&self, chunk: Bytes) {
        let mut progress = self.progress();
        if progress.end.is_none() {
            progress.bytes += chunk.len();
            self.unread.fetch_add(chunk.len(), Ordering::Relaxed);
            progress.chunks.push_back(chunk);
            progress.end = Some(Ok(()));
            wake(progress);
        }
    }

    /// Ends the call. Only the first end takes effect.
    pub(crate) fn finish(&self, end: Result<(), CallError>) {
        let mut progress = self.progress();
        if progress.end.is_none() {
            progress.end = Some(end);
            wake(progress);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.progress().end.is_some()
    }

    /// Reports whether the process has sent a part of the answer.
    pub(crate) fn touched(&self) -> bool {
        self.progress().touched
    }

    /// Reports whether the call may be sent to another process. True at most once per call.
    pub(crate) fn may_resend(&self) -> bool {
        let mut progress = self.progress();
        let may = progress.end.is_none() && !progress.touched && !progress.resent;
        progress.resent = true;
        may
    }

    pub(crate) fn resent(&self) -> bool {
        self.progress().resent
    }
}

impl Drop for ClipCall {
    fn drop(&mut self) {
        let left = self.progress().bytes;
        self.unread.fetch_sub(left, Ordering::Relaxed);
    }
}

fn wake(mut progress: MutexGuard<'_, Progress>) {
    let waker = progress.waker.take();
    drop(progress);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The answer to a call: its outputs as JSON text, then the end. A failure is the last item.
///
/// A command that does not stream produces one output. Dropping the stream cancels the call.
#[derive(Debug)]
pub struct ChunkStream {
    call: Arc<ClipCall>,
    shared: Weak<SharedClip>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    over: bool,
}

impl ChunkStream {
    pub(crate) fn new(
        call: Arc<ClipCall>,
        shared: &Arc<SharedClip>,
        cancel: Option<CancellationToken>,
    ) -> Self {
        Self {
            call,
            shared: Arc::downgrade(shared),
            cancelled: cancel.map(|cancel| Box::pin(cancel.cancelled_owned())),
            over: false,
        }
    }

    /// Returns the id of the call, as the clip sees it.
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// Waits for the whole answer and joins it to one output; see [`Aggregate`].
    pub async fn output(mut self) -> Result<Bytes, CallError> {
        use futures_util::StreamExt;
        let mut aggregate = Aggregate::default();
        while let Some(chunk) = self.next().await {
            aggregate.push(chunk?).map_err(CallError::Unanswered)?;
        }
        Ok(aggregate.finish())
    }

    fn abandon(&self, reason: &str) {
        let error = ClipError::new(Code::Canceled, reason.to_owned());
        match self.shared.upgrade() {
            Some(shared) => shared.abandon(&self.call, error),
            None => self.call.finish(Err(CallError::Unanswered(error))),
        }
    }
}

impl Stream for ChunkStream {
    type Item = Result<Bytes, CallError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        if stream.over {
            return Poll::Ready(None);
        }
        if let Some(cancelled) = &mut stream.cancelled
            && cancelled.as_mut().poll(context).is_ready()
        {
            stream.cancelled = None;
            stream.abandon("the call was cancelled by its caller");
        }
        let mut progress = stream.call.progress();
        if let Some((chunk, is_roomy)) = progress.pop() {
            drop(progress);
            stream.call.unread.fetch_sub(chunk.len(), Ordering::Relaxed);
            if is_roomy && let Some(shared) = stream.shared.upgrade() {
                shared.room.notify_one();
            }
            return Poll::Ready(Some(Ok(chunk)));
        }
        let item = match &progress.end {
            Some(Ok(())) => None,
            Some(Err(error)) => Some(Err(error.clone())),
            None => {
                let known = progress.waker.as_ref();
                if !known.is_some_and(|waker| waker.will_wake(context.waker())) {
                    progress.waker = Some(context.waker().clone());
                }
                return Poll::Pending;
            }
        };
        drop(progress);
        stream.over = true;
        Poll::Ready(item)
    }
}

impl Drop for ChunkStream {
    fn drop(&mut self) {
        if !self.over {
            self.abandon("the caller went away");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a call until a part is refused. Returns the number of accepted parts, and the number of parts to read
    /// until the reader is woken.
    fn taken_and_read(is_alone: bool, length: usize) -> (usize, usize) {
        let call = ClipCall::new("1".into(), Vec::new(), None, Arc::default(), Arc::default());
        let chunk = Bytes::from(vec![b'x'; length]);
        let push = || matches!(call.push(chunk.clone(), is_alone), Push::Taken);
        let taken = (0..).take_while(|_| push()).count();
        let mut pops = (0..).map(|_| call.progress().pop().is_none_or(|(_, has_room)| has_room));
        (
            taken,
            pops.position(|has_room| has_room)
                .map_or(0, |pops| pops + 1),
        )
    }

    #[test]
    fn a_lone_call_has_less_room_and_continues_when_half_is_free() {
        assert_eq!(taken_and_read(true, 64 * 1024), (8, 4));
        assert_eq!(taken_and_read(true, 10), (256, 128));
        assert_eq!(taken_and_read(true, 32 * 1024 * 1024), (1, 1));
    }

    #[test]
    fn with_others_waiting_a_call_has_more_room_and_continues_when_any_is_free() {
        assert_eq!(taken_and_read(false, 64 * 1024), (128, 1));
        assert_eq!(taken_and_read(false, 10), (256, 1));
    }
    #[test]
    fn calls_have_less_room_while_much_of_the_clip_is_unread() {
        let (limits, unread) = (Arc::<Limits>::default(), Arc::<AtomicUsize>::default());
        let call = || ClipCall::new("1".into(), Vec::new(), None, limits.clone(), unread.clone());
        let fill = |call: &ClipCall| {
            let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
            let push = || matches!(call.push(chunk.clone(), false), Push::Taken);
            (0..).take_while(|_| push()).count()
        };
        let mut calls: Vec<ClipCall> = Vec::new();
        while unread.load(Ordering::Relaxed) < limits.unread {
            calls.push(call());
            assert_eq!(fill(&calls[calls.len() - 1]), 128);
        }
        assert_eq!(calls.len() * limits.chunk_bytes, limits.unread);
        assert_eq!(fill(&call()), 1, "one part always fits");
        calls.pop();
        assert_eq!(
            fill(&call()),
            128,
            "the room of a call is free when it is gone"
        );
        drop(calls);
        assert_eq!(unread.load(Ordering::Relaxed), 0);
    }
}
