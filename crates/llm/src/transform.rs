//! The conversation as the next model may see it: images it cannot see replaced, other models'
//! thinking and signatures taken off, ids rewritten, broken turns left out and open tool calls
//! answered. Independent of any wire format; messages that need no change are shared, not copied.

use std::collections::HashMap;
use std::sync::Arc;

use pinion_message::{
    AssistantMessage, Block, Content, Message, Model, StopReason, TextBlock, ThinkingBlock,
    ToolCall, ToolResultMessage, UserMessage,
};

use crate::tool_ids::IdRewriter;

/// Stands for images of the user that the model cannot see.
pub(crate) const USER_IMAGE_OMITTED: &str = "[image left out: this model cannot see images]";
/// Stands for images of a tool that the model cannot see.
pub(crate) const TOOL_IMAGE_OMITTED: &str = "[tool image left out: this model cannot see images]";
/// Answers a tool call that never got a result.
pub(crate) const NO_RESULT: &str = "No result provided";

/// `messages` as `model` may see them. Kinds that never reach a model are left out.
pub fn transform(messages: &[Arc<Message>], model: &Model) -> Vec<Arc<Message>> {
    let mut rewriting = Rewriting {
        model,
        ids: IdRewriter::new(model),
        renamed: HashMap::new(),
    };
    let mut pairing = Pairing::with_capacity(messages.len());
    for message in messages {
        match &**message {
            Message::User(_) => {
                pairing.close();
                pairing.output.push(rewriting.user(message));
            }
            Message::Assistant(answer) => {
                pairing.close();
                // What a broken turn said was never acted on; most APIs reject half of one.
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                    pairing.answer(rewriting.assistant(message, answer));
                }
            }
            Message::ToolResult(result) => pairing.result(rewriting.result(message, result)),
            _ => {}
        }
    }
    pairing.close();
    pairing.output
}

/// Pairs tool calls with results, inventing the missing ones and dropping the stray ones.
struct Pairing {
    output: Vec<Arc<Message>>,
    /// Calls of the last answer that have no result yet.
    open: Vec<(String, String)>,
}

impl Pairing {
    fn with_capacity(capacity: usize) -> Self {
        Self {
            output: Vec::with_capacity(capacity),
            open: Vec::new(),
        }
    }

    fn answer(&mut self, message: Arc<Message>) {
        if let Message::Assistant(answer) = &*message {
            self.open.extend(
                answer
                    .tool_calls()
                    .map(|call| (call.id.clone(), call.name.clone())),
            );
        }
        self.output.push(message);
    }

    /// A result without an open call is dropped: most APIs refuse the whole request otherwise.
    fn result(&mut self, message: Arc<Message>) {
        let Message::ToolResult(result) = &*message else {
            return;
        };
        if let Some(position) = self
            .open
            .iter()
            .position(|(id, _)| *id == result.tool_call_id)
        {
            self.open.remove(position);
            self.output.push(message);
        }
    }

    fn close(&mut self) {
        for (id, name) in self.open.drain(..) {
            self.output
                .push(Arc::new(Message::ToolResult(ToolResultMessage {
                    tool_call_id: id,
                    tool_name: name,
                    content: vec![Block::text(NO_RESULT)],
                    details: None,
                    is_error: true,
                    timestamp: pinion_message::now_millis(),
                })));
        }
    }
}

struct Rewriting<'a> {
    model: &'a Model,
    ids: IdRewriter<'a>,
    /// Old to new ids of the calls seen so far, where they differ.
    renamed: HashMap<String, String>,
}

impl Rewriting<'_> {
    fn user(&self, message: &Arc<Message>) -> Arc<Message> {
        let Message::User(UserMessage {
            content: Content::Blocks(blocks),
            timestamp,
            ..
        }) = &**message
        else {
            return message.clone();
        };
        match self.without_images(blocks, USER_IMAGE_OMITTED) {
            None => message.clone(),
            Some(blocks) => Arc::new(Message::User(UserMessage {
                content: Content::Blocks(blocks),
                timestamp: *timestamp,
                attachments: None,
            })),
        }
    }

    fn result(&self, message: &Arc<Message>, result: &ToolResultMessage) -> Arc<Message> {
        let renamed = self.renamed.get(&result.tool_call_id);
        let blocks = self.without_images(&result.content, TOOL_IMAGE_OMITTED);
        if renamed.is_none() && blocks.is_none() {
            return message.clone();
        }
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: renamed.unwrap_or(&result.tool_call_id).clone(),
            tool_name: result.tool_name.clone(),
            content: blocks.unwrap_or_else(|| result.content.clone()),
            details: None,
            is_error: result.is_error,
            timestamp: result.timestamp,
        }))
    }

    /// The blocks with each run of images as one placeholder; `None` if nothing changes.
    fn without_images(&self, blocks: &[Block], placeholder: &str) -> Option<Vec<Block>> {
        let is_image = |block: &Block| matches!(block, Block::Image { .. });
        if self.model.takes_images() || !blocks.iter().any(is_image) {
            return None;
        }
        let mut kept: Vec<Block> = Vec::with_capacity(blocks.len());
        for block in blocks {
            if !is_image(block) {
                kept.push(block.clone());
            } else if kept.last().and_then(Block::as_text) != Some(placeholder) {
                kept.push(Block::text(placeholder));
            }
        }
        Some(kept)
    }

    fn assistant(&mut self, message: &Arc<Message>, answer: &AssistantMessage) -> Arc<Message> {
        let same_model = answer.provider == self.model.provider
            && answer.api == self.model.api
            && answer.model == self.model.id;
        if same_model {
            return if answer.content.iter().any(is_empty_thinking) {
                let kept = answer
                    .content
                    .iter()
                    .filter(|block| !is_empty_thinking(block));
                Arc::new(Message::Assistant(with_content(
                    answer,
                    kept.cloned().collect(),
                )))
            } else {
                message.clone()
            };
        }
        let blocks = answer.content.iter();
        let content = blocks
            .filter_map(|block| self.foreign_block(block, answer))
            .collect();
        Arc::new(Message::Assistant(with_content(answer, content)))
    }

    /// A block another model made: thinking becomes plain text, signatures go.
    fn foreign_block(&mut self, block: &Block, source: &AssistantMessage) -> Option<Block> {
        match block {
            Block::Thinking(ThinkingBlock {
                redacted: Some(true),
                ..
            }) => None,
            Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => None,
            Block::Thinking(thinking) => Some(Block::text(thinking.thinking.clone())),
            Block::Text(text) => Some(Block::Text(TextBlock {
                text: text.text.clone(),
                text_signature: None,
            })),
            Block::ToolCall(call) => {
                let id = self.ids.rewrite(&call.id, source);
                if id != call.id {
                    self.renamed.insert(call.id.clone(), id.clone());
                }
                Some(Block::ToolCall(ToolCall {
                    id,
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                    thought_signature: None,
                    arguments_error: None,
                }))
            }
            Block::Image { .. } => Some(block.clone()),
        }
    }
}

fn is_empty_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking(thinking)
        if thinking.thinking.trim().is_empty()
            && thinking.redacted != Some(true)
            && thinking.thinking_signature.as_deref().unwrap_or_default().is_empty())
}

/// A copy of `answer` with other blocks; its own are not cloned first.
fn with_content(answer: &AssistantMessage, content: Vec<Block>) -> AssistantMessage {
    AssistantMessage {
        content,
        api: answer.api.clone(),
        provider: answer.provider.clone(),
        model: answer.model.clone(),
        usage: answer.usage,
        stop_reason: answer.stop_reason,
        timestamp: answer.timestamp,
        response_id: answer.response_id.clone(),
        response_model: answer.response_model.clone(),
        error_message: None,
    }
}
