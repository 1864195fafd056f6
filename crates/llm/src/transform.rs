//! Prepares the conversation for the next model: replaces images it cannot see, removes thinking
//! and signatures of other models, rewrites ids, leaves out broken turns and answers open tool
//! calls. Independent of any wire format. Messages that need no change are shared, not copied.

use std::collections::HashMap;
use std::sync::Arc;

use pinion_message::{
    AssistantMessage, Block, Content, Message, Model, StopReason, TextBlock, ThinkingBlock,
    ToolCall, ToolResultMessage, UserMessage,
};

use crate::tool_ids::IdRewriter;

/// Replaces images of the user that the model cannot see.
pub(crate) const USER_IMAGE_OMITTED: &str = "[image left out: this model cannot see images]";
/// Replaces images of a tool that the model cannot see.
pub(crate) const TOOL_IMAGE_OMITTED: &str = "[tool image left out: this model cannot see images]";
/// Answers a tool call that never got a result.
pub(crate) const NO_RESULT: &str = "No result provided";

/// `messages` in the form that `model` accepts. Messages that are never sent to a model are left
/// out.
pub fn transform(messages: &[Arc<Message>], model: &Model) -> Vec<Arc<Message>> {
    rewritten(messages, model, ForeignThinking::BecomesText)
}

/// As [`transform`], without the thinking of other models.
pub(crate) fn transform_dropping_thinking(
    messages: &[Arc<Message>],
    model: &Model,
) -> Vec<Arc<Message>> {
    rewritten(messages, model, ForeignThinking::IsDropped)
}

/// The treatment of thinking of another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForeignThinking {
    BecomesText,
    IsDropped,
}

fn rewritten(
    messages: &[Arc<Message>],
    model: &Model,
    foreign_thinking: ForeignThinking,
) -> Vec<Arc<Message>> {
    let mut rewriting = Rewriting {
        model,
        foreign_thinking,
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
                // The tool calls of a broken turn never ran, and most APIs reject an incomplete
                // turn.
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

/// Pairs tool calls with results: adds the missing results and drops those without a call.
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

    /// Adds a result. One without an open call is dropped: most APIs would reject the whole
    /// request.
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
                    duration_ms: None,
                    timestamp: pinion_message::now_millis(),
                    nested_calls: None,
                })));
        }
    }
}

struct Rewriting<'a> {
    model: &'a Model,
    foreign_thinking: ForeignThinking,
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
            duration_ms: None,
            timestamp: result.timestamp,
            nested_calls: None,
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

    /// Converts a block of another model: thinking becomes plain text, signatures are removed.
    fn foreign_block(&mut self, block: &Block, source: &AssistantMessage) -> Option<Block> {
        match block {
            Block::Thinking(ThinkingBlock {
                redacted: Some(true),
                ..
            }) => None,
            Block::Thinking(_) if self.foreign_thinking == ForeignThinking::IsDropped => None,
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
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}
