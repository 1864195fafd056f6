//! What loading gave: what every extension registered, and what went wrong.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::ToolCard;

/// An extension that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoadProblem {
    /// Its file.
    pub path: String,
    /// Why.
    #[serde(rename = "error")]
    pub message: String,
}

impl fmt::Display for LoadProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Failed to load extension \"{}\": {}",
            self.path, self.message
        )
    }
}

/// Why extensions could not be loaded; one line per problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadFailure {
    /// Some of them have problems.
    #[error("{}", lines(.0))]
    Problems(Vec<LoadProblem>),
    /// None could be loaded: the JavaScript engine does not start.
    #[error("Extensions cannot be run: {0}")]
    Engine(String),
}

fn lines(problems: &[LoadProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A command-line flag of an extension.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Flag {
    /// Without the dashes.
    pub name: String,
    /// What it takes.
    #[serde(rename = "type", default)]
    pub kind: FlagKind,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// Its value when it is not given.
    #[serde(default)]
    pub default: Option<Value>,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    /// Nothing: it is there or not.
    #[default]
    Boolean,
    /// A text.
    String,
}

/// What one extension registers, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ExtensionReport {
    pub path: String,
    pub tools: Vec<String>,
    pub commands: Vec<String>,
    pub flags: Vec<String>,
    pub shortcuts: Vec<String>,
    pub renderers: Vec<String>,
    pub providers: Vec<String>,
    pub events: Vec<String>,
    /// The modules it imports, as far as they are known.
    pub modules: Vec<String>,
    #[serde(serialize_with = "milliseconds", rename = "loadMilliseconds")]
    pub load_time: Duration,
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1_000_000.0).round() / 1_000.0)
}

/// What an extension registered, as JavaScript tells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtensionCard {
    pub path: String,
    pub events: Vec<String>,
    pub tools: Vec<ToolCard>,
    commands: Vec<String>,
    pub flags: Vec<Flag>,
    shortcuts: Vec<String>,
    message_renderers: Vec<String>,
    entry_renderers: Vec<String>,
    providers: Vec<String>,
    load_time: f64,
    #[serde(default)]
    modules: Vec<String>,
}

/// What loading gave, as JavaScript tells it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Summary {
    #[serde(default)]
    pub problems: Vec<LoadProblem>,
    #[serde(default)]
    pub extensions: Vec<ExtensionCard>,
    #[serde(default)]
    pub commands: Vec<Value>,
}

impl Summary {
    /// Whether any extension brings providers along.
    pub fn has_providers(&self) -> bool {
        self.extensions
            .iter()
            .any(|card| !card.providers.is_empty())
    }
}

impl ExtensionCard {
    fn report(&self) -> ExtensionReport {
        let renderers = self.message_renderers.iter().chain(&self.entry_renderers);
        ExtensionReport {
            path: self.path.clone(),
            tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            commands: self.commands.clone(),
            flags: self.flags.iter().map(|flag| flag.name.clone()).collect(),
            shortcuts: self.shortcuts.clone(),
            renderers: renderers.cloned().collect(),
            providers: self.providers.clone(),
            events: self.events.clone(),
            modules: self.modules.clone(),
            load_time: crate::ops::span(self.load_time),
        }
    }
}

/// Extensions that were loaded and wait for their session.
#[derive(Debug)]
pub struct Loaded {
    /// The extensions.
    pub extensions: super::Extensions,
    pub(super) summary: Summary,
}

impl Loaded {
    /// The flags the command line may name.
    pub fn flags(&self) -> Vec<Flag> {
        let cards = self.summary.extensions.iter();
        cards.flat_map(|card| card.flags.clone()).collect()
    }

    /// What every extension registers.
    pub fn report(&self) -> Vec<ExtensionReport> {
        let cards = self.summary.extensions.iter();
        cards.map(ExtensionCard::report).collect()
    }

    /// What went wrong and was passed over; only where problems are tolerated.
    pub fn problems(&self) -> &[LoadProblem] {
        &self.summary.problems
    }
}
