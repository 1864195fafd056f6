//! The commands of classic and modern clients: their names, members and data.
//!
//! One row per command. [`Name`] is generated from this table, the decoder matches on it, and the published schemas are
//! printed from it, so every command must be described here.

mod table;

use pinion_agent::{StateView, Stats};
use pinion_message::shape::ImageBlock;
use pinion_message::{Model, ThinkingLevel};
use schemars::JsonSchema;

pub(crate) use self::table::commands;
use crate::answers::{
    BashData, CancelledData, CommandsData, CycledData, EntriesData, ForkData, ForkMessagesData,
    LevelData, LevelsData, MessagesData, ModelsData, NavigatedData, PathData, QueuesData,
    TakenData, TextData, TreeData,
};
use crate::lines::CompactionView;

commands! {
    /// Starts a run. Success means that the prompt was accepted; events report its progress.
    Prompt "prompt" {
        /// The text. `/name` calls a template, a skill or a command of an extension.
        message: String,
        images: Option<Vec<ImageBlock>>,
        /// The queue to use while a run is active; without it the prompt is rejected then.
        streaming_behavior: Option<StreamingBehavior>,
    } -> TakenData;

    /// Adds a message to the run before its next turn, or to the next run.
    Steer "steer" {
        message: String,
        images: Option<Vec<ImageBlock>>,
    } -> TakenData;

    /// Adds a message that continues the run when it would end.
    FollowUp "follow_up" {
        message: String,
        images: Option<Vec<ImageBlock>>,
    } -> TakenData;

    /// Stops the run, compaction or navigation. Answered when it has ended.
    Abort "abort" {};

    /// Ends the wait for a retry; the run is not retried.
    AbortRetry "abort_retry" {};

    /// Stops the newest shell command.
    AbortBash "abort_bash" {};

    /// Removes all messages from the queues.
    ClearQueue "clear_queue" {} -> QueuesData<'static>;

    /// Starts an empty session.
    NewSession "new_session" {
        /// Stored in the header of the new session, unchanged.
        parent_session: Option<String>,
    } -> CancelledData;

    /// Returns the state of the session.
    GetState "get_state" {} -> StateView;

    /// Returns the conversation as the model will see it next.
    GetMessages "get_messages" {} -> MessagesData<'static>;

    /// Selects a model.
    SetModel "set_model" {
        provider: String,
        model_id: String,
    } -> Model;

    /// Selects the next model.
    CycleModel "cycle_model" {} -> Option<CycledData<'static>>;

    /// Returns the models that have a key.
    GetAvailableModels "get_available_models" {} -> ModelsData<'static>;

    /// Selects the thinking level, or the nearest one that the model supports.
    SetThinkingLevel "set_thinking_level" {
        level: ThinkingLevel,
    };

    /// Selects the next thinking level.
    CycleThinkingLevel "cycle_thinking_level" {} -> Option<LevelData>;

    /// Returns the thinking levels of the model.
    GetAvailableThinkingLevels "get_available_thinking_levels" {} -> LevelsData<'static>;

    /// Sets the number of steering messages that are delivered at once.
    SetSteeringMode "set_steering_mode" {
        mode: QueueMode,
    };

    /// Sets the number of follow-ups that are delivered at once.
    SetFollowUpMode "set_follow_up_mode" {
        mode: QueueMode,
    };

    /// Turns automatic compaction on or off.
    SetAutoCompaction "set_auto_compaction" {
        enabled: bool,
    };

    /// Turns automatic retries of failed requests on or off.
    SetAutoRetry "set_auto_retry" {
        enabled: bool,
    };

    /// Compacts the conversation. Answered when it is done.
    Compact "compact" {
        /// An additional focus for the summary.
        custom_instructions: Option<String>,
    } -> CompactionView<'static>;

    /// Runs a shell command outside the model's turn. Answered when it is done.
    Bash "bash" {
        command: String,
        /// The model does not see the command and its output.
        exclude_from_context: Option<bool>,
    } -> BashData<'static>;

    /// Returns counts, tokens and cost of the conversation.
    GetSessionStats "get_session_stats" {} -> Stats;

    /// Writes the conversation as one web page.
    ExportHtml "export_html" {
        output_path: Option<String>,
    } -> PathData<'static>;

    /// Continues with another session.
    SwitchSession "switch_session" {
        session_path: String,
    } -> CancelledData;

    /// Continues in a copy of the session that ends before a user message.
    Fork "fork" {
        entry_id: String,
    } -> ForkData<'static>;

    /// Continues in a copy of the session.
    Clone "clone" {} -> CancelledData;

    /// Returns the messages that can be forked from.
    GetForkMessages "get_fork_messages" {} -> ForkMessagesData<'static>;

    /// Returns the text of the last answer.
    GetLastAssistantText "get_last_assistant_text" {} -> TextData<'static>;

    /// Sets the name of the session.
    SetSessionName "set_session_name" {
        name: String,
    };

    /// Returns the entries of the session.
    GetEntries "get_entries" {
        /// Return only the entries after this one.
        since: Option<String>,
    } -> EntriesData<'static>;

    /// Returns the entries of the session as a tree.
    GetTree "get_tree" {} -> TreeData<'static>;

    /// Makes another entry of the session tree the current one. Answered when it is done.
    NavigateTree "navigate_tree" {
        /// The entry. For a user message its parent becomes the current entry.
        target_id: String,
        /// Write a summary of the abandoned branch.
        summarize: Option<bool>,
        /// An additional focus for the summary.
        custom_instructions: Option<String>,
        /// `customInstructions` replace the default instructions.
        replace_instructions: Option<bool>,
        /// A label for the new current entry.
        label: Option<String>,
    } -> NavigatedData<'static>;

    /// Sets the label of an entry.
    SetLabel "set_label" {
        entry_id: String,
        /// The label; without it the label is removed.
        label: Option<String>,
    };

    /// Returns the commands that start with `/`.
    GetCommands "get_commands" {} -> CommandsData<'static>;
}

/// The queue for a prompt while a run is active.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum StreamingBehavior {
    Steer,
    FollowUp,
}

/// The number of queued messages that are delivered at once.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum QueueMode {
    All,
    OneAtATime,
}
