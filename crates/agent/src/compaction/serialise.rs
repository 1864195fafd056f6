//! Prints a conversation as plain text for the prompt of a summary.

use std::sync::Arc;

use pinion_jsonl::json;
use pinion_message::{AssistantMessage, Block, Message, ToolCall};
use serde_json::Value;

use crate::convert::{Images, for_model};

/// Characters of a tool result that are printed; the rest is left out.
const RESULT_LIMIT: usize = 2000;

/// Prints one paragraph per message, without images.
pub(super) fn conversation(messages: &[Arc<Message>]) -> String {
    let mut parts = Vec::new();
    for message in for_model(messages, Images::Sent) {
        match &*message {
            Message::User(user) => {
                let text = user.content.joined_text("");
                if !text.is_empty() {
                    parts.push(format!("[User]: {text}"));
                }
            }
            Message::Assistant(answer) => push_answer(&mut parts, answer),
            Message::ToolResult(result) => {
                let texts: Vec<&str> = result.content.iter().filter_map(Block::as_text).collect();
                let text = texts.concat();
                if !text.is_empty() {
                    parts.push(format!("[Tool result]: {}", shortened(&text)));
                }
            }
            _ => {}
        }
    }
    parts.join("\n\n")
}

fn push_answer(parts: &mut Vec<String>, answer: &AssistantMessage) {
    let thinking: Vec<&str> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Thinking(block) => Some(block.thinking.as_str()),
            _ => None,
        })
        .collect();
    if !thinking.is_empty() {
        parts.push(format!("[Assistant thinking]: {}", thinking.join("\n")));
    }
    let text = answer.joined_text("\n");
    if !text.is_empty() {
        parts.push(format!("[Assistant]: {text}"));
    }
    let calls: Vec<String> = answer.tool_calls().map(call).collect();
    if !calls.is_empty() {
        parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
    }
}

fn call(call: &ToolCall) -> String {
    let arguments: Vec<String> = match &call.arguments {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}={}", json::to_string(value)))
            .collect(),
        _ => Vec::new(),
    };
    format!("{}({})", call.name, arguments.join(", "))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(RESULT_LIMIT) {
        None => text.to_owned(),
        Some((end, _)) => {
            let dropped = text[end..].chars().count();
            format!("{}\n\n[… {dropped} more characters left out]", &text[..end])
        }
    }
}
