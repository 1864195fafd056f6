//! Estimates the size of a conversation in tokens, without a request to a provider.

use std::sync::Arc;

use pinion_jsonl::json;
use pinion_message::{Block, Content, Message, StopReason};
use serde_json::Value;

/// The number of characters that an image counts as.
const IMAGE_CHARACTERS: usize = 4800;

/// The size of a context.
pub(crate) struct ContextSize {
    /// The size reported by the last answer plus an estimate of the rest, or an estimate of everything.
    pub tokens: u64,
    /// `tokens`, if an answer reported its usage.
    pub from_usage: Option<u64>,
}

/// Measures a context. The last answer with usage reports the size up to itself; the rest is estimated.
pub(crate) fn context_tokens(messages: &[Arc<Message>]) -> ContextSize {
    let known = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let answer = message.as_assistant()?;
        has_usage(message).then(|| (at, answer.usage.context_tokens()))
    });
    let estimate = |messages: &[Arc<Message>]| -> u64 {
        messages.iter().map(|message| message_tokens(message)).sum()
    };
    match known {
        Some((at, tokens)) => {
            let tokens = tokens + estimate(&messages[at + 1..]);
            ContextSize {
                tokens,
                from_usage: Some(tokens),
            }
        }
        None => ContextSize {
            tokens: estimate(messages),
            from_usage: None,
        },
    }
}

/// Reports whether a message is an answer with the size of its context.
pub(crate) fn has_usage(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| {
        !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
            && answer.usage.context_tokens() > 0
    })
}

/// Estimates the tokens of a message: a quarter of its characters.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    let characters = match message {
        Message::User(user) => content(&user.content, 0),
        Message::Assistant(answer) => answer
            .content
            .iter()
            .map(|block| block_size(block, 0))
            .sum(),
        Message::ToolResult(result) => result
            .content
            .iter()
            .map(|block| block_size(block, IMAGE_CHARACTERS))
            .sum(),
        Message::Custom(custom) => content(&custom.content, IMAGE_CHARACTERS),
        Message::BashExecution(bash) => utf16(&bash.command) + utf16(&bash.output),
        Message::CompactionSummary(summary) => utf16(&summary.summary),
        Message::BranchSummary(summary) => utf16(&summary.summary),
        Message::System(system) => {
            let sections = system.sections.values().filter_map(Value::as_str);
            let tools = utf16(&json::to_string(&system.tools_added));
            sections.map(utf16).sum::<usize>() + tools
        }
    };
    characters.div_ceil(4) as u64
}

fn content(content: &Content, image: usize) -> usize {
    match content {
        Content::Text(text) => utf16(text),
        Content::Blocks(blocks) => blocks.iter().map(|block| block_size(block, image)).sum(),
    }
}

fn block_size(block: &Block, image: usize) -> usize {
    match block {
        Block::Text(text) => utf16(&text.text),
        Block::Thinking(thinking) => utf16(&thinking.thinking),
        Block::Image { .. } => image,
        Block::ToolCall(call) => utf16(&call.name) + utf16(&json::to_string(&call.arguments)),
    }
}

/// Returns the length in UTF-16 units, as JavaScript counts.
pub(crate) fn utf16(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}
