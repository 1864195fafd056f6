//! Decodes the event stream of the Responses API. State is stored per output index, because items
//! may interleave; the item that ends a block overrides what was streamed.

use pinion_http::Frame;
use pinion_jsonl::explain;
use pinion_message::{Block, StopReason, TextBlock, ThinkingBlock, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::decoder::{Decode, Progress};
use crate::wire_json::{Count, Text, error_message, is_truthy, object, read, stray_error};

#[derive(Default)]
pub(crate) struct Stream {
    items: Vec<Item>,
    /// The server is that of ChatGPT subscriptions, which has errors of its own.
    is_codex: bool,
    outcome: Option<Result<StopReason, String>>,
}

struct Item {
    output_index: Option<Count>,
    id: String,
    kind: ItemKind,
    place: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Reasoning,
    Message,
    Call,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow)]
    r#type: Text<'a>,
    #[serde(default)]
    output_index: Option<Count>,
    #[serde(default, borrow)]
    item_id: Text<'a>,
    #[serde(default, borrow)]
    delta: Text<'a>,
    #[serde(default, borrow)]
    arguments: Text<'a>,
    #[serde(default)]
    item: Option<Value>,
    #[serde(default, borrow, deserialize_with = "object")]
    response: Option<Response<'a>>,
    #[serde(default)]
    code: Value,
    #[serde(default, borrow)]
    message: Text<'a>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default, borrow)]
    id: Text<'a>,
    #[serde(default, borrow)]
    status: Text<'a>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default, borrow, deserialize_with = "object")]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default, borrow)]
    service_tier: Text<'a>,
    #[serde(default, deserialize_with = "object")]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(default, borrow)]
    reason: Text<'a>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default, deserialize_with = "object")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "object")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Count,
}

impl Decode for Stream {
    fn frame(&mut self, answer: &mut Answer, frame: Frame<'_>) -> Result<Progress, String> {
        if let Some(error) = stray_error(frame.stray) {
            return Err(error_message(&error["error"]));
        }
        if !frame.has_data || frame.data.is_empty() || frame.data.starts_with("[DONE]") {
            return Ok(Progress::More);
        }
        let mut mended = String::new();
        let event = read(frame.data, &mut mended).map_err(|error| {
            format!(
                "Could not parse an event of the stream: {}",
                explain(&error)
            )
        })?;
        if let Some(event) = &event {
            self.event(answer, event)?;
        }
        Ok(if self.outcome.is_some() {
            Progress::Complete
        } else {
            Progress::More
        })
    }

    fn finish(&mut self, answer: &mut Answer) -> Result<StopReason, String> {
        let Some(outcome) = self.outcome.take() else {
            return Err(
                "OpenAI Responses stream ended before a terminal response event".to_owned(),
            );
        };
        let reason = outcome?;
        let unfinished = |item: &&Item| item.kind == ItemKind::Call && answer.is_open(item.place);
        if let Some(item) = self.items.iter().find(unfinished)
            && let Some(Block::ToolCall(call)) = answer.message().content.get(item.place)
        {
            return Err(format!(
                "Stream ended without the rest of tool call {}",
                call.name
            ));
        }
        answer.close_all();
        let calls = answer.message().tool_calls().next().is_some();
        Ok(if calls && reason == StopReason::Stop {
            StopReason::ToolUse
        } else {
            reason
        })
    }
}

impl Stream {
    /// A stream of ChatGPT subscriptions.
    pub(crate) fn codex() -> Self {
        Self {
            is_codex: true,
            ..Self::default()
        }
    }

    fn event(&mut self, answer: &mut Answer, event: &Event<'_>) -> Result<(), String> {
        match event.r#type.as_str() {
            "response.created" => {
                if let Some(response) = &event.response {
                    answer.set_response_id(response.id.as_str());
                }
            }
            "response.output_item.added" => {
                if let Some(item) = &event.item {
                    self.added(answer, event, item);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.grow(answer, event, ItemKind::Reasoning, event.delta.as_str());
            }
            "response.reasoning_summary_part.done" => {
                self.grow(answer, event, ItemKind::Reasoning, "\n\n");
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.grow(answer, event, ItemKind::Message, event.delta.as_str());
            }
            "response.function_call_arguments.delta" => {
                self.grow(answer, event, ItemKind::Call, event.delta.as_str());
            }
            "response.function_call_arguments.done" => {
                if let Some(place) = self.place(event, ItemKind::Call) {
                    complete_arguments(answer, place, event.arguments.as_str());
                }
            }
            "response.output_item.done" => {
                if let Some(item) = &event.item {
                    self.done(answer, event, item);
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                if let Some(response) = &event.response {
                    self.completed(answer, response);
                }
            }
            "response.failed" if self.is_codex => {
                let error = event.response.as_ref().and_then(|it| it.error.as_ref());
                let message = error
                    .map(|error| text(error, "message"))
                    .unwrap_or_default();
                return Err(match message {
                    "" => "Codex response failed".to_owned(),
                    message => message.to_owned(),
                });
            }
            "error" if self.is_codex => return Err(codex_error(event)),
            "response.failed" => return Err(failed(event.response.as_ref())),
            "error" => return Err(error_event(event)),
            // Proxies in front of the API send errors without a type.
            "" => {
                if let Some(error) = event.error.as_ref().filter(|error| is_truthy(error)) {
                    return Err(error_message(error));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn added(&mut self, answer: &mut Answer, event: &Event<'_>, item: &Value) -> Option<usize> {
        let (kind, place) = match text(item, "type") {
            "reasoning" => (
                ItemKind::Reasoning,
                answer.open(Block::Thinking(ThinkingBlock::default())),
            ),
            "message" => (
                ItemKind::Message,
                answer.open(Block::Text(TextBlock::default())),
            ),
            "function_call" => {
                let place = answer.open_call(call_id(item), text(item, "name"));
                if !text(item, "arguments").is_empty() {
                    answer.set_argument_text(place, text(item, "arguments"));
                }
                (ItemKind::Call, place)
            }
            _ => return None,
        };
        let id = text(item, "id").to_owned();
        self.items.push(Item {
            output_index: event.output_index,
            id,
            kind,
            place,
        });
        Some(place)
    }

    /// The open block an event belongs to: by output index, else by item id, else the last one.
    fn place(&self, event: &Event<'_>, kind: ItemKind) -> Option<usize> {
        let item_id = event.item_id.non_empty();
        let belongs = |item: &&Item| match (event.output_index, item_id) {
            (Some(index), _) => item.output_index == Some(index),
            (None, Some(id)) => item.id == id,
            (None, None) => true,
        };
        let mut items = self.items.iter().rev();
        items
            .find(|item| item.kind == kind && belongs(item))
            .map(|item| item.place)
    }

    fn grow(&self, answer: &mut Answer, event: &Event<'_>, kind: ItemKind, delta: &str) {
        if let Some(place) = self
            .place(event, kind)
            .filter(|&place| answer.is_open(place))
        {
            answer.grow(place, delta);
        }
    }

    fn done(&mut self, answer: &mut Answer, event: &Event<'_>, item: &Value) {
        let kind = match text(item, "type") {
            "reasoning" => ItemKind::Reasoning,
            "message" => ItemKind::Message,
            "function_call" => ItemKind::Call,
            _ => return,
        };
        let known = self
            .place(event, kind)
            .filter(|&place| answer.is_open(place));
        // Some servers send an item only when it is complete.
        let Some(place) = known.or_else(|| self.added(answer, event, item)) else {
            return;
        };
        match kind {
            ItemKind::Call => complete_arguments(answer, place, text(item, "arguments")),
            ItemKind::Reasoning => {
                if let Some(Block::Thinking(block)) = answer.block_mut(place) {
                    let summary = joined(item, "summary", "\n\n");
                    let content = || joined(item, "content", "\n\n");
                    if let Some(thinking) = summary.or_else(content) {
                        block.thinking = thinking;
                    }
                    block.thinking_signature = Some(item.to_string());
                }
            }
            ItemKind::Message => {
                if let Some(Block::Text(block)) = answer.block_mut(place) {
                    if let Some(text) = joined(item, "content", "") {
                        block.text = text;
                    }
                    block.text_signature = Some(text_signature(item));
                }
            }
        }
        answer.close(place);
    }

    fn completed(&mut self, answer: &mut Answer, response: &Response<'_>) {
        answer.set_response_id(response.id.as_str());
        let known = [
            "completed",
            "incomplete",
            "failed",
            "cancelled",
            "in_progress",
            "queued",
        ];
        if !self.is_codex || known.contains(&response.status.as_str()) {
            answer.set_raw_stop_reason(response.status.as_str());
        }
        if let Some(counts) = &response.usage {
            let details = counts.input_tokens_details.as_ref();
            let Count(cache_read) = details
                .map(|details| details.cached_tokens)
                .unwrap_or_default();
            let details = counts.output_tokens_details.as_ref();
            let Count(reasoning) = details
                .map(|details| details.reasoning_tokens)
                .unwrap_or_default();
            let usage = Usage {
                reasoning: Some(reasoning),
                input: counts.input_tokens.0.saturating_sub(cache_read),
                output: counts.output_tokens.0,
                cache_read,
                total_tokens: counts.total_tokens.0,
                ..Usage::default()
            };
            let multiple = tier_multiple(response.service_tier.as_str(), &answer.model().id);
            answer.set_usage_at(usage, multiple);
        }
        let incomplete = response.incomplete_details.as_ref();
        let reason = incomplete.map_or("", |details| details.reason.as_str());
        self.outcome = Some(match (response.status.as_str(), reason) {
            ("incomplete", "max_output_tokens" | "") => Ok(StopReason::Length),
            ("incomplete", reason) => Err(format!("Response incomplete: {reason}")),
            ("completed" | "in_progress" | "queued" | "", _) => Ok(StopReason::Stop),
            ("failed" | "cancelled", _) => Err(failed(Some(response))),
            _ if self.is_codex => Ok(StopReason::Stop),
            (other, _) => Err(format!("Unhandled response status: {other}")),
        });
    }
}

/// Replaces the streamed arguments by the full text; the part that was not streamed yet is sent as
/// one delta.
fn complete_arguments(answer: &mut Answer, place: usize, full: &str) {
    if full.is_empty() || !answer.is_open(place) {
        return;
    }
    let rest = full
        .strip_prefix(answer.argument_text(place))
        .map(str::to_owned);
    match rest {
        Some(rest) if rest.is_empty() => {}
        Some(rest) => answer.grow(place, &rest),
        None => answer.set_argument_text(place, full),
    }
}

fn text<'a>(item: &'a Value, member: &str) -> &'a str {
    item.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn call_id(item: &Value) -> String {
    match text(item, "id") {
        "" => text(item, "call_id").to_owned(),
        id => format!("{}|{id}", text(item, "call_id")),
    }
}

/// The texts (or refusals) of a list member; `None` if there are none.
fn joined(item: &Value, member: &str, separator: &str) -> Option<String> {
    let parts = item
        .get(member)?
        .as_array()
        .filter(|parts| !parts.is_empty())?;
    let text = |part: &'_ Value| match text(part, "type") {
        "refusal" => text(part, "refusal").to_owned(),
        _ => text(part, "text").to_owned(),
    };
    Some(parts.iter().map(text).collect::<Vec<_>>().join(separator))
}

fn text_signature(item: &Value) -> String {
    let mut signature = json!({ "v": 1, "id": text(item, "id") });
    let phase = text(item, "phase");
    if !phase.is_empty() {
        signature["phase"] = json!(phase);
    }
    signature.to_string()
}

/// The price of a service tier as a multiple of the list price.
fn tier_multiple(tier: &str, model: &str) -> f64 {
    match tier {
        "flex" => 0.5,
        "priority" if model == "gpt-5.5" => 2.5,
        "priority" => 2.0,
        _ => 1.0,
    }
}

fn failed(response: Option<&Response<'_>>) -> String {
    let error = response
        .and_then(|response| response.error.as_ref())
        .filter(|e| e.is_object());
    if let Some(error) = error {
        let code = match text(error, "code") {
            "" => "unknown",
            code => code,
        };
        let message = match text(error, "message") {
            "" => "no message",
            message => message,
        };
        return format!("{code}: {message}");
    }
    let details = response.and_then(|response| response.incomplete_details.as_ref());
    match details.and_then(|details| details.reason.non_empty()) {
        Some(reason) => format!("incomplete: {reason}"),
        None => "Unknown error (no error details in response)".to_owned(),
    }
}

fn codex_error(event: &Event<'_>) -> String {
    let nested = event.error.as_ref().filter(|error| error.is_object());
    let nested = |name: &str| nested.map(|error| text(error, name)).unwrap_or_default();
    let code = event.code.as_str().unwrap_or_default();
    let texts = [
        event.message.as_str(),
        nested("message"),
        code,
        nested("code"),
    ];
    let found = texts.into_iter().find(|text| !text.is_empty());
    format!("Codex error: {}", found.unwrap_or("no details"))
}

fn error_event(event: &Event<'_>) -> String {
    match &event.error {
        Some(error) if !error.is_null() => error_message(error),
        _ => {
            let code = match &event.code {
                Value::String(code) => code.clone(),
                other => other.to_string(),
            };
            format!("Error Code {code}: {}", event.message.as_str())
        }
    }
}
