//! Spans of the diagnostic log, and the events that end them. They hold names, counts and durations, never prompts,
//! arguments or output.
//!
//! Spans have the level `error`, so that they are open at every level of the log and a warning names its session.

use std::time::Instant;

use pinion_message::{AssistantMessage, Model};
use tracing::field::Empty;
use tracing::{Instrument, Span, error_span, info};

/// Returns the span of a session.
pub(crate) fn session(id: &str) -> Span {
    error_span!("session", id)
}

/// Returns the span of a prompt with everything that follows from it.
pub(crate) fn run() -> Span {
    error_span!("run")
}

/// Returns the span of a tool call with this id.
pub(crate) fn tool(call: &str) -> Span {
    error_span!("tool", call)
}

/// Records the time from `begun` until the first output of the current request.
pub(crate) fn first_output(begun: Instant) {
    Span::current().record("first_output_ms", begun.elapsed().as_millis() as u64);
}

/// Awaits one request to a model in a span of its own, in which the layer that sends it records status and retries.
pub(crate) async fn request<T>(
    model: &Model,
    purpose: &'static str,
    answer: impl Future<Output = T>,
    message: impl FnOnce(&T) -> Option<&AssistantMessage>,
) -> T {
    let (provider, id) = (model.provider.as_str(), model.id.as_str());
    let span = error_span!(
        "request",
        provider,
        model = id,
        status = Empty,
        retries = Empty,
        first_output_ms = Empty
    );
    let begun = Instant::now();
    let answer = answer.instrument(span.clone()).await;
    let _inside = span.enter();
    let duration_ms = begun.elapsed().as_millis() as u64;
    match message(&answer) {
        Some(message) => {
            let usage = &message.usage;
            info!(
                purpose,
                outcome = message.stop_reason.as_str(),
                duration_ms,
                input_tokens = usage.input,
                output_tokens = usage.output,
                cache_read_tokens = usage.cache_read,
                cache_write_tokens = usage.cache_write,
                cost_dollars = usage.cost.total,
                "request ended"
            );
        }
        None => info!(purpose, outcome = "failed", duration_ms, "request ended"),
    }
    answer
}
