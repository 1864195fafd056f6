//! Clips that are replaced by another version while calls run.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use pinion_clip::{CallError, ChunkStream, is_being_replaced};

use super::Installed;
use crate::endpoint::{Answers, HubCall};

/// The clip that answers instead of one that was replaced.
#[derive(Debug, Clone)]
pub(super) enum Successor {
    /// The clip was not replaced.
    None,
    /// The replacement is in progress.
    Coming,
    /// This clip replaced it.
    Here(Arc<Installed>),
    /// Neither the new version nor the earlier one could be loaded.
    Never,
}

/// The answer of a clip, or of its successor if the clip stopped accepting calls before it began with this one.
pub(super) struct Answer {
    stream: Option<ChunkStream>,
    passed_on: Option<Answers>,
    /// The arguments for the successor, until the first item has arrived.
    retry: Option<(Arc<Installed>, HubCall)>,
}

impl Answer {
    pub(super) fn new(stream: ChunkStream, clip: Arc<Installed>, call: HubCall) -> Self {
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
