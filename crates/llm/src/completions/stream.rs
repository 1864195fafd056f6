//! Decodes the chunk stream of Chat Completions. An answer has one text block and one thinking
//! block, and any number of tool calls; all blocks end together after the last chunk.

use pinion_http::Frame;
use pinion_jsonl::explain;
use pinion_message::{Block, Model, StopReason, TextBlock, ThinkingBlock, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::Answer;
use crate::compat;
use crate::decoder::{Decode, Progress};
use crate::transport::provider_error;
use crate::wire_json::{ArgumentText, Count, Text, is_truthy, list, object, read, stray_error};

pub(crate) struct Stream {
    /// The server always sends a finish reason.
    tells_finish: bool,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    finish: Option<Finish>,
}

struct OpenCall {
    place: usize,
    index: Option<Count>,
}

enum Finish {
    Reason(StopReason),
    Failed(String),
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, borrow)]
    model: Text<'a>,
    #[serde(default, borrow, deserialize_with = "list")]
    choices: Vec<Choice<'a>>,
    #[serde(default, deserialize_with = "object")]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default, borrow, deserialize_with = "object")]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    finish_reason: Text<'a>,
    #[serde(default, deserialize_with = "object")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow)]
    content: Text<'a>,
    #[serde(default, borrow)]
    reasoning_content: Text<'a>,
    #[serde(default, borrow)]
    reasoning: Text<'a>,
    #[serde(default, borrow)]
    reasoning_text: Text<'a>,
    #[serde(default, borrow, deserialize_with = "list")]
    tool_calls: Vec<CallDelta<'a>>,
    #[serde(default, deserialize_with = "list")]
    reasoning_details: Vec<Value>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<Count>,
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, borrow, deserialize_with = "object")]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default, borrow)]
    name: Text<'a>,
    #[serde(default)]
    arguments: ArgumentText,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    #[serde(default, deserialize_with = "object")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default, deserialize_with = "object")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<Count>,
    cache_write_tokens: Option<Count>,
}

impl Stream {
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            tells_finish: compat::Completions::of(model).finish_reason,
            text: None,
            thinking: None,
            calls: Vec::new(),
            finish: None,
        }
    }
}

impl Decode for Stream {
    fn frame(&mut self, answer: &mut Answer, frame: Frame<'_>) -> Result<Progress, String> {
        if let Some(error) = stray_error(frame.stray) {
            return Err(provider_error(&error["error"]));
        }
        if !frame.has_data || frame.data.is_empty() {
            return Ok(Progress::More);
        }
        if frame.data.starts_with("[DONE]") {
            return Ok(Progress::Complete);
        }
        let mut mended = String::new();
        let chunk = read(frame.data, &mut mended).map_err(|error| {
            format!("Could not parse a chunk of the stream: {}", explain(&error))
        })?;
        if let Some(chunk) = chunk {
            self.chunk(answer, &chunk)?;
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, answer: &mut Answer) -> Result<StopReason, String> {
        answer.close_all();
        match self.finish.take() {
            Some(Finish::Reason(reason)) => Ok(reason),
            Some(Finish::Failed(text)) => Err(text),
            None if self.tells_finish => Err("Stream ended without finish_reason".to_owned()),
            None if self.calls.is_empty() => Ok(StopReason::Stop),
            None => Ok(StopReason::ToolUse),
        }
    }

    fn aborted(&mut self, answer: &mut Answer) {
        answer.close_all();
    }
}

impl Stream {
    fn chunk(&mut self, answer: &mut Answer, chunk: &Chunk<'_>) -> Result<(), String> {
        if let Some(error) = chunk.error.as_ref().filter(|error| is_truthy(error)) {
            return Err(provider_error(error));
        }
        answer.set_response_id(chunk.id.as_str());
        answer.set_response_model(chunk.model.as_str());
        if let Some(counts) = &chunk.usage {
            answer.set_usage(usage(counts));
        }
        let Some(choice) = chunk.choices.first() else {
            return Ok(());
        };
        if let (None, Some(counts)) = (&chunk.usage, &choice.usage) {
            answer.set_usage(usage(counts));
        }
        if let Some(reason) = choice.finish_reason.non_empty() {
            answer.set_raw_stop_reason(reason);
            self.finish = Some(finish(reason));
        }
        if let Some(delta) = &choice.delta {
            self.delta(answer, delta);
        }
        Ok(())
    }

    fn delta(&mut self, answer: &mut Answer, delta: &Delta<'_>) {
        if let Some(text) = delta.content.non_empty() {
            let open = || Block::Text(TextBlock::default());
            let place = *self.text.get_or_insert_with(|| answer.open(open()));
            answer.grow(place, text);
        }
        let thoughts = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("reasoning_text", &delta.reasoning_text),
        ];
        let thought = thoughts
            .iter()
            .find_map(|(name, text)| Some((*name, text.non_empty()?)));
        if let Some((name, text)) = thought {
            let open = || {
                Block::Thinking(ThinkingBlock {
                    thinking_signature: Some(name.to_owned()),
                    ..ThinkingBlock::default()
                })
            };
            let place = *self.thinking.get_or_insert_with(|| answer.open(open()));
            answer.grow(place, text);
        }
        for call in &delta.tool_calls {
            self.call(answer, call);
        }
        for detail in &delta.reasoning_details {
            self.keep_encrypted(answer, detail);
        }
    }

    fn call(&mut self, answer: &mut Answer, delta: &CallDelta<'_>) {
        let function = delta.function.as_ref();
        let name = function.map_or("", |function| function.name.as_str());
        let arguments = function.map_or("", |function| &function.arguments.0);
        let place = match self.known_call(answer, delta, name) {
            Some(place) => {
                fill(answer, place, delta.id.as_str(), name);
                place
            }
            None => {
                let place = answer.open_call(delta.id.as_str().to_owned(), name);
                self.calls.push(OpenCall {
                    place,
                    index: delta.index,
                });
                place
            }
        };
        answer.grow(place, arguments);
    }

    /// The call a delta belongs to: by index, else by id.
    ///
    /// Some servers label every call with index 0; a different id that comes with a name is a
    /// call of its own.
    fn known_call(&self, answer: &Answer, delta: &CallDelta<'_>, name: &str) -> Option<usize> {
        let id_of = |place: usize| match answer.message().content.get(place) {
            Some(Block::ToolCall(call)) => call.id.as_str(),
            _ => "",
        };
        let id = delta.id.as_str();
        // The newest call with the index, so that later deltas without an id follow it.
        let by_index = delta.index.and_then(|index| {
            let same = |call: &&OpenCall| call.index == Some(index);
            self.calls.iter().rev().find(same).map(|call| call.place)
        });
        let by_id = || {
            self.calls
                .iter()
                .map(|call| call.place)
                .find(|&place| id_of(place) == id)
        };
        match by_index {
            Some(place) => {
                let known = id_of(place);
                let another = !id.is_empty() && !known.is_empty() && known != id;
                if another && !name.is_empty() {
                    by_id()
                } else {
                    Some(place)
                }
            }
            None if id.is_empty() && delta.index.is_none() => {
                // Without index and id it can only continue the last call.
                self.calls
                    .last()
                    .map(|call| call.place)
                    .filter(|_| name.is_empty())
            }
            None if id.is_empty() => None,
            None => by_id(),
        }
    }

    /// Stores the encrypted reasoning that OpenRouter binds to a tool call; it is sent back with
    /// that call.
    fn keep_encrypted(&self, answer: &mut Answer, detail: &Value) {
        let text = |name: &str| detail.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("type") != "reasoning.encrypted" || text("data").is_empty() {
            return;
        }
        for call in &self.calls {
            if let Some(Block::ToolCall(block)) = answer.block_mut(call.place)
                && !block.id.is_empty()
                && block.id == text("id")
            {
                block.thought_signature = Some(detail.to_string());
            }
        }
    }
}

/// Fills in an id or name that arrives after the start of the call.
fn fill(answer: &mut Answer, place: usize, id: &str, name: &str) {
    if let Some(Block::ToolCall(call)) = answer.block_mut(place) {
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "end" => Finish::Reason(StopReason::Stop),
        "length" => Finish::Reason(StopReason::Length),
        "tool_calls" | "function_call" => Finish::Reason(StopReason::ToolUse),
        other => Finish::Failed(format!("Provider finish_reason: {other}")),
    }
}

fn usage(counts: &Counts) -> Usage {
    let details = counts.prompt_tokens_details.as_ref();
    let cached = details.and_then(|details| details.cached_tokens);
    let Count(cache_read) = cached.unwrap_or(counts.prompt_cache_hit_tokens);
    let written = details.and_then(|details| details.cache_write_tokens);
    let Count(cache_write) = written.unwrap_or_default();
    let Count(prompt) = counts.prompt_tokens;
    let Count(output) = counts.completion_tokens;
    let input = prompt
        .saturating_sub(cache_read)
        .saturating_sub(cache_write);
    let total_tokens = input + output + cache_read + cache_write;
    let details = counts.completion_tokens_details.as_ref();
    let Count(reasoning) = details
        .map(|details| details.reasoning_tokens)
        .unwrap_or_default();
    Usage {
        reasoning: Some(reasoning),
        input,
        output,
        cache_read,
        cache_write,
        total_tokens,
        ..Usage::default()
    }
}
