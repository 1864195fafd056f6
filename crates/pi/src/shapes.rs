//! Lines and values that no type of ours prints: put together from slices, made by extensions, or kept as they
//! are. For the schemas only; transcripts prove that what is printed fits. With `x-optional`, what is an `Option`
//! here may be missing there.

#![allow(dead_code, reason = "nothing is ever made of these types")]

use pinion_message::{ToolCall, Usage};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::wire::WireAnswer;

/// An answer that grows.
#[derive(JsonSchema)]
#[schemars(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    extend("x-suffix" = "Event")
)]
pub(crate) enum GrowingLine {
    /// The answer grows. Modern updates carry only what is new; in older ones `message` and `partial` are both
    /// the answer so far.
    MessageUpdate {
        /// What the provider has counted so far.
        #[schemars(extend("x-since" = "modern"))]
        usage: Usage,
        assistant_message_event: Growth,
        #[schemars(extend("x-until" = "classic"))]
        message: WireAnswer<'static>,
    },
}

/// How an answer grows. `contentIndex` is the position of the block.
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
        /// All of it.
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
        /// All of it.
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

/// The user is asked (`select`, `confirm`, `input`, `editor`) or shown something, by an extension or about a tool call.
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
        /// What the editor holds at first.
        prefill: Option<String>,
    },
    Notify {
        message: Option<String>,
        /// `info`, `warning` or `error`; an extension may say something else.
        notify_type: Option<String>,
    },
    SetStatus {
        status_key: Option<String>,
        /// Without it the status goes away.
        status_text: Option<String>,
    },
    SetWidget {
        widget_key: Option<String>,
        /// Without them the widget goes away.
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

/// Where a widget is shown.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum Placement {
    AboveEditor,
    BelowEditor,
}

/// What the user chose in a dialog. It is not answered.
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

/// A line of the session file, as it is there.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("additionalProperties" = true))]
pub(crate) struct Entry {
    r#type: String,
    id: String,
    parent_id: Option<String>,
    timestamp: String,
}

/// A line of the session file, and those that come after it.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-optional" = true))]
pub(crate) struct TreeNode {
    entry: Entry,
    children: Vec<Self>,
    label: Option<String>,
    label_timestamp: Option<String>,
}

/// Something that can be called with `/`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-optional" = true))]
pub(crate) struct SlashCommand {
    /// Without the slash.
    #[schemars(length(min = 1))]
    name: String,
    description: Option<String>,
    source: CommandSource,
    location: Option<CommandLocation>,
    path: Option<String>,
    source_info: Option<Map<String, Value>>,
}

/// What brings a command.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum CommandSource {
    Extension,
    Prompt,
    Skill,
}

/// Where a command was found.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum CommandLocation {
    User,
    Project,
    Path,
}
