//! Types for the schemas only, for lines and values that no type of this crate prints: assembled from slices, made by
//! extensions, or copied unchanged. Transcripts prove that the output is valid. With `x-optional`, an `Option` is a
//! member that may be missing.

#![allow(dead_code, reason = "these types only describe schemas")]

use pinion_message::{ToolCall, Usage};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::wire::WireAnswer;

/// An update of a streamed answer.
#[derive(JsonSchema)]
#[schemars(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    extend("x-suffix" = "Event")
)]
pub(crate) enum UpdateLine {
    /// The answer grows. Modern updates carry only the delta; in older ones `message` and `partial` are both the answer
    /// so far.
    MessageUpdate {
        /// The provider's count so far.
        #[schemars(extend("x-since" = "modern"))]
        usage: Usage,
        assistant_message_event: Growth,
        #[schemars(extend("x-until" = "classic"))]
        message: WireAnswer<'static>,
    },
}

/// The growth of an answer. `contentIndex` is the position of the block.
#[derive(JsonSchema)]
#[schemars(
    tag = "type",
    rename = "AssistantMessageEvent",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    extend("x-suffix" = "Update")
)]
pub(crate) enum Growth {
    TextStart {
        content_index: usize,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    TextDelta {
        content_index: usize,
        delta: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    TextEnd {
        content_index: usize,
        /// The whole text.
        content: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    ThinkingStart {
        content_index: usize,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    ThinkingDelta {
        content_index: usize,
        delta: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    ThinkingEnd {
        content_index: usize,
        /// The whole text.
        content: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    #[schemars(title = "ToolCallStartUpdate")]
    ToolcallStart {
        content_index: usize,
        #[schemars(extend("x-since" = "modern"))]
        id: String,
        #[schemars(extend("x-since" = "modern"))]
        tool_name: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    #[schemars(title = "ToolCallDeltaUpdate")]
    ToolcallDelta {
        content_index: usize,
        /// Raw JSON of the arguments.
        delta: String,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
    #[schemars(title = "ToolCallEndUpdate")]
    ToolcallEnd {
        content_index: usize,
        tool_call: ToolCall,
        #[schemars(extend("x-until" = "classic"))]
        partial: WireAnswer<'static>,
    },
}

/// A question to the user (`select`, `confirm`, `input`, `editor`) or something to show, from an extension or about a
/// tool call.
#[derive(JsonSchema)]
#[schemars(
    tag = "method",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    extend("x-suffix" = "Request", "x-optional" = true)
)]
pub(crate) enum Dialog {
    Select {
        title: Option<String>,
        options: Option<Vec<String>>,
        /// Milliseconds after which it resolves by itself.
        timeout: Option<f64>,
    },
    Confirm {
        title: Option<String>,
        message: Option<String>,
        /// Milliseconds after which it resolves by itself.
        timeout: Option<f64>,
    },
    Input {
        title: Option<String>,
        placeholder: Option<String>,
        /// Milliseconds after which it resolves by itself.
        timeout: Option<f64>,
    },
    Editor {
        title: Option<String>,
        /// The initial text of the editor.
        prefill: Option<String>,
    },
    Notify {
        message: Option<String>,
        /// `info`, `warning` or `error`; an extension may use other values.
        notify_type: Option<String>,
    },
    SetStatus {
        status_key: Option<String>,
        /// The status; without it the status is removed.
        status_text: Option<String>,
    },
    SetWidget {
        widget_key: Option<String>,
        /// The lines; without them the widget is removed.
        widget_lines: Option<Vec<String>>,
        widget_placement: Option<Placement>,
    },
    SetTitle {
        title: Option<String>,
    },
    #[schemars(rename = "set_editor_text")]
    SetEditorText {
        text: Option<String>,
    },
}

/// The position of a widget.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum Placement {
    AboveEditor,
    BelowEditor,
}

/// The user's choice in a dialog. It gets no response.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Choice {
    /// The text of `select`, `input` and `editor`.
    #[schemars(title = "ChosenValue")]
    Value { value: String },
    /// The answer to `confirm`.
    #[schemars(title = "ChosenConfirmation")]
    Confirmed { confirmed: bool },
    /// The user closed the dialog.
    #[schemars(title = "NothingChosen")]
    Cancelled {
        #[schemars(extend("const" = true))]
        cancelled: bool,
    },
}

/// The first line of `--mode json`, and of every session file.
#[derive(JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    extend("additionalProperties" = true, "x-optional" = true)
)]
pub(crate) struct SessionHeader {
    #[schemars(extend("const" = "session"))]
    r#type: String,
    #[schemars(range(min = 1))]
    version: Option<u32>,
    #[schemars(length(min = 1))]
    id: String,
    timestamp: String,
    cwd: String,
    parent_session: Option<String>,
}

/// An entry of the session file, unchanged.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("additionalProperties" = true))]
pub(crate) struct Entry {
    r#type: String,
    id: String,
    parent_id: Option<String>,
    timestamp: String,
}

/// An entry of the session file with its descendants.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-optional" = true))]
pub(crate) struct TreeNode {
    entry: Entry,
    children: Vec<Self>,
    label: Option<String>,
    label_timestamp: Option<String>,
}

/// A command that starts with `/`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-optional" = true))]
pub(crate) struct SlashCommand {
    /// The name without the slash.
    #[schemars(length(min = 1))]
    name: String,
    description: Option<String>,
    source: CommandSource,
    #[schemars(extend("x-until" = "classic"))]
    location: Option<CommandLocation>,
    #[schemars(extend("x-until" = "classic"))]
    path: Option<String>,
    source_info: Option<Map<String, Value>>,
}

/// The origin of a command.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum CommandSource {
    Extension,
    Prompt,
    Skill,
}

/// The place where a command was found.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum CommandLocation {
    User,
    Project,
    Path,
}
