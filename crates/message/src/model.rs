//! Models and tools, as a request names them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ThinkingLevel;
use crate::shape::InputKind;

/// A model that requests can name. Member order is that of pi's `get_state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The id in requests to the API, sent verbatim.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// Selects the wire protocol.
    pub api: String,
    /// Selects credentials.
    pub provider: String,
    /// The URL that requests are sent to.
    pub base_url: String,
    /// The model can think.
    pub reasoning: bool,
    /// The word on the wire for each level; `null` means that the level is not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Option<String>>>")]
    pub thinking_level_map: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    /// The kinds of input: `text`, `image`.
    #[schemars(with = "Vec<InputKind>")]
    pub input: Vec<String>,
    /// USD per million tokens.
    pub cost: ModelCost,
    /// The size of the context window, in tokens.
    pub context_window: u64,
    /// The longest answer, in tokens.
    pub max_tokens: u64,
    /// Static headers. They may hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// Switches for servers that differ from their protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
}

/// USD per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct ModelCost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
    /// Other rates, for long prompts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<CostTier>,
}

/// Rates that apply when the whole prompt is longer than `input_tokens_above`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct CostTier {
    pub input_tokens_above: u64,
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// The description of a tool that a model receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, unique within a session.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

impl ModelCost {
    /// Returns the rates for a prompt of `prompt_tokens`.
    pub(crate) fn for_prompt(&self, prompt_tokens: u64) -> CostTier {
        self.tiers
            .iter()
            .filter(|tier| prompt_tokens > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above)
            .copied()
            .unwrap_or(CostTier {
                input_tokens_above: 0,
                input: self.input,
                output: self.output,
                cache_read: self.cache_read,
                cache_write: self.cache_write,
            })
    }
}

impl Model {
    /// Reports whether the model accepts images.
    pub fn takes_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// Returns the supported levels, weakest first.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let mapped = |level| {
            self.thinking_level_map
                .as_ref()
                .and_then(|map| map.get(&level))
        };
        ThinkingLevel::ALL
            .into_iter()
            .filter(|&level| match mapped(level) {
                Some(value) => value.is_some(),
                None => level < ThinkingLevel::Xhigh,
            })
            .collect()
    }

    /// Returns `level` if the model supports it, else the nearest level above it, else the nearest
    /// below.
    pub fn clamp_thinking(&self, level: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let upward = levels.iter().find(|&&supported| supported >= level);
        upward.or(levels.last()).copied().unwrap_or_default()
    }
}
