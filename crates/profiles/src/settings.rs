//! Typed inference settings, and their printed form.

use std::collections::BTreeMap;
use std::fmt;

use pinion_message::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tree::Tree;

/// All settings of a run's model.
///
/// They are created from a checked [`Tree`], which is the printed form; it contains unknown members
/// too.
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

/// Keys, base URLs and network permissions.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ApiSettings {
    /// By `<provider>-api-key`.
    pub api_keys: BTreeMap<String, Secret>,
    /// By `<provider>-base-url`.
    pub base_urls: BTreeMap<String, String>,
    /// Permission for unencrypted connections, by provider.
    pub allow_http: BTreeMap<String, bool>,
    /// Permission for servers on this machine or its network, by provider.
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
    /// In seconds.
    pub timeout: Option<i64>,
    pub organization: Option<String>,
    pub user_agent: Option<String>,
    /// The URL may hold a password.
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

/// The `inference` section; it overrides the others.
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

/// The `model_info` section: facts about a model that is not in the catalogue.
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
    /// USD per million tokens.
    pub cost: Option<InfoCost>,
}

/// USD per million tokens.
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

/// Prints only names, because addresses may hold a password.
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
    /// Converts a checked tree. The error is for people.
    pub(crate) fn from_tree(tree: Tree) -> Result<Self, String> {
        let mut settings: Self = serde_json::from_value(tree.to_value())
            .map_err(|error| pinion_jsonl::explain(&error))?;
        settings.tree = tree;
        Ok(settings)
    }

    /// Returns all settings with keys masked.
    pub fn masked(&self) -> Value {
        self.tree.masked()
    }

    /// Prints all settings as YAML with keys masked, for `--print-inference-settings`.
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.masked())
    }

    /// Returns the settings as written, including unknown ones.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
}

/// Prints masked settings as YAML.
pub fn to_yaml(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).unwrap_or_default();
    if text.ends_with('\n') {
        text
    } else {
        text + "\n"
    }
}
