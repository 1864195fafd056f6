//! What every kind of child has in common: its lines become [`ChildEvent`]s.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ChildEvent;
use crate::adapters::{Claude, Codex, Jsonl, Opencode, Pi};
use crate::plan::JsonlRules;

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It means something.
    Event,
    /// It is an object that means nothing to us.
    Other,
    /// It cannot be read: it is no JSON, or not what a line of its kind should be.
    Misfit,
}

/// Reads the lines of one attempt of one child.
pub trait Adapter: fmt::Debug + Send {
    /// The member that says what a line is.
    fn member(&self) -> &[u8] {
        b"type"
    }

    /// Whether a line of this kind has to be there in full, or its kind says it all.
    fn needs_whole(&self, kind: &[u8]) -> bool;

    /// Reads a line of this kind; `line` is empty where the kind says it all.
    fn read(&mut self, kind: &[u8], line: &[u8], events: &mut Vec<ChildEvent>) -> Reading;

    /// Reads a line whose kind cannot be told by a look at one member. Most children print none that matter.
    fn read_unnamed(&mut self, _line: &[u8], _events: &mut Vec<ChildEvent>) -> Reading {
        Reading::Misfit
    }

    /// What the kind alone says about a line that is too long or cannot be read.
    fn gist(&mut self, _kind: &[u8], _events: &mut Vec<ChildEvent>) {}

    /// Whether a clean exit now says that it is done. Most children say so themselves before they exit.
    fn exit_is_enough(&self) -> bool {
        false
    }
}

/// The kinds of child there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// Ourselves.
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
    /// Anything that prints lines of JSON, by the rules of the plan.
    Jsonl,
}

impl AgentKind {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("pinion", Self::Pinion),
        ("pi", Self::Pi),
        ("opencode", Self::Opencode),
        ("codex", Self::Codex),
        ("claude", Self::Claude),
        ("jsonl", Self::Jsonl),
    ];

    /// Its name in a plan.
    pub fn as_str(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, kind)| *kind == self);
        named.map_or("jsonl", |(name, _)| name)
    }

    /// A reader for one attempt.
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
