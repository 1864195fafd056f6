//! The record of a clip call in the diagnostic log: alias, command, duration and outcome, never input or output.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use pinion_clip::CallError;
use tokio::time::Instant;
use tracing::{Span, error_span, info};

use crate::endpoint::Answers;

/// The answers of a call, logged when they end or are dropped.
struct LoggedAnswers {
    answers: Answers,
    span: Span,
    begun: Instant,
    /// The clip and the command exist.
    is_known: bool,
    /// The code of the end; `None` as long as outputs may follow.
    code: Option<&'static str>,
}

/// Returns the span of a call. `traceparent` is the caller's span in another program.
pub(crate) fn span(alias: &str, command: &str, traceparent: Option<&str>) -> Span {
    error_span!("clip_call", alias, command, traceparent)
}

/// Returns answers whose end is logged in `span`; without a log, the same answers.
pub(crate) fn logged(span: Span, answers: Answers, is_known: bool) -> Answers {
    if span.is_disabled() {
        return answers;
    }
    Box::pin(LoggedAnswers {
        answers,
        span,
        begun: Instant::now(),
        is_known,
        code: None,
    })
}

impl Stream for LoggedAnswers {
    type Item = Result<Bytes, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            answers,
            span,
            code,
            ..
        } = &mut *self;
        let item = span.in_scope(|| answers.as_mut().poll_next(context));
        match &item {
            Poll::Ready(Some(Err(error))) => *code = Some(error.failure().code()),
            Poll::Ready(None) => *code = code.or(Some("ok")),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        item
    }
}

impl Drop for LoggedAnswers {
    fn drop(&mut self) {
        let _inside = self.span.enter();
        let code = self.code.unwrap_or("dropped");
        let duration_ms = self.begun.elapsed().as_millis() as u64;
        info!(code, known = self.is_known, duration_ms, "clip call ended");
    }
}
