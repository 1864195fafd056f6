//! Inference settings with their types, and how they are shown.

use std::collections::BTreeMap;
use std::fmt;

use pinion_message::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tree::Tree;

/// Everything a run is told about models.
///
/// Made from a checked [`Tree`], which is what is shown; members nobody knows are kept there.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct InferenceSettings {
    pub api: ApiSettings,
    pub chat: ChatSettings,
    pub client: ClientSettings,
    pub openai: OpenAiSettings,
    pub claude: ClaudeSettings,
    pub gemini: GeminiSettings,
    pub inference: InferenceOverrides,
    pub model_info: ModelInfo,
    #[serde(skip)]
    tree: Tree,
}

/// Keys, addresses and what may be reached.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ApiSettings {
    /// By `<provider>-api-key`.
    pub api_keys: BTreeMap<String, Secret>,
    /// By `<provider>-base-url`.
    pub base_urls: BTreeMap<String, String>,
    /// Whether a provider may be asked without encryption.
    pub allow_http: BTreeMap<String, bool>,
    /// Whether a provider may be on this machine or its network.
    pub allow_local_networks: BTreeMap<String, bool>,
}

/// The `chat` section.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct ChatSettings {
    pub engine: Option<String>,
    pub api_type: Option<String>,
    pub max_response_tokens: Option<i64>,
    pub top_p: Option<f64>,
    pub temperature: Option<f64>,
    pub stop: Vec<String>,
    /// Ignored: answers always stream.
    pub stream: Option<bool>,
    pub cache_type: Option<String>,
    pub cache_max_size: Option<i64>,
    pub cache_max_entries: Option<i64>,
    pub cache_directory: Option<String>,
    pub structured_output_mode: Option<String>,
    pub structured_output_name: Option<String>,
    pub structured_output_description: Option<String>,
    /// JSON Schema as text.
    pub structured_output_schema: Option<String>,
    pub structured_output_strict: Option<bool>,
    pub structured_output_require_valid: Option<bool>,
}

/// The `client` section.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct ClientSettings {
    /// Seconds.
    pub timeout: Option<i64>,
    pub organization: Option<String>,
    pub user_agent: Option<String>,
    /// May hold a password.
    pub proxy_url: Option<Secret>,
    pub proxy_from_environment: Option<bool>,
}

/// The `openai` section.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct OpenAiSettings {
    pub n: Option<i64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub logit_bias: Map<String, Value>,
    pub reasoning_effort: Option<String>,
    pub thinking_type: Option<String>,
    pub chat_reasoning_effort: Option<String>,
    pub parallel_tool_calls: Option<bool>,
    pub reasoning_summary: Option<String>,
    pub include_reasoning_encrypted: Option<bool>,
    #[serde(rename = "stream-include-usage")]
    pub stream_include_usage: Option<bool>,
}

/// The `claude` section.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct ClaudeSettings {
    pub top_k: Option<i64>,
    pub user_id: Option<String>,
}

/// The `gemini` section.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct GeminiSettings {
    pub api_version: Option<String>,
    pub include_thoughts: Option<bool>,
    pub thinking_budget: Option<i64>,
    pub thinking_level: Option<String>,
}

/// The `inference` section: goes before the others.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct InferenceOverrides {
    pub thinking_budget: Option<i64>,
    pub reasoning_effort: Option<String>,
    pub thinking_type: Option<String>,
    pub reasoning_summary: Option<String>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub max_response_tokens: Option<i64>,
    pub stop: Option<Vec<String>>,
    pub seed: Option<i64>,
}

/// The `model_info` section: what is known of a model that the catalogue does not have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are those of the settings")]
pub struct ModelInfo {
    pub id: Option<String>,
    pub name: Option<String>,
    pub reasoning: Option<bool>,
    /// `text`, `image`, `audio`, `video`, `pdf`.
    pub input: Option<Vec<String>>,
    pub context_window: Option<i64>,
    pub quality_high_watermark: Option<f64>,
    pub max_output_tokens: Option<i64>,
    /// US dollars per million tokens.
    pub cost: Option<InfoCost>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct InfoCost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl fmt::Debug for InferenceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}

/// Addresses may hold a password, so only names are shown.
impl fmt::Debug for ApiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiSettings")
            .field("api_keys", &self.api_keys.keys())
            .field("base_urls", &self.base_urls.keys())
            .field("allow_http", &self.allow_http)
            .field("allow_local_networks", &self.allow_local_networks)
            .finish()
    }
}

impl InferenceSettings {
    /// The settings of a checked tree. The error is for people.
    pub(crate) fn from_tree(tree: Tree) -> Result<Self, String> {
        let mut settings: Self = serde_json::from_value(tree.to_value())
            .map_err(|error| pinion_jsonl::explain(&error))?;
        settings.tree = tree;
        Ok(settings)
    }

    /// Everything with keys masked.
    pub fn masked(&self) -> Value {
        self.tree.masked()
    }

    /// Everything as YAML, with keys masked: what `--print-inference-settings` prints.
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.masked())
    }

    /// The settings as they were written, unknown ones included.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
}

/// Masked settings as YAML.
pub fn to_yaml(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).unwrap_or_default();
    match text.ends_with('\n') {
        true => text,
        false => text + "\n",
    }
}
