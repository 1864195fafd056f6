//! Types that only JSON Schemas use, where a field holds less than its Rust type could.
//!
//! A [`Block`](crate::Block) is any block, but a user's message has no tool calls, and an answer
//! has no images. These types describe such restrictions and are never constructed.

use schemars::JsonSchema;

use crate::{TextBlock, ThinkingBlock, ToolCall};

/// Text or an image.
#[derive(Debug, JsonSchema)]
#[schemars(tag = "type", rename_all = "camelCase")]
#[allow(missing_docs)]
pub enum UserBlock {
    Text(TextBlock),
    Image(ImageBlock),
}

/// Plain text, or blocks in order.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
#[allow(missing_docs)]
pub enum UserContent {
    Text(String),
    Blocks(Vec<UserBlock>),
}

/// A block of an answer.
#[derive(Debug, JsonSchema)]
#[schemars(tag = "type", rename_all = "camelCase")]
#[allow(missing_docs)]
pub enum AnswerBlock {
    Text(TextBlock),
    Thinking(ThinkingBlock),
    ToolCall(ToolCall),
}

/// An image.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct ImageBlock {
    /// Base64, without a `data:` prefix.
    pub data: String,
    /// For example `image/png`.
    pub mime_type: String,
}

/// A kind of input that a model accepts.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(missing_docs)]
pub enum InputKind {
    Text,
    Image,
}
