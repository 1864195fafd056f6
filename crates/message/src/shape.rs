//! What may stand where a type of ours could hold more: for schemas only.
//!
//! A [`Block`](crate::Block) is any block; what a user says has no tool calls, and an answer no
//! images. These types say so. Nothing is ever made of them.

use schemars::JsonSchema;

use crate::{TextBlock, ThinkingBlock, ToolCall};

/// Text or an image.
#[derive(Debug, JsonSchema)]
#[schemars(tag = "type", rename_all = "camelCase")]
#[allow(missing_docs)]
pub enum SaidBlock {
    Text(TextBlock),
    Image(ImageBlock),
}

/// Plain text, or blocks in order.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
#[allow(missing_docs)]
pub enum SaidContent {
    Text(String),
    Blocks(Vec<SaidBlock>),
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

/// What a model can be shown.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(missing_docs)]
pub enum InputKind {
    Text,
    Image,
}
