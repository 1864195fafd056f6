//! Decodes Mistral's chunk stream. Content is a string or a list of typed pieces; a change between
//! text and thinking begins a new block, and tool calls end with the stream.

use pinion_http::Frame;
use pinion_jsonl::explain;
use pinion_message::{Block, StopReason, TextBlock, ThinkingBlock, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::Answer;
use crate::decoder::{Decode, Progress};
use crate::tool_ids::mistral_id;
use crate::transport::provider_error;
use crate::wire_json::{ArgumentText, Count, Text, is_truthy, list, object, read, stray_error};

#[derive(Default)]
pub(crate) struct Stream {
    current: Option<(Kind, usize)>,
    /// Index and block of the tool calls.
    calls: Vec<(u64, usize)>,
    finish: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    id: Text<'a>,
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
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Value,
    #[serde(default, borrow, deserialize_with = "list")]
    tool_calls: Vec<CallDelta<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Count,
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
        match self.finish.as_deref() {
            None => Err("Stream ended without finish_reason".to_owned()),
            Some("error") => Err("Provider finish_reason: error".to_owned()),
            Some("length" | "model_length") => Ok(StopReason::Length),
            Some("tool_calls") => Ok(StopReason::ToolUse),
            Some(_) => Ok(StopReason::Stop),
        }
    }
}

impl Stream {
    fn chunk(&mut self, answer: &mut Answer, chunk: &Chunk<'_>) -> Result<(), String> {
        if let Some(error) = chunk.error.as_ref().filter(|error| is_truthy(error)) {
            return Err(provider_error(error));
        }
        answer.set_response_id(chunk.id.as_str());
        if let Some(counts) = &chunk.usage {
            let (Count(input), Count(output)) = (counts.prompt_tokens, counts.completion_tokens);
            let total_tokens = input + output;
            answer.set_usage(Usage {
                input,
                output,
                reasoning: Some(0),
                total_tokens,
                ..Usage::default()
            });
        }
        let Some(choice) = chunk.choices.first() else {
            return Ok(());
        };
        if let Some(reason) = choice.finish_reason.non_empty() {
            answer.set_raw_stop_reason(reason);
            self.finish = Some(reason.to_owned());
        }
        if let Some(delta) = &choice.delta {
            self.content(answer, &delta.content);
            for call in &delta.tool_calls {
                self.call(answer, call);
            }
        }
        Ok(())
    }

    fn content(&mut self, answer: &mut Answer, content: &Value) {
        match content {
            Value::String(text) => self.grow(answer, Kind::Text, text),
            Value::Array(pieces) => {
                for piece in pieces {
                    match piece.get("type").and_then(Value::as_str) {
                        Some("text") => self.content(answer, &piece["text"]),
                        Some("thinking") => {
                            let thoughts = piece["thinking"].as_array().into_iter().flatten();
                            for text in thoughts.filter_map(|thought| thought["text"].as_str()) {
                                self.grow(answer, Kind::Thinking, text);
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn grow(&mut self, answer: &mut Answer, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        let place = match self.current {
            Some((current, place)) if current == kind => place,
            _ => {
                self.close_current(answer);
                let place = answer.open(match kind {
                    Kind::Text => Block::Text(TextBlock::default()),
                    Kind::Thinking => Block::Thinking(ThinkingBlock::default()),
                });
                self.current = Some((kind, place));
                place
            }
        };
        answer.grow(place, text);
    }

    fn close_current(&mut self, answer: &mut Answer) {
        if let Some((_, place)) = self.current.take() {
            answer.close(place);
        }
    }

    fn call(&mut self, answer: &mut Answer, delta: &CallDelta<'_>) {
        self.close_current(answer);
        let Some(function) = &delta.function else {
            return;
        };
        let Count(index) = delta.index;
        let id_of = |answer: &Answer, place: usize| match answer.message().content.get(place) {
            Some(Block::ToolCall(call)) => call.id.clone(),
            _ => String::new(),
        };
        let known = self.calls.iter().rev().find(|(known, _)| *known == index);
        let id = delta.id.non_empty().filter(|id| *id != "null");
        // Calls that arrive whole all have index 0, and an id each.
        let same = known.filter(|(_, place)| id.is_none_or(|id| id == id_of(answer, *place)));
        let place = match same {
            Some(&(_, place)) => place,
            None => {
                let id = id.map_or_else(
                    || mistral_id(&format!("toolcall:{index}"), 0),
                    str::to_owned,
                );
                let place = answer.open_call(id, function.name.as_str());
                self.calls.push((index, place));
                place
            }
        };
        answer.grow(place, &function.arguments.0);
    }
}
