//! Tests of the transcript: its drawing, and the work it takes.

mod live;
mod properties;
mod screens;
mod scrolling;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinion_agent::{Event, ToolOutput, ToolRun};
use pinion_message::{
    AssistantMessage, Block, Content, Message, StopReason, ThinkingBlock, ToolCall,
    ToolResultMessage, Usage, UserMessage,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::Value;

use super::{Attention, Fold, Look, Transcript};
use crate::Abilities;
use crate::highlight::Highlighter;
use crate::theme::{Background, Colours, Theme};

/// Owns the parts of a [`Look`].
struct TestLook {
    theme: Theme,
    highlighter: Highlighter,
    thinking: Fold,
    tools: Fold,
    attention: Attention,
    now: Instant,
}

impl TestLook {
    fn new() -> Self {
        Self {
            theme: Theme::new(Background::Dark, Colours::Palette),
            highlighter: Highlighter::off(),
            thinking: Fold::Folded,
            tools: Fold::Folded,
            attention: Attention::Free,
            now: Instant::now(),
        }
    }

    fn unfolded() -> Self {
        Self {
            thinking: Fold::Unfolded,
            tools: Fold::Unfolded,
            ..Self::new()
        }
    }

    fn look(&self) -> Look<'_> {
        Look {
            theme: &self.theme,
            highlighter: &self.highlighter,
            thinking: self.thinking,
            tools: self.tools,
            host: Abilities::Session,
            attention: self.attention,
            now: self.now,
        }
    }
}

fn buffer(transcript: &mut Transcript, width: u16, height: u16, test_look: &TestLook) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    transcript.draw(area, &mut buffer, &test_look.look());
    buffer
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y: u16| {
        let mut text = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += u16::try_from(crate::text::width(symbol).max(1)).unwrap();
        }
        text.trim_end().to_owned()
    };
    (0..area.height).map(row).collect()
}

/// The content of a screen of this size, without trailing blank rows.
fn screen(transcript: &mut Transcript, width: u16, height: u16, test_look: &TestLook) -> String {
    let rows = rows(&buffer(transcript, width, height, test_look));
    rows.join("\n").trim_end().to_owned()
}

/// The whole transcript.
fn whole(transcript: &mut Transcript, width: u16, test_look: &TestLook) -> String {
    screen(transcript, width, 400, test_look)
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage {
        content: Content::Text(text.into()),
        timestamp: 0,
        attachments: None,
    }))
}

fn answer(content: Vec<Block>, stop_reason: StopReason, error: Option<&str>) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content,
        api: "test".into(),
        provider: "test".into(),
        model: "test".into(),
        usage: Usage::default(),
        stop_reason,
        timestamp: 0,
        response_id: None,
        response_model: None,
        error_message: error.map(str::to_owned),
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }))
}

fn thinking(text: &str) -> Block {
    Block::Thinking(ThinkingBlock {
        thinking: text.into(),
        ..ThinkingBlock::default()
    })
}

fn call(id: &str, name: &str, arguments: Value) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        thought_signature: None,
        arguments_error: None,
    })
}

fn output(text: &str, details: Option<Value>) -> ToolOutput {
    ToolOutput {
        content: vec![Block::text(text)],
        details,
        ..ToolOutput::default()
    }
}

/// The events of an answer that is streamed, every block in pieces.
fn streamed(message: &Arc<Message>) -> Vec<Event> {
    let Message::Assistant(complete) = &**message else {
        panic!("not an answer");
    };
    let empty = AssistantMessage {
        content: Vec::new(),
        stop_reason: StopReason::Stop,
        error_message: None,
        ..complete.clone()
    };
    let mut events = vec![Event::MessageStart(Arc::new(Message::Assistant(empty)))];
    for (index, block) in complete.content.iter().enumerate() {
        let (begun, text) = match block {
            Block::Text(text) => (Block::text(""), text.text.clone()),
            Block::Thinking(block) => (thinking(""), block.thinking.clone()),
            Block::ToolCall(made) => (
                call(&made.id, &made.name, Value::Null),
                made.arguments.to_string(),
            ),
            Block::Image { .. } => continue,
        };
        events.push(Event::BlockStart {
            index,
            block: Arc::new(begun),
        });
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(7) {
            events.push(Event::BlockDelta {
                index,
                delta: piece.iter().collect::<String>().into(),
            });
        }
        events.push(Event::BlockEnd {
            index,
            block: Arc::new(block.clone()),
        });
    }
    events.push(Event::MessageEnd(Arc::clone(message)));
    events
}

/// A tool call and its result.
struct TestCall {
    run: Arc<ToolRun>,
    output: Arc<ToolOutput>,
    is_error: bool,
}

impl TestCall {
    fn new(block: &Block, output: ToolOutput, is_error: bool) -> Self {
        let Block::ToolCall(call) = block else {
            panic!("not a call");
        };
        Self {
            run: Arc::new(ToolRun {
                call_id: call.id.as_str().into(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                parent_call_id: None,
            }),
            output: Arc::new(output),
            is_error,
        }
    }

    fn start(&self) -> Event {
        Event::ToolStart(Arc::clone(&self.run))
    }

    fn update(&self, text: &str) -> Event {
        Event::ToolUpdate {
            run: Arc::clone(&self.run),
            output: Arc::new(output(text, None)),
        }
    }

    /// Durations below a second are not shown, so that a loaded transcript equals a followed one.
    fn end(&self, duration: Option<Duration>) -> Event {
        Event::ToolEnd {
            run: Arc::clone(&self.run),
            output: Arc::clone(&self.output),
            is_error: self.is_error,
            duration,
        }
    }

    fn message(&self) -> Arc<Message> {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: self.run.call_id.to_string(),
            tool_name: self.run.name.clone(),
            content: self.output.content.clone(),
            details: self.output.details.clone(),
            is_error: self.is_error,
            duration_ms: None,
            timestamp: 0,
            nested_calls: None,
        }))
    }

    fn events(&self) -> Vec<Event> {
        let mut events = vec![self.start(), self.end(Some(Duration::from_millis(20)))];
        events.extend(said(&self.message()));
        events
    }
}

/// The events of a message that arrives as a whole.
fn said(message: &Arc<Message>) -> [Event; 2] {
    [
        Event::MessageStart(Arc::clone(message)),
        Event::MessageEnd(Arc::clone(message)),
    ]
}

fn apply(transcript: &mut Transcript, events: impl IntoIterator<Item = Event>) {
    for event in events {
        transcript.apply(&event);
    }
}
