//! Messages and blocks. Member order follows pi's own output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shape::{UserBlock, UserContent};
use crate::{Millis, SystemMessage, ThinkingLevel, Usage};

/// One message of a conversation; `role` selects the variant.
///
/// The first three variants are sent to a model. The others are converted to user messages, or left
/// out, before a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// A message of the user.
    User(UserMessage),
    /// A model's answer.
    Assistant(AssistantMessage),
    /// The result of a tool call.
    ToolResult(ToolResultMessage),
    /// A shell command the user ran outside the model's turn.
    BashExecution(BashExecutionMessage),
    /// A message that an extension added to the conversation.
    Custom(CustomMessage),
    /// A summary that replaces everything before a compaction.
    CompactionSummary(CompactionSummaryMessage),
    /// A summary of an abandoned branch.
    BranchSummary(BranchSummaryMessage),
    /// The system prompt and the tools, or a change of them. Providers receive both outside the conversation.
    System(SystemMessage),
}

/// Either a plain string or a list of blocks; both occur in session files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks, in order.
    Blocks(Vec<Block>),
}

/// One block of content; `type` selects the variant.
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
    /// The arguments; while the answer is streaming, the part that can be parsed so far.
    #[schemars(with = "Map<String, Value>")]
    pub arguments: Value,
    /// Opaque provider data that belongs to this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The reason why the arguments are not valid JSON; `arguments` then holds the part that could
    /// be parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub arguments_error: Option<String>,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model finished its answer.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model requests tool calls.
    ToolUse,
    /// The request failed.
    Error,
    /// The user aborted the request.
    Aborted,
}

impl StopReason {
    /// Returns the word used on the wire.
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

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// Text and images.
    #[schemars(with = "UserContent")]
    pub content: Content,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// Attachments of the early protocol, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>")]
    pub attachments: Option<Value>,
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls, in order.
    pub content: Vec<Block>,
    /// The wire protocol of the request.
    #[serde(default)]
    pub api: String,
    /// The provider that answered.
    #[serde(default)]
    pub provider: String,
    /// The id of the requested model.
    #[serde(default)]
    pub model: String,
    /// Tokens and cost of this one request.
    #[serde(default)]
    pub usage: Usage,
    /// The reason why the answer ended; `stop` while it is streaming.
    pub stop_reason: StopReason,
    /// The time of the request, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: Millis,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that the provider reports, if it differs from `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's own word for the reason why the answer ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// The provider refused to answer; the stop reason is then `error`. Not stored and not sent.
    #[serde(skip)]
    pub refused: bool,
    /// The error message, with stop reasons `error` and `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Milliseconds from the request to the end of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The thinking level of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The id of the tool call.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Text and images for the model.
    #[schemars(with = "Vec<UserBlock>")]
    pub content: Vec<Block>,
    /// Structured data for people and programs; it is not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The call failed.
    #[serde(default)]
    pub is_error: bool,
    /// The running time in milliseconds; absent if the tool did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub duration_ms: Option<u64>,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// The calls that the tool made while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<NestedCalls>,
}

/// The calls that a tool made while it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NestedCalls {
    /// The calls, in the order in which they began.
    pub calls: Vec<NestedCall>,
    /// Every call is listed with its arguments, and has ended.
    pub complete: bool,
}

/// A call that a tool made while it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NestedCall {
    /// The id of the call that made it, `/` and a number.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The outcome.
    pub status: NestedCallStatus,
    /// The arguments; absent if they are too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The length of absent arguments, in bytes of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<u64>,
    /// The running time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The beginning of the text of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The outcome of a call that a tool made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum NestedCallStatus {
    Ok,
    Error,
    /// The call had not ended when the tool ended.
    Unfinished,
}

/// A shell command the user ran outside the model's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command line.
    pub command: String,
    /// The output, cleaned and truncated.
    pub output: String,
    /// The exit code, absent if the command was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The command was aborted.
    #[serde(default)]
    pub cancelled: bool,
    /// `output` is truncated.
    #[serde(default)]
    pub truncated: bool,
    /// The path of a file with the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
    /// The message is not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
}

/// A message that an extension added to the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for this kind of message.
    pub custom_type: String,
    /// The text and images that the model receives.
    #[schemars(with = "UserContent")]
    pub content: Content,
    /// The message is shown to people.
    #[serde(default)]
    pub display: bool,
    /// Data for the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

/// A summary that replaces everything before a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    pub summary: String,
    /// The size of the summarised context, in tokens.
    pub tokens_before: u64,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

/// A summary of an abandoned branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    pub summary: String,
    /// The leaf entry of the abandoned branch, or `root`; `null` if nothing was abandoned.
    #[serde(default)]
    pub from_id: Option<String>,
    /// The time of creation, in milliseconds since 1970.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub timestamp: Millis,
}

impl Block {
    /// Creates a text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock {
            text: text.into(),
            text_signature: None,
        })
    }

    /// Returns the text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

impl Content {
    /// Joins the text blocks with `separator`, or returns the plain string.
    pub fn joined_text(&self, separator: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => joined_text(blocks, separator),
        }
    }
}

impl UserMessage {
    /// Creates a user message from `blocks` with the current time.
    pub fn now(blocks: Vec<Block>) -> Self {
        Self {
            content: Content::Blocks(blocks),
            timestamp: crate::now_millis(),
            attachments: None,
        }
    }
}

impl AssistantMessage {
    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Joins the text blocks with `separator`.
    pub fn joined_text(&self, separator: &str) -> String {
        joined_text(&self.content, separator)
    }

    /// Removes the members that only newer sessions have: raw stop reason, duration, thinking level, and the details
    /// of the usage.
    pub fn remove_measurements(&mut self) {
        self.raw_stop_reason = None;
        self.duration_ms = None;
        self.thinking_level = None;
        self.usage = self.usage.without_details();
    }
}

fn joined_text(blocks: &[Block], separator: &str) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join(separator)
}

impl Message {
    /// Returns the value of the `role` member.
    pub fn role(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::BranchSummary(_) => "branchSummary",
            Self::System(_) => "system",
        }
    }

    /// Returns the assistant message, or `None` for another role.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the time of creation, in milliseconds since 1970.
    pub fn timestamp(&self) -> Millis {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
            Self::BashExecution(message) => message.timestamp,
            Self::Custom(message) => message.timestamp,
            Self::CompactionSummary(message) => message.timestamp,
            Self::BranchSummary(message) => message.timestamp,
            Self::System(message) => message.timestamp,
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
