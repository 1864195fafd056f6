//! What successful commands are answered with, where the engine's types do not say it already.

use std::sync::Arc;

use pinion_agent::{BashOutcome, Cycled, Disposition};
use pinion_message::{Model, ThinkingLevel};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::shapes::{Entry, SlashCommand, TreeNode};
use crate::wire::WireMessages;

/// What became of what was said.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("x-since" = "modern"))]
pub(crate) struct TakenData {
    disposition: TakenAs,
}

/// What became of what was said.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Disposition")]
enum TakenAs {
    /// A run starts.
    Started,
    /// It waits.
    Queued,
    /// A command of an extension, or an extension, dealt with it.
    Handled,
}

impl From<Disposition> for TakenData {
    fn from(disposition: Disposition) -> Self {
        Self {
            disposition: match disposition {
                Disposition::Started => TakenAs::Started,
                Disposition::Queued => TakenAs::Queued,
                Disposition::Handled => TakenAs::Handled,
            },
        }
    }
}

/// Messages of a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MessagesData<'a> {
    pub messages: WireMessages<'a>,
}

/// The text of an answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextData<'a> {
    pub text: Option<&'a str>,
}

/// A model reached by cycling.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CycledData<'a> {
    model: &'a Model,
    thinking_level: ThinkingLevel,
    /// The models to cycle through were named.
    is_scoped: bool,
}

impl<'a> From<&'a Cycled> for CycledData<'a> {
    fn from(cycled: &'a Cycled) -> Self {
        Self {
            model: &cycled.model,
            thinking_level: cycled.thinking_level,
            is_scoped: cycled.is_scoped,
        }
    }
}

/// Models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelsData<'a> {
    pub models: &'a [Arc<Model>],
}

/// A thinking level.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LevelData {
    pub level: ThinkingLevel,
}

/// Thinking levels.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LevelsData<'a> {
    pub levels: &'a [ThinkingLevel],
}

/// What a shell command gave.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "if" = {"properties": {"truncated": {"const": true}}},
    "then" = {"required": ["fullOutputPath"]}
))]
pub(crate) struct BashData<'a> {
    output: &'a str,
    /// Missing if the command was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    cancelled: bool,
    /// `output` is not all of it.
    truncated: bool,
    /// Where all of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_output_path: Option<&'a str>,
}

impl<'a> From<&'a BashOutcome> for BashData<'a> {
    fn from(outcome: &'a BashOutcome) -> Self {
        Self {
            output: &outcome.output,
            exit_code: outcome.exit_code,
            cancelled: outcome.cancelled,
            truncated: outcome.truncated,
            full_output_path: outcome.full_output_path.as_deref(),
        }
    }
}

/// Whether an extension said no.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CancelledData {
    pub cancelled: bool,
}

/// What the copy was made before.
#[derive(Serialize, JsonSchema)]
#[schemars(extend(
    "if" = {"properties": {"cancelled": {"const": false}}},
    "then" = {"required": ["text"]}
))]
pub(crate) struct ForkData<'a> {
    /// The text of the message that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    /// An extension said no.
    pub cancelled: bool,
}

/// Messages that can be forked from.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ForkMessagesData<'a> {
    messages: Vec<ForkMessage<'a>>,
}

/// A message that can be forked from.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ForkMessage<'a> {
    #[schemars(length(min = 1))]
    entry_id: &'a str,
    text: &'a str,
}

impl<'a> From<&'a [(String, String)]> for ForkMessagesData<'a> {
    fn from(messages: &'a [(String, String)]) -> Self {
        let message = |(entry_id, text): &'a (String, String)| ForkMessage { entry_id, text };
        Self {
            messages: messages.iter().map(message).collect(),
        }
    }
}

/// Texts that waited.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuesData<'a> {
    pub steering: &'a [String],
    pub follow_up: &'a [String],
}

/// Lines of the session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntriesData<'a> {
    #[schemars(with = "Vec<Entry>")]
    pub entries: &'a [Box<RawValue>],
    /// Where the conversation is.
    pub leaf_id: Option<&'a str>,
}

/// Lines of the session as a tree.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeData<'a> {
    #[schemars(with = "Vec<TreeNode>")]
    pub tree: &'a RawValue,
    /// Where the conversation is.
    pub leaf_id: Option<&'a str>,
}

/// Where a way through the tree ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NavigatedData<'a> {
    /// An extension said no.
    pub cancelled: bool,
    /// The text of the message that was left, to be said again.
    pub editor_text: Option<&'a str>,
}

/// A file that was written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PathData<'a> {
    #[schemars(length(min = 1))]
    pub path: &'a str,
}

/// What can be called with `/`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CommandsData<'a> {
    #[schemars(with = "Vec<SlashCommand>")]
    pub commands: &'a Value,
}
