//! Reads the settings of a child, which `defaults`, `children` and `judge` may contain.

use std::path::PathBuf;
use std::time::Duration;

use pinion_yaml::{Entry, Node, NodeKind};
use serde_json::Value;

use super::fields::Fields;
use super::{ChildPlan, Failback, Isolation, JsonlRules, OutputFormat};
use crate::{AgentKind, Micros};

/// The keys of settings.
pub(super) const KEYS: [&str; 21] = [
    "agent",
    "isolation",
    "tier",
    "model",
    "timeout",
    "inactivity",
    "grace",
    "retries",
    "length_retries",
    "backoff",
    "failback",
    "budget",
    "output",
    "schema",
    "command",
    "args",
    "env",
    "directory",
    "files",
    "tools",
    "events",
];

/// The settings that a mapping contains; `None` for the others.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub agent: Option<AgentKind>,
    pub isolation: Option<(Isolation, u64)>,
    pub tier: Option<(String, u64)>,
    pub models: Option<Vec<(String, u64)>>,
    timeout: Option<Duration>,
    inactivity: Option<Duration>,
    grace: Option<Duration>,
    retries: Option<u32>,
    length_retries: Option<u32>,
    backoff: Option<Duration>,
    failback: Option<Failback>,
    pub budget: Option<Micros>,
    output: Option<OutputFormat>,
    /// The program and its first arguments, with their line.
    pub command: Option<(Vec<String>, u64)>,
    args: Option<Vec<String>>,
    pub env: Option<Vec<(String, String)>>,
    pub directory: Option<PathBuf>,
    files: Option<Vec<PathBuf>>,
    tools: Option<Vec<String>>,
    events: Option<JsonlRules>,
}

impl Settings {
    /// Reads one member.
    pub fn take(&mut self, key: &str, node: &Node, fields: &mut Fields) {
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        match key {
            "agent" => self.agent = fields.choice(node, key, &AgentKind::ALL),
            "isolation" => {
                let words = [("process", Isolation::Process), ("task", Isolation::Task)];
                let word = fields.choice(node, key, &words);
                self.isolation = word.map(|word| (word, node.at.line));
            }
            "tier" => self.tier = fields.text(node, key).map(|tier| (tier, node.at.line)),
            "model" => self.models = Some(models(node, fields)),
            "timeout" => self.timeout = fields.time(node, key),
            "inactivity" => self.inactivity = fields.time(node, key),
            "grace" => self.grace = fields.time(node, key),
            "retries" => self.retries = fields.count(node, key, 0).map(small),
            "length_retries" => self.length_retries = fields.count(node, key, 0).map(small),
            "backoff" => self.backoff = fields.time(node, key),
            "failback" => {
                let words = [
                    ("unless-changed", Failback::UnlessChanged),
                    ("always", Failback::Always),
                    ("never", Failback::Never),
                ];
                self.failback = fields.choice(node, key, &words);
            }
            "budget" => self.budget = fields.money(node, key),
            "output" => self.output(node, fields),
            "schema" => self.schema(node, fields),
            "command" => self.command = Some((fields.texts(node, key), node.at.line)),
            "args" => self.args = Some(fields.texts(node, key)),
            "env" => self.env = Some(variables(node, fields)),
            "directory" => {
                self.directory = fields.path(node, key);
                if self.directory.as_ref().is_some_and(|path| !path.is_dir()) {
                    fields.problem(
                        node.at.line,
                        "the directory does not exist; create it or choose another",
                    );
                }
            }
            "files" => self.files = Some(files(node, fields)),
            "tools" => self.tools = Some(fields.texts(node, key)),
            "events" => self.events = Some(rules(node, fields)),
            _ => {}
        }
    }

    fn output(&mut self, node: &Node, fields: &mut Fields) {
        let json = fields.choice(node, "output", &[("text", false), ("json", true)]);
        match (json, &self.output) {
            (Some(false), _) => self.output = Some(OutputFormat::Text),
            (Some(true), None | Some(OutputFormat::Text)) => {
                self.output = Some(OutputFormat::Json { schema: None });
            }
            _ => {}
        }
    }

    fn schema(&mut self, node: &Node, fields: &mut Fields) {
        let Some((_, text)) = fields.file(node, "schema") else {
            return;
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(schema) => {
                self.output = Some(OutputFormat::Json {
                    schema: Some(schema),
                });
            }
            Err(error) => {
                let why = pinion_jsonl::explain_with_position(&error);
                fields.problem(node.at.line, format!("schema is not JSON: {why}"));
            }
        }
    }

    /// Returns these settings, with those of `other` where they are `None`.
    pub fn or(self, other: &Self) -> Self {
        // The child's own model or tier overrides both of the defaults.
        let named = self.tier.is_some() || self.models.is_some();
        Self {
            agent: self.agent.or(other.agent),
            isolation: self.isolation.or(other.isolation),
            tier: if named { self.tier } else { other.tier.clone() },
            models: if named {
                self.models
            } else {
                other.models.clone()
            },
            timeout: self.timeout.or(other.timeout),
            inactivity: self.inactivity.or(other.inactivity),
            grace: self.grace.or(other.grace),
            retries: self.retries.or(other.retries),
            length_retries: self.length_retries.or(other.length_retries),
            backoff: self.backoff.or(other.backoff),
            failback: self.failback.or(other.failback),
            budget: self.budget.or(other.budget),
            output: self.output.or_else(|| other.output.clone()),
            command: self.command.or_else(|| other.command.clone()),
            args: self.args.or_else(|| other.args.clone()),
            env: Some(
                [other.env.clone(), self.env]
                    .into_iter()
                    .flatten()
                    .flatten()
                    .collect(),
            ),
            directory: self.directory.or_else(|| other.directory.clone()),
            files: self.files.or_else(|| other.files.clone()),
            tools: self.tools.or_else(|| other.tools.clone()),
            events: self.events.or_else(|| other.events.clone()),
        }
    }

    /// Creates a child with these settings and the built-in defaults.
    pub fn child(self, name: String, prompt: String, models: Vec<String>) -> ChildPlan {
        let seconds = Duration::from_secs;
        let mut args = self.args.unwrap_or_default();
        let agent = self.agent.unwrap_or_default();
        if let Some(tools) = self.tools
            && matches!(agent, AgentKind::Pinion | AgentKind::Pi)
        {
            if tools.is_empty() {
                args.push("--no-tools".into());
            } else {
                args.extend(["--tools".into(), tools.join(",")]);
            }
        }
        ChildPlan {
            name,
            agent,
            isolation: self
                .isolation
                .map(|(isolation, _)| isolation)
                .unwrap_or_default(),
            tier: self.tier.map(|(tier, _)| tier),
            models,
            prompt,
            files: self.files.unwrap_or_default(),
            timeout: self.timeout.unwrap_or(seconds(5 * 60)),
            inactivity: self.inactivity.unwrap_or(seconds(60)),
            grace: self.grace.unwrap_or(seconds(5)),
            retries: self.retries.unwrap_or(1),
            length_retries: self.length_retries.unwrap_or(1),
            backoff: self.backoff.unwrap_or(seconds(1)),
            failback: self.failback.unwrap_or_default(),
            budget: self.budget,
            output: self.output.unwrap_or_default(),
            command: self.command.map(|(words, _)| words).unwrap_or_default(),
            args,
            env: self.env.unwrap_or_default(),
            directory: self.directory,
            events: self.events.unwrap_or_default(),
        }
    }
}

/// Reads one model or several, each with its line.
pub(super) fn models(node: &Node, fields: &mut Fields) -> Vec<(String, u64)> {
    let nodes: Vec<&Node> = match &node.kind {
        NodeKind::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let mut models = Vec::new();
    for node in nodes {
        models.extend(
            fields
                .text(node, "model")
                .map(|model| (model, node.at.line)),
        );
    }
    if models.is_empty() {
        fields.problem(node.at.line, "this list has no model; add at least one");
    }
    models
}

fn variables(node: &Node, fields: &mut Fields) -> Vec<(String, String)> {
    let members = fields.free_members(node, "env");
    let mut variables = Vec::new();
    for Entry { key, value, .. } in members {
        let text = fields.text(value, "a variable");
        variables.extend(text.map(|text| (key.clone(), text)));
    }
    variables
}

fn files(node: &Node, fields: &mut Fields) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for item in fields.items(node, "files") {
        let Some(path) = fields.path(item, "a file") else {
            continue;
        };
        if !path.is_file() {
            let shown = super::fields::display_path(&path, &fields.directory);
            fields.problem(
                item.at.line,
                format!("file \"{shown}\" does not exist; create it or correct the path"),
            );
        }
        files.push(path);
    }
    files
}

fn rules(node: &Node, fields: &mut Fields) -> JsonlRules {
    const KEYS: [&str; 13] = [
        "event",
        "done",
        "failed",
        "text",
        "step",
        "tool",
        "progress",
        "text_field",
        "tool_field",
        "message_field",
        "cost_field",
        "input_field",
        "output_field",
    ];
    let mut rules = JsonlRules::default();
    for Entry { key, value, .. } in fields.members(node, "events", &KEYS) {
        let lists = match key.as_str() {
            "done" => Some(&mut rules.done),
            "failed" => Some(&mut rules.failed),
            "text" => Some(&mut rules.text),
            "step" => Some(&mut rules.step),
            "tool" => Some(&mut rules.tool),
            "progress" => Some(&mut rules.progress),
            _ => None,
        };
        if let Some(list) = lists {
            *list = fields.texts(value, key);
            continue;
        }
        let field = match key.as_str() {
            "event" => &mut rules.event,
            "text_field" => &mut rules.text_field,
            "tool_field" => &mut rules.tool_field,
            "message_field" => &mut rules.message_field,
            "cost_field" => &mut rules.cost_field,
            "input_field" => &mut rules.input_field,
            "output_field" => &mut rules.output_field,
            _ => continue,
        };
        if let Some(text) = fields.text(value, key) {
            *field = text;
        }
    }
    rules
}
