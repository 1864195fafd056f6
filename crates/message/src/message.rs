//! Messages and blocks. Member order follows pi's own output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shape::{SaidBlock, SaidContent};
use crate::{Millis, Usage};

/// One message of a conversation, told apart by `role`.
///
/// The first three kinds go to a model; the others are turned into user messages, or left out,
/// before a request is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// What the user said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool returned.
    ToolResult(ToolResultMessage),
    /// A shell command the user ran outside the model's turn.
    BashExecution(BashExecutionMessage),
    /// A message an extension put into the conversation.
    Custom(CustomMessage),
    /// Stands for everything before a compaction.
    CompactionSummary(CompactionSummaryMessage),
    /// Stands for a branch that was left.
    BranchSummary(BranchSummaryMessage),
}

/// Either a plain string or a list of blocks; both occur in real session files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks in order.
    Blocks(Vec<Block>),
}

/// One block of content, told apart by `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Block {
    /// Text.
    Text(TextBlock),
    /// Reasoning.
    Thinking(ThinkingBlock),
    /// An image, base64 without a `data:` prefix.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Base64 bytes.
        data: String,
        /// For example `image/png`.
        mime_type: String,
    },
    /// A request to run a tool.
    ToolCall(ToolCall),
}

/// A text block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Opaque provider data that belongs to this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
}

/// A reasoning block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingBlock {
    /// The reasoning text.
    pub thinking: String,
    /// Opaque provider data that proves or names this reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// The provider withheld the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
}

/// A tool call made by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments; while the answer grows, what can be read of them so far.
    #[schemars(with = "Map<String, Value>")]
    pub arguments: Value,
    /// Opaque provider data that belongs to this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Why what the model wrote as arguments is not JSON; `arguments` is then what could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub arguments_error: Option<String>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model wants tools run.
    ToolUse,
    /// The request failed.
    Error,
    /// The user aborted.
    Aborted,
}

impl StopReason {
    /// The word used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// Text and images.
    #[schemars(with = "SaidContent")]
    pub content: Content,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// Attachments of the early protocol, kept as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>")]
    pub attachments: Option<Value>,
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls in order.
    pub content: Vec<Block>,
    /// The wire protocol that produced it.
    #[serde(default)]
    pub api: String,
    /// The provider that produced it.
    #[serde(default)]
    pub provider: String,
    /// The model id that was asked for.
    #[serde(default)]
    pub model: String,
    /// Tokens and cost of this one request.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended; `stop` while it is still growing.
    pub stop_reason: StopReason,
    /// When the request was made.
    #[serde(default)]
    pub timestamp: Millis,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model the provider says it used, where it differs from `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// What went wrong, with stop reasons `error` and `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call it answers.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Text and images for the model.
    #[schemars(with = "Vec<SaidBlock>")]
    pub content: Vec<Block>,
    /// Structured data for people and programs; the model does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The call failed.
    #[serde(default)]
    pub is_error: bool,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

/// A shell command the user ran outside the model's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command line.
    pub command: String,
    /// Its output, cleaned and truncated.
    pub output: String,
    /// Its exit code, absent when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// It was aborted.
    #[serde(default)]
    pub cancelled: bool,
    /// `output` is not all of it.
    #[serde(default)]
    pub truncated: bool,
    /// Where all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// The model must not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
}

/// A message an extension put into the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for this kind of message.
    pub custom_type: String,
    /// What the model sees.
    #[schemars(with = "SaidContent")]
    pub content: Content,
    /// Whether people see it.
    #[serde(default)]
    pub display: bool,
    /// Data for the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

/// Stands for everything before a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    pub summary: String,
    /// Size of the context that was summarised.
    pub tokens_before: u64,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

/// Stands for a branch that was left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    pub summary: String,
    /// The entry that was left, or `root`.
    pub from_id: String,
    /// When it was made.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

impl Block {
    /// A text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock {
            text: text.into(),
            text_signature: None,
        })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

impl Content {
    /// The text blocks (or the plain string) joined by `separator`.
    pub fn joined_text(&self, separator: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => joined_text(blocks, separator),
        }
    }
}

impl UserMessage {
    /// A user message made of `blocks`, stamped now.
    pub fn now(blocks: Vec<Block>) -> Self {
        Self {
            content: Content::Blocks(blocks),
            timestamp: crate::now_millis(),
            attachments: None,
        }
    }
}

impl AssistantMessage {
    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The text blocks joined by `separator`.
    pub fn joined_text(&self, separator: &str) -> String {
        joined_text(&self.content, separator)
    }
}

fn joined_text(blocks: &[Block], separator: &str) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join(separator)
}

impl Message {
    /// The word in the `role` member.
    pub fn role(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::BranchSummary(_) => "branchSummary",
        }
    }

    /// The assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// When it was made.
    pub fn timestamp(&self) -> Millis {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
            Self::BashExecution(message) => message.timestamp,
            Self::Custom(message) => message.timestamp,
            Self::CompactionSummary(message) => message.timestamp,
            Self::BranchSummary(message) => message.timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_pis_order() {
        let line = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":"ls"}}],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0.5,"output":0.5,"cacheRead":0.5,"cacheWrite":0.5,"total":2.5}},"stopReason":"toolUse","timestamp":7,"errorMessage":"x"}"#;
        let message: Message = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }

    #[test]
    fn user_content_may_be_a_string() {
        let line = r#"{"role":"user","content":"hi","timestamp":1}"#;
        let message: Message = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
}
