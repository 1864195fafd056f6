//! The events of a child. Every adapter translates the lines of its program into them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChildFailure, Micros};

/// An event of a child.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEvent {
    /// The child started to work, for the first time or again.
    Started {
        /// The child's own name for its session.
        session: Option<String>,
    },
    /// The child printed something that is not progress; it only shows that the child is alive.
    Alive,
    /// The child produced text.
    Text(Text),
    /// The child used a tool.
    Tool {
        name: String,
        phase: ToolPhase,
        effect: Effect,
    },
    /// One request to the model ended.
    StepFinished(Step),
    /// The child reported a failure. It may retry by itself; if it has given up, [`ChildEvent::Idle`] or its exit follows.
    Failed(ChildFailure),
    /// The child is done, unless it starts again.
    Idle,
    /// The child's process ended.
    Exited(ChildExit),
}

/// Text of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A part of a text that is reported in full later.
    Partial,
    /// A complete text.
    Complete(String),
}

/// The phase of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolPhase {
    Started,
    Ended,
    /// The tool started and ended before the child reported it.
    Done,
}

/// The changes that a tool may have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads.
    None,
    /// The tool may change something outside of the child: files, or anything that a command can change.
    Outside,
}

impl Effect {
    /// Returns the effect of the tool `name`. Unknown tools may change anything.
    pub fn of_tool(name: &str) -> Self {
        const READ_ONLY: [&str; 22] = [
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
        if READ_ONLY.contains(&name.as_str()) {
            Self::None
        } else {
            Self::Outside
        }
    }
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub reason: FinishReason,
    pub tokens: Tokens,
    /// The cost, if the child reported it.
    pub cost: Option<Micros>,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Reason")]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The model called tools.
    ToolUse,
    /// The answer was cut off at the token limit.
    Length,
    /// The request failed.
    Error,
    /// The request was stopped.
    Aborted,
    /// The step is not an answer: it summarized the conversation so far.
    Compaction,
    /// The child did not report a known reason.
    Unknown,
}

impl FinishReason {
    /// Parses the reasons of pi, opencode, OpenAI and Anthropic.
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

    /// Returns the reason as shown to users.
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

/// Tokens by kind. `input` excludes tokens read from or written to a cache; `output` includes reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tokens {
    /// Prompt tokens outside of any cache.
    pub input: u64,
    /// Answer tokens.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
}

impl Tokens {
    /// Adds the tokens of another request.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the sum of all kinds.
    pub fn total(&self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }
}

/// The end of a child's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// The operating system did not report how it ended.
    Unknown,
}
