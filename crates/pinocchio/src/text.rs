//! Output of a run for people and scripts: text as it arrives, or every event as JSON or YAML.

mod facts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_agent::Event;
use pinion_history::to_yaml;
use pinion_jsonl::{Project, Records, json};
use pinion_message::{Message, Usage};
use serde_json::{Map, Value, json};

use crate::events::ChatEvent;
use crate::family::Family;
use crate::outgoing::Out;
use crate::patch::PatchKind;
use crate::pb::{self, Text};
use crate::translate::{Translator, from_json_text};
use facts::{Facts, facts};

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// Text and thinking as they arrive, the rest in a few words.
    #[default]
    Text,
    /// One object per event and line.
    Json,
    /// The objects as YAML, separated by blank lines.
    Yaml,
}

/// The amount of metadata about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metadata {
    /// No metadata.
    #[default]
    None,
    /// Model, tokens and stop reason.
    Short,
    /// Everything, including ids.
    Full,
}

/// Prints runs without the protocol.
#[derive(Debug)]
pub struct TextPrinter {
    format: TextFormat,
    metadata: Metadata,
    translator: Translator,
    events: Vec<ChatEvent>,
    answer: AnswerFacts,
    /// The last output ended its line.
    at_line_start: bool,
    /// The segment printed last, while its line may continue.
    growing: Option<Text>,
    /// Segments that were printed as they grew and have not ended. Thinking and text may end together.
    printed: Vec<Text>,
}

/// The known facts about the growing answer.
#[derive(Debug, Default)]
struct AnswerFacts {
    api: String,
    provider: String,
    model: String,
    usage: Usage,
    /// The time of the request.
    asked: Option<Instant>,
    /// The duration so far.
    taken: Duration,
}

impl TextPrinter {
    pub fn new(format: TextFormat, metadata: Metadata) -> Self {
        Self {
            format,
            metadata,
            translator: Translator::default(),
            events: Vec::new(),
            answer: AnswerFacts::default(),
            at_line_start: true,
            growing: None,
            printed: Vec::new(),
        }
    }

    fn look_at(&mut self, event: &Event, at: Instant) {
        let asked = *self.answer.asked.get_or_insert(at);
        self.answer.taken = at.saturating_duration_since(asked);
        match event {
            Event::TurnStart => self.answer.asked = Some(at),
            Event::MessageStart(message) | Event::MessageEnd(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.answer.api.clone_from(&answer.api);
                    self.answer.provider.clone_from(&answer.provider);
                    self.answer.model.clone_from(&answer.model);
                    self.answer.usage = answer.usage;
                }
            }
            Event::UsageUpdate(usage) => self.answer.usage = *usage,
            _ => {}
        }
    }

    fn print(&mut self, records: &mut Records) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match self.format {
                TextFormat::Text => self.in_words(&event, records),
                TextFormat::Json | TextFormat::Yaml => self.as_data(&event, records),
            }
        }
        self.events = events;
    }

    fn in_words(&mut self, event: &ChatEvent, records: &mut Records) {
        match event {
            ChatEvent::Patch(patch) if patch.stream.kind != PatchKind::Arguments => {
                self.segment_grows(&patch.stream.facts.message_id, records);
                self.say(&patch.text, records);
            }
            ChatEvent::ReasoningSegmentFinished(finished) => {
                self.segment_ends(&finished.message_id, &finished.content, records);
            }
            ChatEvent::TextSegmentFinished(finished) => {
                self.segment_ends(&finished.message_id, &finished.content, records);
                if self.metadata != Metadata::None {
                    let facts = self.facts_of(&self.about(finished));
                    let yaml = to_yaml(&json!({ "Metadata": facts }));
                    self.say(&yaml, records);
                }
            }
            ChatEvent::ToolCallRequested(call) => {
                self.document(&tool_call(call), records);
            }
            ChatEvent::ToolResultReady(result) => {
                let words = from_json_text(&result.result);
                self.document(&tool_result(result, &words), records);
            }
            ChatEvent::RunFailed(failed) => {
                self.end_line(records);
                self.say(&format!("[error] {}\n", failed.error), records);
            }
            ChatEvent::RunFinished(_) | ChatEvent::RunStopped(_) => self.end_line(records),
            _ => {}
        }
    }

    /// Makes a segment the one whose line continues.
    fn segment_grows(&mut self, segment: &Text, records: &mut Records) {
        if self.growing.as_ref() == Some(segment) {
            return;
        }
        self.end_line(records);
        self.growing = Some(segment.clone());
        if !self.printed.contains(segment) {
            self.printed.push(segment.clone());
        }
    }

    fn segment_ends(&mut self, segment: &Text, whole: &str, records: &mut Records) {
        match self.printed.iter().position(|printed| printed == segment) {
            Some(at) => {
                self.printed.swap_remove(at);
            }
            None => {
                self.end_line(records);
                self.say(whole, records);
            }
        }
        self.end_line(records);
        self.growing = None;
    }

    fn document(&mut self, value: &Value, records: &mut Records) {
        self.end_line(records);
        self.say(&to_yaml(value), records);
    }

    fn say(&mut self, text: &str, records: &mut Records) {
        if let Some(last) = text.as_bytes().last() {
            self.at_line_start = *last == b'\n';
            records.push(&[text.as_bytes()]);
        }
    }

    fn end_line(&mut self, records: &mut Records) {
        if !self.at_line_start {
            self.say("\n", records);
        }
    }

    fn as_data(&mut self, event: &ChatEvent, records: &mut Records) {
        let Some((kind, content)) = self.typed(event) else {
            return;
        };
        let mut object = Map::new();
        object.insert("type".into(), kind.into());
        if !content.is_null() {
            object.insert("content".into(), content);
        }
        if self.metadata != Metadata::None {
            object.insert("metadata".into(), self.facts_of(&facts(event)));
        }
        let object = Value::Object(object);
        match self.format {
            TextFormat::Yaml => records.push(&[to_yaml(&object).as_bytes(), b"\n"]),
            _ => records.push(&[&json::to_vec(&object), b"\n"]),
        }
    }

    /// Returns the type and the content of an event; `None` for events that only the protocol has.
    fn typed(&self, event: &ChatEvent) -> Option<(&'static str, Value)> {
        Some(match event {
            ChatEvent::ProviderCallStarted(_) => ("provider-call-started", Value::Null),
            ChatEvent::ProviderCallMetadataUpdated(_) => {
                ("provider-call-metadata-updated", Value::Null)
            }
            ChatEvent::ProviderCallFinished(_) => ("provider-call-finished", Value::Null),
            ChatEvent::TextSegmentStarted(_) => ("text-segment-started", Value::Null),
            ChatEvent::TextSegmentFinished(finished) => {
                let text = Value::from(&*finished.content);
                let content = match self.metadata {
                    Metadata::Short => json!({"final": text, "meta": self.short(finished)}),
                    Metadata::None | Metadata::Full => text,
                };
                ("text-segment-finished", content)
            }
            ChatEvent::ReasoningSegmentStarted(_) => ("reasoning-segment-started", Value::Null),
            ChatEvent::ReasoningSegmentFinished(finished) => (
                "reasoning-segment-finished",
                Value::from(&*finished.content),
            ),
            ChatEvent::Patch(patch) => {
                let kind = match patch.stream.kind {
                    PatchKind::Text => "text-delta",
                    PatchKind::Thinking => "reasoning-delta",
                    PatchKind::Arguments => "tool-call-arguments-delta",
                };
                (kind, Value::from(&*patch.text))
            }
            ChatEvent::ToolCallStarted(call) => (
                "tool-call-started",
                call_value(&call.tool_call_id, &call.tool_name, &call.input),
            ),
            ChatEvent::ToolCallRequested(call) => ("tool-call-requested", tool_call(call)),
            ChatEvent::ToolExecutionStarted(call) => (
                "tool-execution-started",
                call_value(&call.tool_call_id, &call.tool_name, &call.input),
            ),
            ChatEvent::ToolResultReady(result) => {
                ("tool-result-ready", tool_result(result, &result.result))
            }
            ChatEvent::ToolCallFinished(call) => (
                "tool-call-finished",
                json!({"id": &*call.tool_call_id, "name": &*call.tool_name, "result": "",
                    "status": &*call.status}),
            ),
            ChatEvent::RunFailed(_) => ("error", Value::Null),
            ChatEvent::RunStopped(_) => ("interrupt", Value::Null),
            _ => return None,
        })
    }

    fn short(&self, finished: &pb::ChatTextSegmentFinished) -> Value {
        let usage = Family::of(&self.answer.api).usage(&self.answer.usage);
        let usage = usage.unwrap_or_default();
        json!({
            "model": self.answer.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "stop_reason": &*finished.finish_reason,
            "duration_ms": self.answer.taken.as_millis() as u64,
        })
    }

    fn about(&self, finished: &pb::ChatTextSegmentFinished) -> Facts {
        Facts {
            correlation: finished.correlation.clone(),
            stop_reason: finished.finish_reason.clone(),
            ..Facts::default()
        }
    }

    /// Returns the metadata of an event.
    fn facts_of(&self, facts: &Facts) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| {
            let is_empty = value == Value::Null || value == "" || value == 0;
            if !is_empty {
                object.insert(name.to_owned(), value);
            }
        };
        put("provider", self.answer.provider.as_str().into());
        put("model", self.answer.model.as_str().into());
        put("stop_reason", (*facts.stop_reason).into());
        put("duration_ms", facts.duration_ms.into());
        if let Some(usage) = Family::of(&self.answer.api).usage(&self.answer.usage) {
            put("input_tokens", usage.input_tokens.into());
            put("output_tokens", usage.output_tokens.into());
            put("cached_tokens", usage.cached_tokens.into());
            let written = usage.cache_creation_input_tokens;
            put("cache_creation_input_tokens", written.into());
            put(
                "cache_read_input_tokens",
                usage.cache_read_input_tokens.into(),
            );
        }
        if let (Metadata::Full, Some(ids)) = (self.metadata, &facts.correlation) {
            put("session_id", (*ids.session_id).into());
            put("run_id", (*ids.run_id).into());
            put("turn_id", (*ids.turn_id).into());
            put("provider_call_id", (*ids.provider_call_id).into());
            put("segment_id", (*ids.segment_id).into());
            put("tool_call_id", (*ids.tool_call_id).into());
        }
        if self.metadata == Metadata::Full {
            put("error", (*facts.error).into());
        }
        Value::Object(object)
    }

    fn fault(&mut self, source: &str, during: &str, error: &str, records: &mut Records) {
        let fields = json!({"source": source, "during": during});
        let content = json!({"level": "error", "message": error, "fields": fields});
        let object = json!({"type": "log", "content": content});
        match self.format {
            TextFormat::Text => {
                self.end_line(records);
                self.say(&format!("[info] {source}: {error}\n"), records);
            }
            TextFormat::Json => records.push(&[&json::to_vec(&object), b"\n"]),
            TextFormat::Yaml => records.push(&[to_yaml(&object).as_bytes(), b"\n"]),
        }
    }
}

impl Project for TextPrinter {
    type Item = Out;

    fn project(&mut self, item: Out, records: &mut Records) {
        match item {
            Out::Delta { index, text, .. } => {
                let text: Arc<str> = text.into_shared();
                self.translator.delta(index, &text, &mut self.events);
            }
            Out::Event { event, at, .. } => {
                self.look_at(&event, at);
                if let Event::Fault {
                    source,
                    during,
                    error,
                } = &event
                {
                    self.fault(source, during, error, records);
                }
                self.translator.event(&event, at, &mut self.events);
            }
            Out::RunBegins { start, .. } => self.translator.begin(*start, &mut self.events),
            Out::RunEnded { end, at, .. } => self.translator.end(&end, at, &mut self.events),
            // Frames belong to the protocol.
            Out::Control { .. } => {}
        }
        self.print(records);
    }
}

fn tool_call(call: &pb::ChatToolCallRequested) -> Value {
    call_value(&call.tool_call_id, &call.tool_name, &call.input)
}

fn call_value(id: &str, name: &str, input: &str) -> Value {
    json!({"id": id, "name": name, "input": input})
}

fn tool_result(result: &pb::ChatToolResultReady, text: &str) -> Value {
    json!({"id": &*result.tool_call_id, "name": &*result.tool_name, "result": text,
        "status": &*result.status})
}
