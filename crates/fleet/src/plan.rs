//! The plan of a run: its children, their models, time limits and budgets.

mod children;
mod fields;
mod models;
mod programs;
mod read;
mod settings;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentKind, BreakerRules, Micros, prompt};

pub(crate) use self::children::JUDGE;
pub use self::read::read_plan;

/// The environment variable with the path of the input file.
pub(crate) const INPUT_VARIABLE: &str = "PINION_FLEET_INPUT";

/// A validated plan; prompts in files are already read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The plan's `name`, or the name of its file.
    pub name: String,
    /// The largest number of children that run at the same time.
    pub parallel: usize,
    /// The time limit of the whole run.
    #[serde(with = "milliseconds")]
    pub timeout: Duration,
    /// If less time is left, nothing is retried.
    #[serde(with = "milliseconds")]
    pub retry_reserve: Duration,
    /// The budget of the whole run.
    pub budget: Option<Micros>,
    pub breaker: BreakerRules,
    #[serde(default)]
    pub sharing: Sharing,
    pub children: Vec<ChildPlan>,
    /// The child that receives all results and runs last.
    pub judge: Option<ChildPlan>,
    pub verdict: Option<Verdict>,
}

impl Plan {
    /// Returns the number of children, and whether there is a judge, in words.
    pub fn summary(&self) -> String {
        let noun = match self.children.len() {
            1 => "child",
            _ => "children",
        };
        let judge = if self.judge.is_some() {
            " and a judge"
        } else {
            ""
        };
        format!("{} {noun}{judge}", self.children.len())
    }

    /// Reports whether anything in the plan refers to standard input.
    pub fn uses_input(&self) -> bool {
        self.children.iter().chain(&self.judge).any(|child| {
            let names = ["input", "input_path"];
            let words = child.command.iter().chain(&child.args);
            let values = child.env.iter().map(|(_, value)| value);
            names.iter().any(|name| prompt::uses(&child.prompt, name))
                || words
                    .chain(values)
                    .chain([&child.prompt])
                    .any(|text| text.contains(INPUT_VARIABLE))
        })
    }
}

/// The settings of one child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildPlan {
    /// The name of the child and of its files.
    pub name: String,
    pub agent: AgentKind,
    pub isolation: Isolation,
    /// The tier that lists its models.
    pub tier: Option<String>,
    /// The models it may use, in order; if empty, the agent chooses.
    pub models: Vec<String>,
    /// The prompt, with `{{ … }}` not yet replaced.
    pub prompt: String,
    /// Files that accompany the prompt.
    pub files: Vec<PathBuf>,
    /// The time limit of one attempt.
    #[serde(with = "milliseconds")]
    pub timeout: Duration,
    /// The longest time without progress while no tool runs.
    #[serde(with = "milliseconds")]
    pub inactivity: Duration,
    /// The time to exit after the child is done.
    #[serde(with = "milliseconds")]
    pub grace: Duration,
    /// The number of retries after failures that may be temporary.
    pub retries: u32,
    /// The number of retries after an answer was cut off at the token limit.
    pub length_retries: u32,
    /// The pause before the first retry; it doubles with each retry.
    #[serde(with = "milliseconds")]
    pub backoff: Duration,
    pub failback: Failback,
    /// The budget of all its attempts.
    pub budget: Option<Micros>,
    pub output: OutputFormat,
    /// The program and its first arguments, instead of the agent's own.
    pub command: Vec<String>,
    /// Arguments after those of the agent.
    pub args: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// The directory it runs in; by default the fleet's working directory.
    pub directory: Option<PathBuf>,
    /// The meaning of the lines of `agent: jsonl`.
    pub events: JsonlRules,
}

/// The execution of a child: as a process or as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In a process of its own.
    #[default]
    Process,
    /// As a task of the fleet's process; only for `agent: pinion`.
    Task,
}

/// The condition under which a run shares its breakers with the other runs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Shared if a hub started the run.
    #[default]
    UnderHub,
    Always,
    Never,
}

/// The condition under which a child is retried or moved to another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failback {
    /// Only if no attempt may have changed anything outside of the child.
    #[default]
    UnlessChanged,
    /// Also after changes.
    Always,
    /// Never moved to another model; retried only if no attempt may have changed anything.
    Never,
}

/// The required format of an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// Any text.
    #[default]
    Text,
    /// JSON.
    Json {
        /// The JSON Schema that the answer must match.
        schema: Option<Value>,
    },
}

/// The translation of the judge's answer into the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The member of the answer that holds the verdict.
    pub field: String,
    /// The known verdicts and their exit codes.
    pub exit: Vec<(String, u8)>,
}

/// The cost limits of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// The limit for the whole run.
    pub run: Option<Micros>,
    /// The limit for each child.
    pub child: Option<Micros>,
}

/// The meaning of the lines of a program without an adapter of its own. Fields are paths: dots separate members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonlRules {
    /// The path of the event's name.
    pub event: String,
    /// Events that report that the child is done.
    pub done: Vec<String>,
    /// Events that report a failure.
    pub failed: Vec<String>,
    /// Events with text.
    pub text: Vec<String>,
    /// Events at the end of a step.
    pub step: Vec<String>,
    /// Events about a tool.
    pub tool: Vec<String>,
    /// Other events that count as progress; `*` for all.
    pub progress: Vec<String>,
    /// The path of the text.
    pub text_field: String,
    /// The path of the tool's name.
    pub tool_field: String,
    /// The path of the message of a failure.
    pub message_field: String,
    /// The path of the cost in dollars.
    pub cost_field: String,
    /// The path of the number of prompt tokens.
    pub input_field: String,
    /// The path of the number of answer tokens.
    pub output_field: String,
}

impl Default for JsonlRules {
    fn default() -> Self {
        let word = |word: &str| word.to_owned();
        Self {
            event: word("type"),
            done: vec![word("done")],
            failed: vec![word("error")],
            text: vec![word("text")],
            step: vec![word("step")],
            tool: vec![word("tool")],
            progress: Vec::new(),
            text_field: word("text"),
            tool_field: word("name"),
            message_field: word("message"),
            cost_field: word("cost"),
            input_field: word("usage.input"),
            output_field: word("usage.output"),
        }
    }
}

/// A mistake in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// The line, from 1; 0 if the mistake has no line.
    pub line: u64,
    /// A description of the mistake and of its correction.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// All mistakes in a plan, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanError {}

/// Serializes durations as whole milliseconds.
pub(crate) mod milliseconds {
    use super::Duration;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
