//! The facts in an event about its answer, for the metadata.

use crate::events::ChatEvent;
use crate::pb::{self, Text};

#[derive(Debug, Default)]
pub(super) struct Facts {
    pub correlation: Option<pb::CorrelationInfo>,
    pub stop_reason: Text,
    pub duration_ms: Option<i64>,
    pub error: Text,
}

pub(super) fn facts(event: &ChatEvent) -> Facts {
    let correlation = |correlation: &Option<pb::CorrelationInfo>| Facts {
        correlation: correlation.clone(),
        ..Facts::default()
    };
    match event {
        ChatEvent::Patch(patch) => correlation(&patch.stream.facts.correlation),
        ChatEvent::ProviderCallStarted(event) => correlation(&event.correlation),
        ChatEvent::ProviderCallMetadataUpdated(event) => Facts {
            stop_reason: event.stop_reason.clone(),
            ..correlation(&event.correlation)
        },
        ChatEvent::ProviderCallFinished(event) => Facts {
            stop_reason: event.stop_reason.clone(),
            duration_ms: event.duration_ms,
            ..correlation(&event.correlation)
        },
        ChatEvent::TextSegmentStarted(event) => correlation(&event.correlation),
        ChatEvent::TextSegmentFinished(event) => Facts {
            stop_reason: event.finish_reason.clone(),
            ..correlation(&event.correlation)
        },
        ChatEvent::ReasoningSegmentStarted(event) => correlation(&event.correlation),
        ChatEvent::ReasoningSegmentFinished(event) => correlation(&event.correlation),
        ChatEvent::ToolCallStarted(event) => correlation(&event.correlation),
        ChatEvent::ToolCallRequested(event) => correlation(&event.correlation),
        ChatEvent::ToolExecutionStarted(event) => correlation(&event.correlation),
        ChatEvent::ToolResultReady(event) => correlation(&event.correlation),
        ChatEvent::ToolCallFinished(event) => correlation(&event.correlation),
        ChatEvent::RunFailed(event) => Facts {
            error: event.error.clone(),
            ..correlation(&event.correlation)
        },
        _ => Facts::default(),
    }
}
