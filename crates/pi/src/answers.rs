//! The data of successful responses, for commands whose engine type does not have the form of the wire.

use std::sync::Arc;

use pinion_agent::{BashOutcome, Cycled, Disposition};
use pinion_message::{Model, ThinkingLevel};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::shapes::{Entry, SlashCommand, TreeNode};
use crate::wire::WireMessages;

/// The effect of a prompt or queued message.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("x-since" = "classic"))]
pub(crate) struct TakenData {
    disposition: TakenAs,
}

/// The effect of a prompt or queued message.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Disposition")]
enum TakenAs {
    /// A run starts.
    Started,
    /// The message waits in a queue.
    Queued,
    /// An extension or one of its commands handled it.
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
    /// Missing or null if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["string", "null"], "x-nullable" = true))]
    pub text: Option<Option<&'a str>>,
}

/// The model that cycling selected.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CycledData<'a> {
    model: &'a Model,
    thinking_level: ThinkingLevel,
    /// Only the models of the scope are cycled through.
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

#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelsData<'a> {
    pub models: &'a [Arc<Model>],
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct LevelData {
    pub level: ThinkingLevel,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct LevelsData<'a> {
    pub levels: &'a [ThinkingLevel],
}

/// The outcome of a shell command.
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
    /// `output` is only a part of the output.
    truncated: bool,
    /// A file with the whole output.
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

/// The answer to a command that an extension may refuse.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CancelledData {
    /// An extension refused.
    pub cancelled: bool,
}

/// The answer to `fork`.
#[derive(Serialize, JsonSchema)]
#[schemars(extend(
    "if" = {"properties": {"cancelled": {"const": false}}},
    "then" = {"required": ["text"]}
))]
pub(crate) struct ForkData<'a> {
    /// The text of the chosen message; the copy ends before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
    /// An extension refused.
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

/// The texts that were removed from the queues.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueuesData<'a> {
    pub steering: &'a [String],
    pub follow_up: &'a [String],
}

/// Entries of the session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntriesData<'a> {
    #[schemars(with = "Vec<Entry>")]
    pub entries: &'a [Box<RawValue>],
    /// The id of the current entry.
    pub leaf_id: Option<&'a str>,
}

/// Entries of the session as a tree.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeData<'a> {
    #[schemars(with = "Vec<TreeNode>")]
    pub tree: &'a RawValue,
    /// The id of the current entry.
    pub leaf_id: Option<&'a str>,
}

/// The answer to `navigate_tree`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NavigatedData<'a> {
    /// An extension refused.
    pub cancelled: bool,
    /// The text of the chosen message, to be edited and sent again.
    pub editor_text: Option<&'a str>,
}

/// A file that was written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PathData<'a> {
    #[schemars(length(min = 1))]
    pub path: &'a str,
}

/// Commands that start with `/`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CommandsData<'a> {
    #[schemars(with = "Vec<SlashCommand>")]
    pub commands: &'a Value,
}
