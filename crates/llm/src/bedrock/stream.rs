//! Decodes the event stream of the Converse API. The provider's block numbers are mapped to positions in the order in which
//! they appear, and blocks may interleave.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_http::Frame;
use pinion_message::{Block, StopReason, TextBlock, ThinkingBlock, Usage};
use serde_json::{Map, Value};

use super::exception_text;
use crate::answer::Answer;
use crate::decoder::{Decode, Progress};
use crate::event_stream::StreamMessage;

/// The text of thinking that only the provider can read.
const REDACTED: &str = "[Reasoning redacted]";

#[derive(Default)]
pub(crate) struct Stream {
    blocks: Vec<OpenBlock>,
    stop: Option<String>,
}

struct OpenBlock {
    index: u64,
    place: usize,
    kind: BlockKind,
    /// The bytes of redacted thinking so far.
    redacted: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    Call,
}

impl Decode for Stream {
    fn frame(&mut self, _answer: &mut Answer, _frame: Frame<'_>) -> Result<Progress, String> {
        Err("The server sent text in place of an event stream.".to_owned())
    }

    fn message(
        &mut self,
        answer: &mut Answer,
        message: &StreamMessage<'_>,
    ) -> Result<Progress, String> {
        let payload: Value = serde_json::from_slice(message.payload).unwrap_or_default();
        match message.text(":message-type") {
            "exception" => {
                let text = payload["message"].as_str().unwrap_or_default();
                return Err(exception_text(message.text(":exception-type"), text));
            }
            "error" => {
                let text = message.text(":error-message");
                let code = message.text(":error-code");
                return Err(if text.is_empty() {
                    code.to_owned()
                } else {
                    text.to_owned()
                });
            }
            _ => {}
        }
        match message.text(":event-type") {
            "messageStart" => {
                let role = payload["role"].as_str().unwrap_or_default();
                if role != "assistant" {
                    return Err(format!(
                        "Unexpected assistant message start but got {role} message start instead"
                    ));
                }
                answer.start();
            }
            "contentBlockStart" => self.block_start(answer, &payload),
            "contentBlockDelta" => self.delta(answer, &payload),
            "contentBlockStop" => self.block_stop(answer, &payload),
            "messageStop" => {
                let reason = payload["stopReason"].as_str().unwrap_or_default();
                answer.set_raw_stop_reason(reason);
                self.stop = Some(reason.to_owned());
            }
            "metadata" => set_usage(answer, &payload["usage"]),
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, _answer: &mut Answer) -> Result<StopReason, String> {
        let Some(reason) = self.stop.take() else {
            return Err("Bedrock stream ended without a stop reason".to_owned());
        };
        match reason.as_str() {
            "end_turn" | "stop_sequence" => Ok(StopReason::Stop),
            "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
            "tool_use" => Ok(StopReason::ToolUse),
            other => Err(format!("Provider stopped with: {other}")),
        }
    }
}

impl Stream {
    fn find(&mut self, index: u64, kind: BlockKind) -> Option<&mut OpenBlock> {
        let mut blocks = self.blocks.iter_mut();
        blocks.find(|block| block.index == index && block.kind == kind)
    }

    fn open(&mut self, answer: &mut Answer, index: u64, kind: BlockKind) -> usize {
        if let Some(block) = self.find(index, kind) {
            return block.place;
        }
        let place = match kind {
            BlockKind::Thinking => answer.open(Block::Thinking(ThinkingBlock::default())),
            _ => answer.open(Block::Text(TextBlock::default())),
        };
        self.push(index, place, kind);
        place
    }

    fn push(&mut self, index: u64, place: usize, kind: BlockKind) {
        self.blocks.push(OpenBlock {
            index,
            place,
            kind,
            redacted: Vec::new(),
        });
    }

    fn block_start(&mut self, answer: &mut Answer, payload: &Value) {
        let call = &payload["start"]["toolUse"];
        if call.is_object() {
            let text = |name: &str| call[name].as_str().unwrap_or_default();
            let place = answer.open_call(text("toolUseId").to_owned(), text("name"));
            self.push(index_of(payload), place, BlockKind::Call);
        }
    }

    fn delta(&mut self, answer: &mut Answer, payload: &Value) {
        let index = index_of(payload);
        let delta = &payload["delta"];
        if let Some(text) = delta["text"].as_str() {
            let place = self.open(answer, index, BlockKind::Text);
            answer.grow(place, text);
        }
        if let Some(input) = delta["toolUse"]["input"].as_str()
            && let Some(block) = self.find(index, BlockKind::Call)
        {
            let place = block.place;
            answer.grow(place, input);
        }
        let reasoning = &delta["reasoningContent"];
        if !reasoning.is_object() {
            return;
        }
        let place = self.open(answer, index, BlockKind::Thinking);
        if let Some(text) = reasoning["text"].as_str() {
            answer.grow(place, text);
        }
        if let Some(signature) = reasoning["signature"].as_str()
            && let Some(Block::Thinking(block)) = answer.block_mut(place)
        {
            block
                .thinking_signature
                .get_or_insert_default()
                .push_str(signature);
        }
        if let Some(redacted) = reasoning["redactedContent"].as_str() {
            self.redacted(answer, index, place, redacted);
        }
    }

    /// Adds a piece of redacted thinking; the pieces are joined as bytes.
    fn redacted(&mut self, answer: &mut Answer, index: u64, place: usize, piece: &str) {
        let Some(block) = self.find(index, BlockKind::Thinking) else {
            return;
        };
        let is_first = block.redacted.is_empty();
        block
            .redacted
            .extend(STANDARD.decode(piece).unwrap_or_default());
        let joined = STANDARD.encode(&block.redacted);
        if let Some(Block::Thinking(block)) = answer.block_mut(place) {
            block.redacted = Some(true);
            block.thinking_signature = Some(joined);
        }
        if is_first {
            answer.grow(place, REDACTED);
        }
    }

    fn block_stop(&mut self, answer: &mut Answer, payload: &Value) {
        let index = index_of(payload);
        let places: Vec<usize> = self
            .blocks
            .iter()
            .filter(|block| block.index == index && answer.is_open(block.place))
            .map(|block| block.place)
            .collect();
        for place in places {
            answer.close_strictly(place);
        }
    }
}

fn index_of(payload: &Value) -> u64 {
    payload["contentBlockIndex"].as_u64().unwrap_or_default()
}

fn set_usage(answer: &mut Answer, usage: &Value) {
    let Some(members) = usage.as_object() else {
        return;
    };
    let count = |members: &Map<String, Value>, name: &str| {
        let count = members.get(name).and_then(Value::as_u64);
        count.unwrap_or_default().min(1 << 53)
    };
    let details = usage["cacheDetails"].as_array().into_iter().flatten();
    let hour = details.filter(|detail| detail["ttl"] == "1h");
    let hour: Vec<u64> = hour
        .filter_map(|detail| detail.as_object())
        .map(|detail| count(detail, "inputTokens"))
        .collect();
    answer.set_usage(Usage {
        input: count(members, "inputTokens"),
        output: count(members, "outputTokens"),
        cache_read: count(members, "cacheReadInputTokens"),
        cache_write: count(members, "cacheWriteInputTokens"),
        total_tokens: count(members, "totalTokens"),
        cache_write_1h: (!hour.is_empty()).then(|| hour.iter().sum()),
        ..Usage::default()
    });
}
