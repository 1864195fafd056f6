//! Clips that are replaced by another version while they are called.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use pinion_clip::{CallError, ChunkStream, is_being_replaced};

use super::Installed;
use crate::endpoint::{Answers, Call};

/// Who has taken the place of a clip that was replaced.
#[derive(Debug, Clone)]
pub(super) enum Successor {
    /// It was not replaced.
    None,
    /// It is being replaced.
    Coming,
    /// It was replaced by this one.
    Here(Arc<Installed>),
    /// There is none: neither the new version nor the one before can be run.
    Never,
}

/// The answer of a clip, or of its successor if the clip made way before it had begun with the call.
pub(super) struct Answer {
    stream: Option<ChunkStream>,
    passed_on: Option<Answers>,
    /// What the successor needs, until something has come.
    retry: Option<(Arc<Installed>, Call)>,
}

impl Answer {
    pub(super) fn new(stream: ChunkStream, clip: Arc<Installed>, call: Call) -> Self {
        Self {
            stream: Some(stream),
            passed_on: None,
            retry: Some((clip, call)),
        }
    }
}

impl Stream for Answer {
    type Item = Result<Bytes, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = &mut *self;
        if let Some(stream) = &mut answer.stream {
            let item = ready!(Pin::new(stream).poll_next(context));
            match (&item, answer.retry.take()) {
                (Some(Err(CallError::Unanswered(failure))), Some((clip, call)))
                    if is_being_replaced(failure) =>
                {
                    answer.stream = None;
                    answer.passed_on = Some(clip.pass_on(call));
                }
                _ => return Poll::Ready(item),
            }
        }
        match &mut answer.passed_on {
            Some(passed_on) => passed_on.as_mut().poll_next(context),
            None => Poll::Ready(None),
        }
    }
}
