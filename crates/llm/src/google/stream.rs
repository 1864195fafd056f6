//! Decodes Google's stream: each frame is a whole response with the next parts. Tool calls arrive
//! in one piece; text and thoughts grow, and a change between them begins a new block.

use std::sync::atomic::{AtomicU64, Ordering};

use pinion_http::Frame;
use pinion_jsonl::explain;
use pinion_message::{Block, StopReason, TextBlock, ThinkingBlock, Usage, now_millis};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::decoder::{Decode, Progress};
use crate::wire_json::{Count, Flag, Text, is_truthy, list, object, read, stray_error};

#[derive(Default)]
pub(crate) struct Stream {
    current: Option<(Kind, usize)>,
    finish: Option<String>,
    block_reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(default, borrow, deserialize_with = "list")]
    candidates: Vec<Candidate<'a>>,
    #[serde(default, deserialize_with = "object")]
    usage_metadata: Option<Counts>,
    #[serde(default, borrow)]
    response_id: Text<'a>,
    #[serde(default, borrow, deserialize_with = "object")]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, borrow, deserialize_with = "object")]
    content: Option<CandidateContent<'a>>,
    #[serde(default, borrow)]
    finish_reason: Text<'a>,
}

#[derive(Deserialize)]
struct CandidateContent<'a> {
    #[serde(default, borrow, deserialize_with = "list")]
    parts: Vec<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Text<'a>,
    #[serde(default)]
    thought: Flag,
    #[serde(default, borrow)]
    thought_signature: Text<'a>,
    #[serde(default, borrow, deserialize_with = "object")]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, borrow)]
    name: Text<'a>,
    #[serde(default)]
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(default, borrow)]
    block_reason: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default)]
    prompt_token_count: Count,
    #[serde(default)]
    cached_content_token_count: Count,
    #[serde(default)]
    candidates_token_count: Count,
    #[serde(default)]
    thoughts_token_count: Count,
    #[serde(default)]
    total_token_count: Count,
}

impl Decode for Stream {
    fn frame(&mut self, answer: &mut Answer, frame: Frame<'_>) -> Result<Progress, String> {
        if let Some(error) = stray_error(frame.stray) {
            return Err(failure(&error));
        }
        if !frame.has_data || frame.data.is_empty() {
            return Ok(Progress::More);
        }
        let mut mended = String::new();
        let chunk = read(frame.data, &mut mended).map_err(|error| match error.classify() {
            serde_json::error::Category::Eof => "Incomplete JSON segment at the end".to_owned(),
            _ => format!("Could not parse a frame of the stream: {}", explain(&error)),
        })?;
        if let Some(chunk) = chunk {
            self.chunk(answer, chunk)?;
        }
        Ok(Progress::More)
    }

    fn finish(&mut self, answer: &mut Answer) -> Result<StopReason, String> {
        self.close_current(answer);
        let calls = answer.message().tool_calls().next().is_some();
        match self.finish.as_deref() {
            Some(_) if calls => Ok(StopReason::ToolUse),
            Some("STOP") => Ok(StopReason::Stop),
            Some("MAX_TOKENS") => Ok(StopReason::Length),
            Some(reason) => Err(format!("Provider stopped with: {reason}")),
            None => match &self.block_reason {
                Some(reason) => Err(format!("The provider blocked the prompt: {reason}")),
                None => Err("Google stream ended without a finish reason".to_owned()),
            },
        }
    }
}

impl Stream {
    fn chunk(&mut self, answer: &mut Answer, chunk: Chunk<'_>) -> Result<(), String> {
        if let Some(error) = chunk.error.filter(is_truthy) {
            self.close_current(answer);
            return Err(failure(&serde_json::json!({ "error": error })));
        }
        answer.set_response_id(chunk.response_id.as_str());
        if let Some(reason) = chunk
            .prompt_feedback
            .as_ref()
            .and_then(|f| f.block_reason.non_empty())
        {
            self.block_reason = Some(reason.to_owned());
        }
        // Before the parts, so that their updates have the count of this frame.
        if let Some(counts) = &chunk.usage_metadata {
            answer.set_usage(usage(counts));
        }
        if let Some(candidate) = chunk.candidates.into_iter().next() {
            for part in candidate
                .content
                .map(|content| content.parts)
                .into_iter()
                .flatten()
            {
                self.part(answer, part);
            }
            if let Some(reason) = candidate.finish_reason.non_empty() {
                answer.set_raw_stop_reason(reason);
                self.finish = Some(reason.to_owned());
            }
        }
        Ok(())
    }

    fn part(&mut self, answer: &mut Answer, part: Part<'_>) {
        if let Some(text) = part.text.get() {
            let kind = if part.thought.0 {
                Kind::Thought
            } else {
                Kind::Text
            };
            let place = self.block(answer, kind);
            answer.grow(place, text);
            if let Some(signature) = part.thought_signature.non_empty() {
                keep_signature(answer, place, signature);
            }
        }
        if let Some(call) = part.function_call {
            self.close_current(answer);
            self.call(answer, call, part.thought_signature.non_empty());
        }
    }

    fn block(&mut self, answer: &mut Answer, kind: Kind) -> usize {
        if let Some((current, place)) = self.current
            && current == kind
        {
            return place;
        }
        self.close_current(answer);
        let place = answer.open(match kind {
            Kind::Text => Block::Text(TextBlock::default()),
            Kind::Thought => Block::Thinking(ThinkingBlock::default()),
        });
        self.current = Some((kind, place));
        place
    }

    fn close_current(&mut self, answer: &mut Answer) {
        if let Some((_, place)) = self.current.take() {
            answer.close(place);
        }
    }

    fn call(&self, answer: &mut Answer, call: FunctionCall<'_>, signature: Option<&str>) {
        let name = call.name.as_str();
        let taken = |id: &str| answer.message().tool_calls().any(|call| call.id == id);
        let id = match call.id.non_empty() {
            Some(id) if !taken(id) => id.to_owned(),
            _ => generated_id(name),
        };
        let arguments = call.args.unwrap_or_else(|| Value::Object(Map::new()));
        let place = answer.open_call(id, name);
        if let Some(signature) = signature {
            keep_signature(answer, place, signature);
        }
        answer.grow(place, &arguments.to_string());
        answer.close(place);
    }
}

fn keep_signature(answer: &mut Answer, place: usize, signature: &str) {
    let slot = match answer.block_mut(place) {
        Some(Block::Text(block)) => &mut block.text_signature,
        Some(Block::Thinking(block)) => &mut block.thinking_signature,
        Some(Block::ToolCall(call)) => &mut call.thought_signature,
        _ => return,
    };
    *slot = Some(signature.to_owned());
}

/// An id for a call that arrived without one.
fn generated_id(name: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    format!(
        "{name}_{}_{}",
        now_millis(),
        COUNTER.fetch_add(1, Ordering::Relaxed)
    )
}

fn usage(counts: &Counts) -> Usage {
    let Count(cache_read) = counts.cached_content_token_count;
    Usage {
        input: counts.prompt_token_count.0.saturating_sub(cache_read),
        output: counts.candidates_token_count.0 + counts.thoughts_token_count.0,
        cache_read,
        reasoning: Some(counts.thoughts_token_count.0),
        total_tokens: counts.total_token_count.0,
        ..Usage::default()
    }
}

fn failure(body: &Value) -> String {
    let status = body
        .pointer("/error/status")
        .and_then(Value::as_str)
        .unwrap_or("ERROR");
    format!("got status: {status}. {body}")
}
