//! Decodes the event stream of the Messages API. Frames are distinguished by their SSE event name;
//! blocks are found by the provider's own index, which is valid until the block stops.

use pinion_http::Frame;
use pinion_jsonl::explain;
use pinion_message::{Block, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::decoder::{Decode, Progress};
use crate::wire_json::{Count, Text, object, read, stray_error};

/// Shown in place of reasoning the provider withholds.
const REDACTED: &str = "[Reasoning redacted]";

#[derive(Default)]
pub(crate) struct Stream {
    begun: bool,
    stopped: bool,
    stop: Option<Stop>,
    /// Provider index and block of the open blocks.
    blocks: Vec<(u64, usize)>,
}

enum Stop {
    Reason(StopReason),
    Refused(String),
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow, deserialize_with = "object")]
    message: Option<MessageStart<'a>>,
    #[serde(default)]
    index: Count,
    #[serde(default, borrow, deserialize_with = "object")]
    content_block: Option<ContentBlock<'a>>,
    #[serde(default, borrow, deserialize_with = "object")]
    delta: Option<Delta<'a>>,
    #[serde(default, deserialize_with = "object")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, deserialize_with = "object")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(default, borrow)]
    r#type: Text<'a>,
    #[serde(default, borrow)]
    data: Text<'a>,
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, borrow)]
    name: Text<'a>,
    #[serde(default)]
    input: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow)]
    r#type: Text<'a>,
    #[serde(default, borrow)]
    text: Text<'a>,
    #[serde(default, borrow)]
    thinking: Text<'a>,
    #[serde(default, borrow)]
    partial_json: Text<'a>,
    #[serde(default, borrow)]
    signature: Text<'a>,
    #[serde(default, borrow)]
    stop_reason: Text<'a>,
    #[serde(default, borrow, deserialize_with = "object")]
    stop_details: Option<StopDetails<'a>>,
}

#[derive(Deserialize)]
struct StopDetails<'a> {
    #[serde(default, borrow)]
    explanation: Text<'a>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    #[serde(default, deserialize_with = "object")]
    cache_creation: Option<CacheCreation>,
}

#[derive(Deserialize)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<Count>,
}

impl Decode for Stream {
    fn frame(&mut self, answer: &mut Answer, frame: Frame<'_>) -> Result<Progress, String> {
        if let Some(error) = stray_error(frame.stray) {
            return Err(error.to_string());
        }
        match frame.event {
            "error" => return Err(frame.data.to_owned()),
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta" => {}
            "message_stop" => {
                self.stopped = true;
                return Ok(Progress::Complete);
            }
            _ => return Ok(Progress::More),
        }
        let name = frame.event;
        let mut mended = String::new();
        let event = read(frame.data, &mut mended).map_err(|error| {
            format!(
                "Could not parse Anthropic SSE event {name}: {}",
                explain(&error)
            )
        })?;
        if let Some(event) = event {
            self.event(answer, name, event)?;
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, _answer: &mut Answer) -> Result<StopReason, String> {
        if self.begun && !self.stopped {
            return Err("Anthropic stream ended before message_stop".to_owned());
        }
        match self.stop.take() {
            Some(Stop::Reason(reason)) => Ok(reason),
            Some(Stop::Refused(text)) => Err(text),
            None => Err("Anthropic stream ended without a stop reason".to_owned()),
        }
    }
}

impl Stream {
    fn event(&mut self, answer: &mut Answer, name: &str, event: Event<'_>) -> Result<(), String> {
        match name {
            "message_start" => {
                self.begun = true;
                if let Some(message) = &event.message {
                    answer.set_response_id(message.id.as_str());
                    count(answer, message.usage.as_ref());
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.start_block(answer, event.index.0, block);
                }
            }
            "content_block_delta" => {
                if let (Some(place), Some(delta)) = (self.place(event.index.0), &event.delta) {
                    grow(answer, place, delta);
                }
            }
            "content_block_stop" => {
                if let Some(place) = self.place(event.index.0) {
                    self.blocks.retain(|&(index, _)| index != event.index.0);
                    answer.close(place);
                }
            }
            _ => {
                if let Some(delta) = &event.delta {
                    answer.set_raw_stop_reason(delta.stop_reason.as_str());
                    self.note_stop(delta)?;
                }
                count(answer, event.usage.as_ref());
            }
        }
        Ok(())
    }

    fn place(&self, index: u64) -> Option<usize> {
        self.blocks
            .iter()
            .find(|(known, _)| *known == index)
            .map(|&(_, place)| place)
    }

    fn start_block(&mut self, answer: &mut Answer, index: u64, block: ContentBlock<'_>) {
        let block = match block.r#type.as_str() {
            "text" => Block::Text(TextBlock::default()),
            "thinking" => Block::Thinking(ThinkingBlock {
                thinking_signature: Some(String::new()),
                ..ThinkingBlock::default()
            }),
            "redacted_thinking" => Block::Thinking(ThinkingBlock {
                thinking: REDACTED.to_owned(),
                thinking_signature: Some(block.data.as_str().to_owned()),
                redacted: Some(true),
            }),
            "tool_use" => Block::ToolCall(ToolCall {
                id: block.id.as_str().to_owned(),
                name: block.name.as_str().to_owned(),
                arguments: block.input.unwrap_or_else(|| Value::Object(Map::new())),
                thought_signature: None,
                arguments_error: None,
            }),
            // Server-side tools and future kinds of blocks.
            _ => return,
        };
        self.blocks.push((index, answer.open(block)));
    }

    fn note_stop(&mut self, delta: &Delta<'_>) -> Result<(), String> {
        let Some(reason) = delta.stop_reason.non_empty() else {
            return Ok(());
        };
        self.stop = Some(match reason {
            "end_turn" | "pause_turn" | "stop_sequence" => Stop::Reason(StopReason::Stop),
            "max_tokens" => Stop::Reason(StopReason::Length),
            "tool_use" => Stop::Reason(StopReason::ToolUse),
            "refusal" => {
                let details = delta.stop_details.as_ref();
                let explanation = details.and_then(|details| details.explanation.non_empty());
                let text = explanation.unwrap_or("The model refused to complete the request");
                Stop::Refused(text.to_owned())
            }
            "sensitive" => Stop::Refused("The provider withheld the answer: sensitive".to_owned()),
            unknown => return Err(format!("Unhandled stop reason: {unknown}")),
        });
        Ok(())
    }
}

fn grow(answer: &mut Answer, place: usize, delta: &Delta<'_>) {
    match (delta.r#type.as_str(), answer.block_mut(place)) {
        ("text_delta", Some(Block::Text(_))) => answer.grow(place, delta.text.as_str()),
        ("thinking_delta", Some(Block::Thinking(_))) => {
            answer.grow(place, delta.thinking.as_str());
        }
        ("input_json_delta", Some(Block::ToolCall(_))) => {
            answer.grow(place, delta.partial_json.as_str());
        }
        ("signature_delta", Some(Block::Thinking(block))) => {
            let signature = block.thinking_signature.get_or_insert_default();
            signature.push_str(delta.signature.as_str());
        }
        _ => {}
    }
}

/// Updates the usage. Counts are totals so far, not additions; a count that a frame leaves out
/// stays as it was.
fn count(answer: &mut Answer, counts: Option<&Counts>) {
    let Some(counts) = counts else { return };
    let mut usage: Usage = answer.message().usage;
    for (count, total) in [
        (counts.input_tokens, &mut usage.input),
        (counts.output_tokens, &mut usage.output),
        (counts.cache_read_input_tokens, &mut usage.cache_read),
        (counts.cache_creation_input_tokens, &mut usage.cache_write),
    ] {
        if let Some(Count(tokens)) = count {
            *total = tokens;
        }
    }
    let written = counts.cache_creation.as_ref();
    let hour = written.and_then(|written| written.ephemeral_1h_input_tokens);
    let known = usage.cache_write_1h.unwrap_or_default();
    usage.cache_write_1h = Some(hour.map_or(known, |Count(tokens)| tokens));
    usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
    answer.set_usage(usage);
}
