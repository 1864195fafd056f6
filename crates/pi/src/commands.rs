//! The commands of classic and modern clients: their names, members and data.
//!
//! One row per command. [`Name`] comes from this table, the decoder matches on it, and the published schemas
//! are printed from it; so a command that is not described here does not exist.

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
    /// Says something to the agent. Success means that it was accepted; events tell what becomes of it.
    Prompt "prompt" {
        /// The words. `/name` calls a template, a skill or a command of an extension.
        message: String,
        images: Option<Vec<ImageBlock>>,
        /// What to do when a run is active; without it the prompt is refused then.
        streaming_behavior: Option<StreamingBehavior>,
    } -> TakenData;

    /// Says something as soon as the model can be told: after the running tool.
    Steer "steer" {
        message: String,
        images: Option<Vec<ImageBlock>>,
    } -> TakenData;

    /// Says something when the run would stop.
    FollowUp "follow_up" {
        message: String,
        images: Option<Vec<ImageBlock>>,
    } -> TakenData;

    /// Stops whatever is going on. Answered when everything has settled.
    Abort "abort" {};

    /// Stops waiting for a retry.
    AbortRetry "abort_retry" {};

    /// Stops the newest shell command.
    AbortBash "abort_bash" {};

    /// Takes out what waits in the queues.
    ClearQueue "clear_queue" {} -> QueuesData<'static>;

    /// Begins an empty session.
    NewSession "new_session" {
        /// Written into the header of the new session as it is.
        parent_session: Option<String>,
    } -> CancelledData;

    /// How the session is.
    GetState "get_state" {} -> StateView;

    /// The conversation as the model will see it next.
    GetMessages "get_messages" {} -> MessagesData<'static>;

    /// Chooses a model.
    SetModel "set_model" {
        provider: String,
        model_id: String,
    } -> Model;

    /// Chooses the next model.
    CycleModel "cycle_model" {} -> Option<CycledData<'static>>;

    /// The models that have a key.
    GetAvailableModels "get_available_models" {} -> ModelsData<'static>;

    /// Chooses how hard the model thinks. What it cannot do becomes the nearest level it can.
    SetThinkingLevel "set_thinking_level" {
        level: ThinkingLevel,
    };

    /// Chooses the next thinking level.
    CycleThinkingLevel "cycle_thinking_level" {} -> Option<LevelData>;

    /// The thinking levels of the model.
    GetAvailableThinkingLevels "get_available_thinking_levels" {} -> LevelsData<'static>;

    /// How many steering messages are delivered at once.
    SetSteeringMode "set_steering_mode" {
        mode: QueueMode,
    };

    /// How many follow-up messages are delivered at once.
    SetFollowUpMode "set_follow_up_mode" {
        mode: QueueMode,
    };

    /// Whether the conversation is summarised by itself.
    SetAutoCompaction "set_auto_compaction" {
        enabled: bool,
    };

    /// Whether failed requests are made again by themselves.
    SetAutoRetry "set_auto_retry" {
        enabled: bool,
    };

    /// Summarises the conversation. Answered when it is done.
    Compact "compact" {
        /// What the summary should look at.
        custom_instructions: Option<String>,
    } -> CompactionView<'static>;

    /// Runs a shell command outside the model's turn. Answered when it is done.
    Bash "bash" {
        command: String,
        /// The model must not see it.
        exclude_from_context: Option<bool>,
    } -> BashData<'static>;

    /// Counts, tokens and cost of the conversation.
    GetSessionStats "get_session_stats" {} -> Stats;

    /// Writes the conversation as one web page.
    ExportHtml "export_html" {
        output_path: Option<String>,
    } -> PathData<'static>;

    /// Goes on with another session.
    SwitchSession "switch_session" {
        session_path: String,
    } -> CancelledData;

    /// Goes on in a copy that ends before a message of the user.
    Fork "fork" {
        entry_id: String,
    } -> ForkData<'static>;

    /// Goes on in a copy.
    Clone "clone" {} -> CancelledData;

    /// The messages that can be forked from.
    GetForkMessages "get_fork_messages" {} -> ForkMessagesData<'static>;

    /// The text of the last answer.
    GetLastAssistantText "get_last_assistant_text" {} -> TextData<'static>;

    /// Names the session.
    SetSessionName "set_session_name" {
        name: String,
    };

    /// The lines of the session.
    GetEntries "get_entries" {
        /// Only those after this entry.
        since: Option<String>,
    } -> EntriesData<'static>;

    /// The lines of the session as a tree.
    GetTree "get_tree" {} -> TreeData<'static>;

    /// Goes to another entry of the session tree. Answered when it is done.
    NavigateTree "navigate_tree" {
        /// A user's message means the place before it.
        target_id: String,
        /// Whether the branch that is left is summarised.
        summarize: Option<bool>,
        /// What the summary should look at.
        custom_instructions: Option<String>,
        /// They stand instead of the usual instructions.
        replace_instructions: Option<bool>,
        /// Names the place that is reached.
        label: Option<String>,
    } -> NavigatedData<'static>;

    /// Names an entry.
    SetLabel "set_label" {
        entry_id: String,
        /// Without it the name is taken away.
        label: Option<String>,
    };

    /// What can be called with `/`.
    GetCommands "get_commands" {} -> CommandsData<'static>;
}

/// What to do with a prompt when a run is active.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum StreamingBehavior {
    Steer,
    FollowUp,
}

/// How many messages of a queue are delivered at once.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[allow(dead_code, reason = "for the schema: the decoder is more lenient")]
enum QueueMode {
    All,
    OneAtATime,
}
