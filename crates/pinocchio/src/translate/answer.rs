//! A growing answer: its request, its segments and its calls.

mod segment;

use std::sync::Arc;
use std::time::Instant;

use pinion_message::{AssistantMessage, Block, StopReason, Usage};

use super::RunStart;
use super::naming::{Naming, Part, RequestNames};
use crate::events::ChatEvent;
use crate::family::{Family, Metadata, Moment, ProviderCalls};
use crate::ids;
use crate::patch::{Patch, PatchKind, PatchMode, PatchStream, SegmentFacts};
use crate::pb::{self, Text};
use segment::{Segment, SegmentState};

#[derive(Debug)]
pub(super) struct Answer {
    pub family: &'static Family,
    /// The correlation of the request.
    pub correlation: pb::CorrelationInfo,
    /// The token counts so far.
    pub usage: Usage,
    names: RequestNames,
    /// The time of the request.
    asked: Instant,
    /// By position in the answer.
    segments: Vec<(usize, Segment)>,
}

impl Answer {
    pub fn begin(message: &AssistantMessage, naming: &mut Naming, asked: Instant) -> Self {
        let family = Family::of(&message.api);
        let names = naming.request(message, family);
        Self {
            family,
            correlation: names.correlation.clone(),
            usage: message.usage,
            names,
            asked,
            segments: Vec::new(),
        }
    }

    /// Starts a block.
    pub fn open(
        &mut self,
        index: usize,
        block: &Block,
        start: &RunStart,
        naming: &mut Naming,
        out: &mut Vec<ChatEvent>,
    ) {
        if !self.is_unannounced(index) {
            return;
        }
        match block {
            Block::Text(text) => {
                let segment = self.named(Part::Text, index, naming);
                let message_id = ids::text_segment(&start.root, &segment).into();
                self.open_text(index, message_id, self.at(segment), start, out);
                self.grow(index, &text.text.as_str().into(), out);
            }
            Block::Thinking(thinking) if thinking.redacted != Some(true) => {
                let segment = self.named(Part::Thinking, index, naming);
                self.open_thinking(index, segment, start, out);
                self.grow(index, &thinking.thinking.as_str().into(), out);
            }
            Block::ToolCall(call) => {
                let segment = self.named(Part::Call(&call.id), index, naming);
                let call = (Text::new(&call.id), Text::new(&call.name));
                self.open_call(index, call, segment, start, out);
            }
            Block::Thinking(_) | Block::Image { .. } => {}
        }
    }

    fn named(&self, part: Part<'_>, index: usize, naming: &mut Naming) -> Text {
        let name = naming.segment(&self.names, self.family.naming, part, index);
        name.into()
    }

    fn at(&self, segment_id: Text) -> pb::CorrelationInfo {
        pb::CorrelationInfo {
            segment_id,
            ..self.correlation.clone()
        }
    }

    fn open_text(
        &mut self,
        index: usize,
        message_id: Text,
        correlation: pb::CorrelationInfo,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        out.push(ChatEvent::TextSegmentStarted(pb::ChatTextSegmentStarted {
            message_id: message_id.clone(),
            role: "assistant".into(),
            prompt: start.prompt.clone(),
            status: "streaming".into(),
            streaming: true,
            correlation: Some(correlation.clone()),
        }));
        let facts = SegmentFacts {
            message_id,
            role: "assistant".into(),
            prompt: start.prompt.clone(),
            correlation: Some(correlation),
            ..SegmentFacts::default()
        };
        self.push(index, PatchKind::Text, facts, Text::default());
    }

    fn open_thinking(
        &mut self,
        index: usize,
        segment: Text,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        let message_id = Text::from(ids::thinking_segment(&start.root, &segment));
        let correlation = self.at(segment);
        out.push(ChatEvent::ReasoningSegmentStarted(
            pb::ChatReasoningSegmentStarted {
                message_id: message_id.clone(),
                parent_message_id: start.root.clone(),
                role: "thinking".into(),
                status: "streaming".into(),
                streaming: true,
                source: self.family.thinking.into(),
                correlation: Some(correlation.clone()),
            },
        ));
        let facts = SegmentFacts {
            message_id,
            parent_message_id: start.root.clone(),
            role: "thinking".into(),
            source: self.family.thinking.into(),
            correlation: Some(correlation),
            ..SegmentFacts::default()
        };
        self.push(index, PatchKind::Thinking, facts, Text::default());
    }

    fn open_call(
        &mut self,
        index: usize,
        (call_id, name): (Text, Text),
        segment: Text,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        let correlation = pb::CorrelationInfo {
            tool_call_id: call_id.clone(),
            ..self.at(segment)
        };
        out.push(ChatEvent::ToolCallStarted(pb::ChatToolCallStarted {
            message_id: start.root.clone(),
            tool_call_id: call_id.clone(),
            tool_name: name.clone(),
            status: "pending".into(),
            correlation: Some(correlation.clone()),
            ..Default::default()
        }));
        let facts = SegmentFacts {
            message_id: start.root.clone(),
            tool_call_id: call_id.clone(),
            correlation: Some(correlation),
            ..SegmentFacts::default()
        };
        self.push(index, PatchKind::Arguments, facts, name);
    }

    fn push(&mut self, index: usize, kind: PatchKind, facts: SegmentFacts, tool_name: Text) {
        let segment = Segment {
            stream: Arc::new(PatchStream::new(kind, facts)),
            text: String::new(),
            tool_name,
            patches: 0,
            state: SegmentState::Growing,
        };
        self.segments.push((index, segment));
    }

    fn segment(&mut self, index: usize) -> Option<&mut Segment> {
        let mut newest_first = self.segments.iter_mut().rev();
        newest_first
            .find(|(at, _)| *at == index)
            .map(|(_, segment)| segment)
    }

    /// Reports whether no event of the block at `index` was sent yet.
    pub fn is_unannounced(&self, index: usize) -> bool {
        self.segments.iter().all(|(at, _)| *at != index)
    }

    /// Returns the correlation of the block at `index`.
    pub fn correlation_of(&mut self, index: usize) -> Option<pb::CorrelationInfo> {
        self.segment(index)?.stream.facts.correlation.clone()
    }

    /// Adds text to a block.
    pub fn grow(&mut self, index: usize, delta: &Arc<str>, out: &mut Vec<ChatEvent>) {
        let numbered = self.family.numbered;
        let Some(segment) = self.segment(index) else {
            return;
        };
        if delta.is_empty() || segment.state != SegmentState::Growing {
            return;
        }
        segment.patches += 1;
        let is_numbered = numbered || segment.stream.kind == PatchKind::Arguments;
        out.push(ChatEvent::Patch(Patch {
            stream: Arc::clone(&segment.stream),
            sequence: if is_numbered { segment.patches } else { 0 },
            offset: segment.text.len() as u64,
            text: Arc::clone(delta),
            mode: PatchMode::Append,
        }));
        segment.text.push_str(delta);
    }

    /// Completes a block.
    pub fn close(
        &mut self,
        index: usize,
        block: &Block,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        let family = self.family;
        let Some(segment) = self.segment(index) else {
            return;
        };
        if segment.state != SegmentState::Growing {
            return;
        }
        segment.complete(block);
        let when = match segment.stream.kind {
            PatchKind::Arguments => family.calls_requested,
            PatchKind::Text | PatchKind::Thinking => family.segments_end,
        };
        if when == Moment::BlockEnd {
            let reason = family.segment_reason.unwrap_or("stop");
            segment.report("finished", reason, start, out);
        }
    }

    /// Reports a block that came only with the complete answer.
    pub fn report_whole(
        &mut self,
        index: usize,
        block: &Block,
        start: &RunStart,
        naming: &mut Naming,
        out: &mut Vec<ChatEvent>,
    ) {
        match block {
            Block::Text(text) if !text.text.trim().is_empty() => {
                let number = naming.unnamed().to_string();
                let message_id = Text::from(ids::text_segment(&start.root, &number));
                let correlation = pb::CorrelationInfo {
                    session_id: start.session_id.clone(),
                    run_id: start.root.clone(),
                    segment_id: message_id.clone(),
                    ..Default::default()
                };
                self.open_text(index, message_id, correlation, start, out);
            }
            Block::Thinking(thinking)
                if thinking.redacted != Some(true) && !thinking.thinking.trim().is_empty() =>
            {
                let segment = self.named(Part::Thinking, index, naming);
                self.open_thinking(index, segment, start, out);
            }
            Block::ToolCall(_) => {
                self.open(index, block, start, naming, out);
                if let Some(segment) = self.segment(index) {
                    segment.complete(block);
                }
                return;
            }
            _ => return,
        }
        if let Some(segment) = self.segment(index) {
            segment.complete(block);
            segment.report("finished", "stop", start, out);
        }
    }

    /// Records the end of the answer, and returns whether it failed or was stopped.
    pub fn record_end(&mut self, message: &AssistantMessage) -> bool {
        self.usage = message.usage;
        matches!(message.stop_reason, StopReason::Error | StopReason::Aborted)
    }

    /// Reports the natural end of the answer.
    pub fn finish(
        &mut self,
        message: &AssistantMessage,
        start: &RunStart,
        at: Instant,
        out: &mut Vec<ChatEvent>,
    ) {
        let family = self.family;
        let stop = family.stop_word(message.stop_reason);
        let reason = family.segment_reason.unwrap_or(stop);
        for (index, segment) in &mut self.segments {
            if let (SegmentState::Growing, Some(block)) =
                (segment.state, message.content.get(*index))
            {
                segment.complete(block);
            }
        }
        if family.segments_end == Moment::BlockEnd {
            self.report_segments(reason, start, out);
        }
        self.report_metadata(stop, out);
        self.report_segments(reason, start, out);
        self.report_kind(PatchKind::Arguments, reason, start, out);
        let mut finished = self.call_finished(message.stop_reason, at);
        finished.has_tool_calls = message.tool_calls().next().is_some();
        self.report_call(finished, out);
    }

    fn report_segments(
        &mut self,
        reason: &'static str,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        self.report_kind(PatchKind::Thinking, reason, start, out);
        self.report_kind(PatchKind::Text, reason, start, out);
    }

    fn report_kind(
        &mut self,
        kind: PatchKind,
        reason: &'static str,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        for (_, segment) in &mut self.segments {
            if segment.stream.kind == kind && segment.state != SegmentState::Told {
                segment.report("finished", reason, start, out);
            }
        }
    }

    fn report_metadata(&self, stop: &'static str, out: &mut Vec<ChatEvent>) {
        if self.family.calls == ProviderCalls::Silent {
            return;
        }
        let usage = self.family.usage(&self.usage);
        let mut report = |stop: &'static str, usage: Option<pb::UsageInfo>| {
            out.push(ChatEvent::ProviderCallMetadataUpdated(
                pb::ChatProviderCallMetadataUpdated {
                    stop_reason: stop.into(),
                    usage,
                    correlation: Some(self.correlation.clone()),
                },
            ));
        };
        match self.family.metadata {
            Metadata::Nothing => {}
            Metadata::Together => report(stop, usage),
            Metadata::Apart => {
                report(stop, None);
                if usage.is_some() {
                    report("", usage);
                }
            }
        }
    }

    /// Closes the open segments, because nothing more will follow.
    pub fn interrupt(
        &mut self,
        status: &'static str,
        reason: &'static str,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        for kind in [PatchKind::Thinking, PatchKind::Text] {
            for (_, segment) in &mut self.segments {
                if segment.stream.kind != kind || segment.state == SegmentState::Told {
                    continue;
                }
                segment.report(status, reason, start, out);
            }
        }
    }

    /// Reports the end of a request that failed or was stopped.
    pub fn report_failure(&mut self, reason: StopReason, at: Instant, out: &mut Vec<ChatEvent>) {
        let finished = self.call_finished(reason, at);
        self.report_call(finished, out);
    }

    fn call_finished(&self, reason: StopReason, at: Instant) -> pb::ChatProviderCallFinished {
        let taken = at.saturating_duration_since(self.asked).as_millis();
        pb::ChatProviderCallFinished {
            stop_reason: self.family.stop_word(reason).into(),
            finish_class: self.family.class(reason).into(),
            usage: self.family.usage(&self.usage),
            duration_ms: Some(i64::try_from(taken).unwrap_or(i64::MAX)),
            has_tool_calls: false,
            correlation: Some(self.correlation.clone()),
        }
    }

    fn report_call(&self, finished: pb::ChatProviderCallFinished, out: &mut Vec<ChatEvent>) {
        if self.family.calls == ProviderCalls::Told {
            out.push(ChatEvent::ProviderCallFinished(finished));
        }
    }
}
