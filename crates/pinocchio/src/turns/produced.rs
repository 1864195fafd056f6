//! Converts the engine's messages to blocks of a turn.

use std::sync::Arc;

use pinion_history::{Block, BlockKind, Map, Turn};
use pinion_message::{
    AssistantMessage, Block as MessageBlock, Content, Message, StopReason, ThinkingBlock,
    ToolResultMessage, Usage,
};
use serde_json::{Value, json};

use super::{images, put, text_block};
use crate::family::{Family, finish_class};
use crate::ids;
use crate::translate::to_json_text;

/// The messages of a run, and its ids.
#[derive(Debug, Clone, Copy)]
pub struct Produced<'a> {
    pub session_id: &'a str,
    /// The run.
    pub inference_id: &'a str,
    /// The new messages of the conversation, in order. The first prompt is already in the turn.
    pub messages: &'a [Arc<Message>],
}

/// Returns the turn after a run: the turn before, and the messages of the run. Its id stays.
///
/// A failed answer that was repeated is omitted; a failed last answer stays as far as it came.
pub fn final_turn(turn: &Turn, produced: &Produced<'_>) -> Turn {
    let mut turn = turn.clone();
    let is_said = |message: &&Arc<Message>| matches!(***message, Message::User(_));
    let said_first = produced.messages.iter().take_while(is_said).count();
    let messages = &produced.messages[said_first..];
    let mut last_result = None;
    for (at, message) in messages.iter().enumerate() {
        match &**message {
            Message::User(user) => turn.blocks.push(user_block(&user.content)),
            Message::Assistant(answer) => {
                let failed = answer.stop_reason == StopReason::Error;
                if failed && at + 1 < messages.len() {
                    continue;
                }
                let result = inference_result(answer);
                let blocks = answer.content.iter().filter_map(|block| {
                    let mut block = answer_block(block, answer, produced, &turn.id)?;
                    if block.role == "assistant" || block.kind == BlockKind::ToolCall {
                        put(&mut block.metadata, Turn::INFERENCE_RESULT, result.clone());
                    }
                    Some(block)
                });
                let blocks: Vec<Block> = blocks.collect();
                turn.blocks.extend(blocks);
                last_result = Some(result);
            }
            Message::ToolResult(result) => turn.blocks.push(result_block(result)),
            // The message is empty.
            Message::Custom(custom) if custom.content == Content::Blocks(Vec::new()) => {}
            Message::Custom(custom) => turn.blocks.push(user_block(&custom.content)),
            Message::BashExecution(_)
            | Message::CompactionSummary(_)
            | Message::BranchSummary(_)
            | Message::System(_) => {}
        }
    }
    let metadata = &mut turn.metadata;
    put(metadata, Turn::SESSION_ID, produced.session_id);
    put(metadata, Turn::INFERENCE_ID, produced.inference_id);
    if let Some(result) = last_result {
        put(metadata, Turn::INFERENCE_RESULT, result);
    }
    turn
}

fn user_block(content: &Content) -> Block {
    let mut block = text_block(BlockKind::User, &content.joined_text("\n"));
    if let Content::Blocks(blocks) = content {
        let images = images(blocks);
        if !images.is_empty() {
            put(&mut block.payload, "images", images);
        }
    }
    block
}

fn answer_block(
    block: &MessageBlock,
    answer: &AssistantMessage,
    produced: &Produced<'_>,
    turn_id: &str,
) -> Option<Block> {
    match block {
        MessageBlock::Text(text) if text.text.is_empty() => None,
        MessageBlock::Text(text) => {
            let mut block = text_block(BlockKind::LlmText, &text.text);
            put_some(
                &mut block.payload,
                "signature",
                text.text_signature.as_ref(),
            );
            Some(block)
        }
        MessageBlock::Thinking(thinking) => Some(thinking_block(thinking, answer)),
        MessageBlock::ToolCall(call) => {
            let mut payload = Map::new();
            put(&mut payload, "args", call.arguments.clone());
            let correlation = json!({
                "session_id": produced.session_id,
                "run_id": produced.inference_id,
                "turn_id": turn_id,
                "tool_call_id": call.id,
            });
            put(&mut payload, "correlation", correlation);
            put(&mut payload, "id", call.id.clone());
            put(&mut payload, "name", call.name.clone());
            put_some(&mut payload, "signature", call.thought_signature.as_ref());
            Some(Block {
                id: call.id.clone(),
                kind: BlockKind::ToolCall,
                payload,
                ..Block::default()
            })
        }
        MessageBlock::Image { .. } => None,
    }
}

fn thinking_block(thinking: &ThinkingBlock, answer: &AssistantMessage) -> Block {
    let mut block = text_block(BlockKind::Reasoning, &thinking.thinking);
    let payload = &mut block.payload;
    put_some(payload, "signature", thinking.thinking_signature.as_ref());
    if thinking.redacted == Some(true) {
        put(payload, "redacted", true);
    }
    // For responses, the signature is the whole item; other programs look for its parts.
    let item = thinking.thinking_signature.as_deref();
    let item = item.and_then(|item| serde_json::from_str::<Value>(item).ok());
    if let Some(Value::Object(item)) = item {
        for (from, to) in [
            ("encrypted_content", "encrypted_content"),
            ("summary", "summary"),
            ("id", "item_id"),
        ] {
            if let Some(value) = item.get(from) {
                put(payload, to, value.clone());
            }
        }
    }
    // Thinking has no role, so the model's name is attached to it only if it is the only block.
    if answer.content.len() == 1 {
        put(
            &mut block.metadata,
            Turn::INFERENCE_RESULT,
            inference_result(answer),
        );
    }
    block
}

fn result_block(result: &ToolResultMessage) -> Block {
    let text = Content::Blocks(result.content.clone()).joined_text("\n");
    let mut payload = Map::new();
    let (error, given) = if result.is_error {
        (text, Value::Null)
    } else {
        (String::new(), Value::String(to_json_text(text)))
    };
    put(&mut payload, "error", error);
    put(&mut payload, "id", result.tool_call_id.clone());
    put(&mut payload, "result", given);
    let images = images(&result.content);
    if !images.is_empty() {
        put(&mut payload, "images", images);
    }
    Block {
        id: ids::new_id(),
        kind: BlockKind::ToolUse,
        payload,
        ..Block::default()
    }
}

/// Returns the model, the stop reason and the usage of an answer.
fn inference_result(answer: &AssistantMessage) -> Value {
    let family = Family::of(&answer.api);
    let mut result = Map::new();
    put(&mut result, "provider", answer.provider.clone());
    put(&mut result, "model", answer.model.clone());
    put(
        &mut result,
        "stop_reason",
        family.stop_word(answer.stop_reason),
    );
    put(
        &mut result,
        "finish_class",
        finish_class(answer.stop_reason),
    );
    if answer.stop_reason == StopReason::Length {
        put(&mut result, "truncated", true);
    }
    if let Some(usage) = usage(family, &answer.usage) {
        put(&mut result, "usage", usage);
    }
    if answer.usage.cost.total > 0.0 {
        put(&mut result, "cost", answer.usage.cost.total);
    }
    put_some(&mut result, "response_id", answer.response_id.as_ref());
    if !answer.api.is_empty() {
        put(&mut result, "extra", json!({"api": answer.api}));
    }
    Value::Object(result)
}

fn usage(family: &Family, usage: &Usage) -> Option<Value> {
    let usage = family.usage(usage)?;
    let mut counts = Map::new();
    for (name, tokens) in [
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("cached_tokens", usage.cached_tokens),
        (
            "cache_creation_input_tokens",
            usage.cache_creation_input_tokens,
        ),
        ("cache_read_input_tokens", usage.cache_read_input_tokens),
    ] {
        if tokens > 0 {
            put(&mut counts, name, tokens);
        }
    }
    Some(Value::Object(counts))
}

fn put_some(map: &mut Map, name: &str, text: Option<&String>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        put(map, name, text.clone());
    }
}
