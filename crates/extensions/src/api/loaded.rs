//! The result of loading: the registrations of every extension, and the problems.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::ToolDeclaration;

/// An extension that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoadProblem {
    pub path: String,
    /// The reason, for people.
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

/// The reasons why extensions could not be loaded, one line per problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadFailure {
    /// Problems of single extensions.
    #[error("{}", lines(.0))]
    Problems(Vec<LoadProblem>),
    /// The JavaScript engine does not start, so that no extension was loaded.
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
    /// The name without its dashes.
    pub name: String,
    #[serde(rename = "type", default)]
    pub kind: FlagKind,
    /// Help text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The value of the flag if the command line does not set it.
    #[serde(default)]
    pub default: Option<Value>,
}

/// The type of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    /// No value: the flag is present or absent.
    #[default]
    Boolean,
    String,
}

/// The registrations of one extension, for people.
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
    /// The modules it imports, as far as they can be determined.
    pub modules: Vec<String>,
    #[serde(serialize_with = "milliseconds", rename = "loadMilliseconds")]
    pub load_time: Duration,
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1_000_000.0).round() / 1_000.0)
}

/// The registrations of one extension, as JavaScript reports them.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtensionSummary {
    pub path: String,
    pub events: Vec<String>,
    pub tools: Vec<ToolDeclaration>,
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

/// The result of loading, as JavaScript reports it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Summary {
    #[serde(default)]
    pub problems: Vec<LoadProblem>,
    #[serde(default)]
    pub extensions: Vec<ExtensionSummary>,
    #[serde(default)]
    pub commands: Vec<Value>,
}

impl Summary {
    /// Reports whether any extension registers a provider.
    pub fn has_providers(&self) -> bool {
        self.extensions
            .iter()
            .any(|card| !card.providers.is_empty())
    }
}

impl ExtensionSummary {
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
            load_time: crate::ops::duration_from_millis(self.load_time),
        }
    }
}

/// Extensions that were loaded and wait for their session.
#[derive(Debug)]
pub struct Loaded {
    pub extensions: super::Extensions,
    pub(super) summary: Summary,
}

impl Loaded {
    /// Returns the flags that the command line may contain.
    pub fn flags(&self) -> Vec<Flag> {
        let cards = self.summary.extensions.iter();
        cards.flat_map(|card| card.flags.clone()).collect()
    }

    /// Returns the registrations of every extension.
    pub fn report(&self) -> Vec<ExtensionReport> {
        let cards = self.summary.extensions.iter();
        cards.map(ExtensionSummary::report).collect()
    }

    /// Returns the problems that were tolerated.
    pub fn problems(&self) -> &[LoadProblem] {
        &self.summary.problems
    }
}
