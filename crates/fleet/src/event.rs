//! What a child does, in the few words every adapter maps its lines onto.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChildFailure, Micros};

/// Something a child did.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEvent {
    /// It works, for the first time or again.
    Started {
        /// What the child calls its session.
        session: Option<String>,
    },
    /// It says something that is no work: it lives, and nothing more is known.
    Alive,
    /// It writes.
    Text(Text),
    /// It uses a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// Whether the tool begins or has ended.
        phase: ToolPhase,
        /// What the tool may have changed.
        effect: Effect,
    },
    /// One request to its model is over.
    StepFinished(Step),
    /// Something failed. The child may try again by itself; if it has given up, [`ChildEvent::Idle`] or its exit follows.
    Failed(ChildFailure),
    /// It has nothing more to do, unless it says otherwise.
    Idle,
    /// Its process is gone.
    Exited(Ending),
}

/// What it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// More of something that is told in full later.
    Growing,
    /// A text in full.
    Whole(String),
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolPhase {
    /// It begins.
    Begins,
    /// It has ended.
    Ended,
    /// It began and ended before anything was said about it.
    Done,
}

/// What a tool may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Something outside of the child: files, or whatever a command does.
    Outside,
}

impl Effect {
    /// What a tool of this name may change; of unknown tools the worst is thought.
    pub fn of_tool(name: &str) -> Self {
        const HARMLESS: [&str; 22] = [
            "read",
            "grep",
            "find",
            "ls",
            "glob",
            "list",
            "search",
            "codesearch",
            "webfetch",
            "websearch",
            "web_search",
            "web_fetch",
            "todoread",
            "todowrite",
            "todo_list",
            "notebookread",
            "lsp",
            "skill",
            "question",
            "think",
            "reportfindings",
            "update_plan",
        ];
        let name = name.to_ascii_lowercase();
        match HARMLESS.contains(&name.as_str()) {
            true => Self::None,
            false => Self::Outside,
        }
    }
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Why the answer ended.
    pub reason: Reason,
    /// What it took.
    pub tokens: Tokens,
    /// What it cost, if the child says so.
    pub cost: Option<Micros>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is complete.
    Stop,
    /// Tools are to be called.
    ToolUse,
    /// The limit of tokens was reached in the middle.
    Length,
    /// It failed.
    Error,
    /// It was stopped.
    Aborted,
    /// It is a summary of the conversation so far, and no answer to anybody.
    Compaction,
    /// Nobody knows.
    Unknown,
}

impl Reason {
    /// Reads the words of pi, opencode, OpenAI and Anthropic.
    pub fn parse(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "stop_sequence" | "completed" => Self::Stop,
            "toolUse" | "tool-calls" | "tool_calls" | "tool_use" => Self::ToolUse,
            "length" | "max_tokens" | "max_output_tokens" => Self::Length,
            "error" | "content-filter" => Self::Error,
            "aborted" | "cancelled" => Self::Aborted,
            _ => Self::Unknown,
        }
    }

    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool use",
            Self::Length => "length",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Compaction => "compaction",
            Self::Unknown => "unknown",
        }
    }
}

/// Tokens by kind. `input` has none that came from or went to a cache, `output` has those of reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Fresh prompt tokens.
    pub input: u64,
    /// Answer tokens.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
}

impl Tokens {
    /// Adds another request's.
    pub fn add(&mut self, other: &Self) {
        for (ours, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
        ] {
            *ours = ours.saturating_add(more);
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// In a way nobody saw.
    Unknown,
}
