//! Converts a turn to the initial context of the engine.

use base64::Engine as _;
use pinion_history::{Block, BlockKind, Turn};
use pinion_message::{
    AssistantMessage, Block as MessageBlock, Content, Message, StopReason, TextBlock,
    ThinkingBlock, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use serde_json::{Map, Value, json};

use crate::translate::from_json_text;

/// The initial context of the engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnContext {
    /// The system prompt; several are joined by a blank line.
    pub system_prompt: Option<String>,
    /// The messages before the prompt.
    pub history: Vec<Message>,
    /// The text and images of the last block, if it belongs to the user.
    pub prompt: Option<Vec<MessageBlock>>,
}

/// Reads a turn. Blocks of unknown kinds are skipped.
pub fn context(turn: &Turn) -> TurnContext {
    let mut reading = ContextBuilder::default();
    for block in &turn.blocks {
        reading.block(block);
    }
    reading.end()
}

#[derive(Default)]
struct ContextBuilder {
    system: Vec<String>,
    history: Vec<Message>,
    /// The model's answer, until another role follows.
    answer: Option<AssistantMessage>,
}

impl ContextBuilder {
    fn block(&mut self, block: &Block) {
        let text = || block.payload_text("text").unwrap_or_default().to_owned();
        match block.kind {
            BlockKind::System => self.system.push(text()),
            BlockKind::User => {
                self.end_answer();
                self.history.push(Message::User(UserMessage {
                    content: Content::Blocks(content_blocks(block, text())),
                    timestamp: 0,
                    attachments: None,
                }));
            }
            BlockKind::LlmText => {
                let content_blocks = MessageBlock::Text(TextBlock {
                    text: text(),
                    text_signature: block.payload_text("signature").map(str::to_owned),
                });
                self.answered(block, content_blocks);
            }
            BlockKind::Reasoning => {
                let thought = MessageBlock::Thinking(ThinkingBlock {
                    thinking: text(),
                    thinking_signature: signature(block),
                    redacted: block.payload.get("redacted").and_then(Value::as_bool),
                });
                self.answered(block, thought);
            }
            BlockKind::ToolCall => {
                let text = |name| block.payload_text(name).unwrap_or_default().to_owned();
                let call = MessageBlock::ToolCall(ToolCall {
                    id: text("id"),
                    name: text("name"),
                    arguments: block
                        .payload
                        .get("args")
                        .map_or_else(|| json!({}), arguments),
                    thought_signature: block.payload_text("signature").map(str::to_owned),
                    arguments_error: None,
                });
                self.answered(block, call);
            }
            BlockKind::ToolUse => self.returned(block),
            BlockKind::Other => {}
        }
    }

    fn answered(&mut self, block: &Block, content_blocks: MessageBlock) {
        let answer = self.answer.get_or_insert_with(blank);
        if let Some(result) = block.metadata.get(Turn::INFERENCE_RESULT) {
            name_model(answer, result);
        }
        if matches!(content_blocks, MessageBlock::ToolCall(_)) {
            answer.stop_reason = StopReason::ToolUse;
        }
        answer.content.push(content_blocks);
    }

    fn returned(&mut self, block: &Block) {
        self.end_answer();
        let id = block.payload_text("id").unwrap_or_default();
        let error = block.payload_text("error").unwrap_or_default();
        let text = match block.payload.get("result") {
            _ if !error.is_empty() => error.to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => from_json_text(text),
            Some(other) => other.to_string(),
        };
        let name = self
            .history
            .iter()
            .rev()
            .filter_map(Message::as_assistant)
            .flat_map(AssistantMessage::tool_calls)
            .find(|call| call.id == id)
            .map_or_else(String::new, |call| call.name.clone());
        self.history.push(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: name,
            content: content_blocks(block, text),
            details: None,
            is_error: !error.is_empty(),
            duration_ms: None,
            timestamp: 0,
            nested_calls: None,
        }));
    }

    fn end_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.history.push(Message::Assistant(answer));
        }
    }

    fn end(mut self) -> TurnContext {
        self.end_answer();
        let prompt = match self.history.pop() {
            Some(Message::User(UserMessage {
                content: Content::Blocks(blocks),
                ..
            })) => Some(blocks),
            other => {
                self.history.extend(other);
                None
            }
        };
        TurnContext {
            system_prompt: (!self.system.is_empty()).then(|| self.system.join("\n\n")),
            history: self.history,
            prompt,
        }
    }
}

pub(crate) fn blank() -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: String::new(),
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        timestamp: 0,
        response_id: None,
        response_model: None,
        error_message: None,
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}

/// Signatures are valid only for the model that created them.
fn name_model(answer: &mut AssistantMessage, result: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    answer.provider = text(&result["provider"]);
    answer.model = text(&result["model"]);
    answer.api = text(&result["extra"]["api"]);
}

/// Returns the arguments as an object; some programs store them as text.
pub(crate) fn arguments(args: &Value) -> Value {
    let object = match args {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    match object {
        Value::Object(object) => Value::Object(object),
        _ => Value::Object(Map::new()),
    }
}

/// Returns the text and images of a block.
fn content_blocks(block: &Block, text: String) -> Vec<MessageBlock> {
    let images = block.payload.get("images").and_then(Value::as_array);
    let images = images.map_or(&[][..], Vec::as_slice).iter().map(image);
    let has_images = images.len() > 0;
    let mut blocks: Vec<MessageBlock> = Vec::new();
    if !text.is_empty() || !has_images {
        blocks.push(MessageBlock::text(text));
    }
    blocks.extend(images);
    blocks
}

/// Returns an image; one without data is described by a text.
fn image(image: &Value) -> MessageBlock {
    let text = |name: &str| image[name].as_str().unwrap_or_default();
    let data = match &image["content"] {
        Value::String(data) => Some(data.clone()),
        Value::Array(bytes) => {
            let byte = |byte: &Value| u8::try_from(byte.as_u64()?).ok();
            let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
            bytes.map(|bytes| base64::engine::general_purpose::STANDARD.encode(bytes))
        }
        _ => None,
    };
    match data {
        Some(data) if !data.is_empty() => MessageBlock::Image {
            data,
            mime_type: text("media_type").to_owned(),
        },
        _ => {
            let place = [text("url"), text("file_id")];
            let place = place.into_iter().find(|it| !it.is_empty());
            MessageBlock::text(format!("[image {}]", place.unwrap_or("without content")))
        }
    }
}

/// Returns the signature of a thinking block: as stored, or assembled from the members that another program stored.
fn signature(block: &Block) -> Option<String> {
    if let Some(signature) = block.payload_text("signature") {
        return Some(signature.to_owned());
    }
    let encrypted = block.payload_text("encrypted_content")?;
    let summary = match block.payload.get("summary") {
        Some(Value::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    };
    let item = json!({
        "type": "reasoning",
        "id": block.payload_text("item_id").unwrap_or_default(),
        "summary": summary,
        "encrypted_content": encrypted,
    });
    Some(item.to_string())
}
