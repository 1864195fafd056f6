//! The plan of a run: which children, on which models, for how long and how much.

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

/// The variable that tells children where the input is.
pub(crate) const INPUT_VARIABLE: &str = "PINION_FLEET_INPUT";

/// Everything a run needs to know, with all files read that a plan names as prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What the plan is called: its `name`, else its file.
    pub name: String,
    /// How many children run at the same time.
    pub parallel: usize,
    /// How long the run may take.
    #[serde(with = "milliseconds")]
    pub timeout: Duration,
    /// With less than this left, nothing is tried again.
    #[serde(with = "milliseconds")]
    pub retry_reserve: Duration,
    /// Money for everything.
    pub budget: Option<Micros>,
    /// When a model is left alone.
    pub breaker: BreakerRules,
    /// Who else has the same breakers.
    #[serde(default)]
    pub sharing: Sharing,
    /// The children, in order.
    pub children: Vec<ChildPlan>,
    /// Who sees all results, last.
    pub judge: Option<ChildPlan>,
    /// What the judge's answer means for the exit code.
    pub verdict: Option<Verdict>,
}

impl Plan {
    /// Whether anything in the plan speaks of what comes on standard input.
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

/// One child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildPlan {
    /// Its name, which is also that of its files.
    pub name: String,
    /// What kind of program it is.
    pub agent: AgentKind,
    /// Where it runs.
    pub isolation: Isolation,
    /// The tier its models come from.
    pub tier: Option<String>,
    /// The models it may run on, in order; none lets the agent choose.
    pub models: Vec<String>,
    /// What it is asked, with `{{ … }}` still in it.
    pub prompt: String,
    /// Files that go with the prompt.
    pub files: Vec<PathBuf>,
    /// How long one attempt may take.
    #[serde(with = "milliseconds")]
    pub timeout: Duration,
    /// How long it may go without progress while no tool runs.
    #[serde(with = "milliseconds")]
    pub inactivity: Duration,
    /// How long it may take to exit when it is done.
    #[serde(with = "milliseconds")]
    pub grace: Duration,
    /// How often it is tried again.
    pub retries: u32,
    /// How often it is tried again because an answer was too long.
    pub length_retries: u32,
    /// The pause before it is tried again, doubled each time.
    #[serde(with = "milliseconds")]
    pub backoff: Duration,
    /// Whether it may be tried again or moved after it changed something.
    pub failback: Failback,
    /// Money for all its attempts.
    pub budget: Option<Micros>,
    /// The form of its answer.
    pub output: Output,
    /// The program and its first arguments, instead of the agent's own.
    pub command: Vec<String>,
    /// Arguments added to the agent's.
    pub args: Vec<String>,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// Where it runs; the fleet's own directory if not said.
    pub directory: Option<PathBuf>,
    /// What lines of `agent: jsonl` mean.
    pub events: JsonlRules,
}

/// Where a child runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In a process of its own.
    #[default]
    Process,
    /// As a task of the fleet's process; pinion only.
    Task,
}

/// Whether a run has its breakers in common with the other runs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// If a hub started it.
    #[default]
    UnderHub,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

/// Whether a child may be tried again, on the same model or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failback {
    /// Only while it has changed nothing outside.
    #[default]
    UnlessChanged,
    /// In any case.
    Always,
    /// It stays on its first model, and is tried again only while it has changed nothing.
    Never,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Any text.
    #[default]
    Text,
    /// JSON, perhaps of a given shape.
    Json {
        /// The JSON Schema it has to fit.
        schema: Option<Value>,
    },
}

/// What the judge's answer means for the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The member of its answer that counts.
    pub field: String,
    /// Its values and their exit codes.
    pub exit: Vec<(String, u8)>,
}

/// Money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// For everything.
    pub run: Option<Micros>,
    /// For one child.
    pub child: Option<Micros>,
}

/// What lines of a program we do not know mean. Paths may have dots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JsonlRules {
    /// The member that names the event.
    pub event: String,
    /// Events after which it is done.
    pub done: Vec<String>,
    /// Events that mean that it failed.
    pub failed: Vec<String>,
    /// Events with text.
    pub text: Vec<String>,
    /// Events at the end of a step.
    pub step: Vec<String>,
    /// Events about a tool.
    pub tool: Vec<String>,
    /// Other events that are progress; `*` for all.
    pub progress: Vec<String>,
    /// Where the text is.
    pub text_field: String,
    /// Where the tool's name is.
    pub tool_field: String,
    /// Where the words about a failure are.
    pub message_field: String,
    /// Where the cost is, in dollars.
    pub cost_field: String,
    /// Where the number of prompt tokens is.
    pub input_field: String,
    /// Where the number of answer tokens is.
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

/// Something wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file it is in.
    pub file: String,
    /// The line, from 1; 0 where no line is to blame.
    pub line: u64,
    /// What is wrong and what to do.
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

/// Everything that is wrong with a plan, in the order of the file.
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

/// Times as whole milliseconds.
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
