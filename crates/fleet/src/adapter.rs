//! The interface of all adapters: they translate the lines of a child into [`ChildEvent`]s.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ChildEvent;
use crate::adapters::{Claude, Codex, Jsonl, Opencode, Pi};
use crate::plan::JsonlRules;

/// The result of reading one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The line was understood.
    Event,
    /// The line is an object of a kind that the adapter ignores.
    Ignored,
    /// The line is not JSON, or lacks what lines of its kind must have.
    Invalid,
}

/// Reads the lines of one attempt of one child.
pub trait Adapter: fmt::Debug + Send {
    /// Returns the name of the JSON member that holds the kind of a line.
    fn member(&self) -> &[u8] {
        b"type"
    }

    /// Reports whether lines of this kind must be parsed in full. For the others the kind is enough, so that long lines
    /// need not be held in memory.
    fn needs_whole(&self, kind: &[u8]) -> bool;

    /// Reads a line of this kind; `line` is empty if [`Adapter::needs_whole`] is false for the kind.
    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading;

    /// Reads a line without a kind at the top level. Most adapters need no such lines.
    fn read_unnamed(&mut self, _line: &[u8], _events: &mut Vec<ChildEvent>) -> Reading {
        Reading::Invalid
    }

    /// Adds the events that follow from the kind alone, for a line that is too long or invalid.
    fn read_kind_only(&mut self, _kind: &[u8], _events: &mut Vec<ChildEvent>) {}

    /// Reports whether exit code 0 would now mean that the child is done. Most children print an event for that before
    /// they exit.
    fn clean_exit_means_done(&self) -> bool {
        false
    }
}

/// The supported kinds of child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// This program.
    #[default]
    Pinion,
    /// `pi --mode json`.
    Pi,
    /// `opencode run --format json`.
    Opencode,
    /// `codex exec --json`.
    Codex,
    /// `claude -p --output-format stream-json`.
    Claude,
    /// Any program that prints lines of JSON; the plan's `events` describe them.
    Jsonl,
}

impl AgentKind {
    /// Every kind with its name in plans.
    pub const ALL: [(&'static str, Self); 6] = [
        ("pinion", Self::Pinion),
        ("pi", Self::Pi),
        ("opencode", Self::Opencode),
        ("codex", Self::Codex),
        ("claude", Self::Claude),
        ("jsonl", Self::Jsonl),
    ];

    /// Returns the name that plans use.
    pub fn as_str(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, kind)| *kind == self);
        named.map_or("jsonl", |(name, _)| name)
    }

    /// Creates the adapter for one attempt.
    pub fn adapter(self, rules: &JsonlRules) -> Box<dyn Adapter> {
        match self {
            Self::Pinion | Self::Pi => Box::new(Pi::default()),
            Self::Opencode => Box::new(Opencode::default()),
            Self::Codex => Box::new(Codex::default()),
            Self::Claude => Box::new(Claude::default()),
            Self::Jsonl => Box::new(Jsonl::new(rules.clone())),
        }
    }
}
