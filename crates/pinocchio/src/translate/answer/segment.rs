//! One segment of an answer: a text, thinking, or a call.

use std::sync::Arc;

use pinion_message::Block;

use crate::events::ChatEvent;
use crate::patch::{PatchKind, PatchStream};
use crate::pb::{self, Text};
use crate::translate::RunStart;

#[derive(Debug)]
pub(super) struct Segment {
    pub stream: Arc<PatchStream>,
    /// The whole text so far; the arguments, for a call.
    pub text: String,
    pub tool_name: Text,
    pub patches: u64,
    pub state: SegmentState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentState {
    Growing,
    /// Its block has ended, which is reported later.
    Complete,
    Told,
}

impl Segment {
    /// Completes the segment from the finished block.
    pub fn complete(&mut self, block: &Block) {
        match block {
            Block::Text(text) => self.text.clone_from(&text.text),
            Block::Thinking(thinking) => self.text.clone_from(&thinking.thinking),
            Block::ToolCall(call) => self.text = call.arguments.to_string(),
            Block::Image { .. } => {}
        }
        self.state = SegmentState::Complete;
    }

    /// Reports that the segment is finished, or that the call is requested.
    pub fn report(
        &mut self,
        status: &'static str,
        reason: &'static str,
        start: &RunStart,
        out: &mut Vec<ChatEvent>,
    ) {
        self.state = SegmentState::Told;
        let facts = &self.stream.facts;
        let text = Text::from(std::mem::take(&mut self.text));
        out.push(match self.stream.kind {
            PatchKind::Text => ChatEvent::TextSegmentFinished(pb::ChatTextSegmentFinished {
                message_id: facts.message_id.clone(),
                role: facts.role.clone(),
                prompt: facts.prompt.clone(),
                text: text.clone(),
                content: text,
                status: status.into(),
                r#final: true,
                finish_reason: reason.into(),
                correlation: facts.correlation.clone(),
                ..Default::default()
            }),
            PatchKind::Thinking => {
                ChatEvent::ReasoningSegmentFinished(pb::ChatReasoningSegmentFinished {
                    message_id: facts.message_id.clone(),
                    parent_message_id: facts.parent_message_id.clone(),
                    role: facts.role.clone(),
                    text: text.clone(),
                    content: text,
                    status: status.into(),
                    source: facts.source.clone(),
                    finish_reason: reason.into(),
                    correlation: facts.correlation.clone(),
                    ..Default::default()
                })
            }
            PatchKind::Arguments => ChatEvent::ToolCallRequested(pb::ChatToolCallRequested {
                message_id: start.root.clone(),
                tool_call_id: facts.tool_call_id.clone(),
                tool_name: self.tool_name.clone(),
                input: text,
                status: "pending".into(),
                correlation: facts.correlation.clone(),
                ..Default::default()
            }),
        });
    }
}
