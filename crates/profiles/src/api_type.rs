//! The values of `chat.api_type`: their protocols and the names of their keys and base URLs.

use crate::error::ProfileError;

/// One kind of API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiType {
    pub name: &'static str,
    /// The protocol, as models name it.
    pub api: &'static str,
    /// The provider whose catalogue is used.
    pub provider: &'static str,
    /// Names under `api.api_keys`; the first one that is set counts.
    pub keys: &'static [&'static str],
    /// Names under `api.base_urls`; the first one that is set counts.
    pub base_urls: &'static [&'static str],
    pub default_base_url: Option<&'static str>,
    /// Names under `api.allow_http` and `api.allow_local_networks`.
    pub permissions: &'static [&'static str],
    /// Environment variables for a key, used if no setting has one.
    pub variables: &'static [&'static str],
}

const OPENAI: ApiType = ApiType {
    name: "openai",
    api: "openai-completions",
    provider: "openai",
    keys: &["openai-api-key"],
    base_urls: &["openai-base-url"],
    default_base_url: Some("https://api.openai.com/v1"),
    permissions: &["openai"],
    variables: &["OPENAI_API_KEY"],
};

const OPEN_RESPONSES: ApiType = ApiType {
    name: "open-responses",
    api: "openai-responses",
    keys: &[
        "open-responses-api-key",
        "openai-responses-api-key",
        "openai-api-key",
    ],
    base_urls: &[
        "open-responses-base-url",
        "openai-responses-base-url",
        "openai-base-url",
    ],
    permissions: &["open-responses", "openai-responses", "openai"],
    ..OPENAI
};

const OPENAI_RESPONSES: ApiType = ApiType {
    name: "openai-responses",
    keys: &[
        "openai-responses-api-key",
        "open-responses-api-key",
        "openai-api-key",
    ],
    base_urls: &[
        "openai-responses-base-url",
        "open-responses-base-url",
        "openai-base-url",
    ],
    permissions: &["openai-responses", "open-responses", "openai"],
    ..OPEN_RESPONSES
};

const ANYSCALE: ApiType = ApiType {
    name: "anyscale",
    provider: "anyscale",
    keys: &["anyscale-api-key"],
    base_urls: &["anyscale-base-url"],
    default_base_url: None,
    permissions: &["anyscale"],
    variables: &[],
    ..OPENAI
};

const FIREWORKS: ApiType = ApiType {
    name: "fireworks",
    provider: "fireworks",
    keys: &["fireworks-api-key"],
    base_urls: &["fireworks-base-url"],
    default_base_url: Some("https://api.fireworks.ai/inference/v1"),
    permissions: &["fireworks"],
    variables: &["FIREWORKS_API_KEY"],
    ..OPENAI
};

const CLAUDE: ApiType = ApiType {
    name: "claude",
    api: "anthropic-messages",
    provider: "anthropic",
    keys: &["claude-api-key", "anthropic-api-key"],
    base_urls: &["claude-base-url", "anthropic-base-url"],
    default_base_url: Some("https://api.anthropic.com"),
    permissions: &["claude", "anthropic"],
    variables: &["ANTHROPIC_API_KEY"],
};

const ANTHROPIC: ApiType = ApiType {
    name: "anthropic",
    permissions: &["anthropic", "claude"],
    ..CLAUDE
};

const GEMINI: ApiType = ApiType {
    name: "gemini",
    api: "google-generative-ai",
    provider: "google",
    keys: &["gemini-api-key"],
    base_urls: &["gemini-base-url"],
    default_base_url: Some("https://generativelanguage.googleapis.com"),
    permissions: &["gemini"],
    variables: &["GEMINI_API_KEY"],
};

/// The supported kinds of API.
pub(crate) const SUPPORTED: [ApiType; 8] = [
    OPENAI,
    OPEN_RESPONSES,
    OPENAI_RESPONSES,
    ANYSCALE,
    FIREWORKS,
    CLAUDE,
    ANTHROPIC,
    GEMINI,
];

/// The offline model.
pub(crate) const OFFLINE: &str = "offline";

impl ApiType {
    pub fn of(name: &str) -> Result<Self, ProfileError> {
        if let Some(known) = SUPPORTED.iter().find(|known| known.name == name) {
            return Ok(*known);
        }
        let api_type = name.to_owned();
        let instead = match name {
            "ollama" => {
                "Ollama speaks OpenAI's API: use api_type openai with api.base_urls.openai-base-url, api.allow_http.openai and api.allow_local_networks.openai"
            }
            "mistral" => {
                "use engine mistral/MODEL without an api_type, or api_type openai with api.base_urls.openai-base-url"
            }
            "perplexity" | "cohere" => "use api_type openai with api.base_urls.openai-base-url",
            _ => return Err(ProfileError::UnknownApiType { api_type }),
        };
        Err(ProfileError::UnsupportedApiType { api_type, instead })
    }

    /// Returns the variable that an error recommends for a key.
    pub fn advised_variables(&self) -> String {
        let pinocchio = match self.keys.last() {
            Some(key) if ["openai-api-key", "gemini-api-key"].contains(key) => Some(*key),
            _ => self
                .keys
                .first()
                .copied()
                .filter(|key| *key == "claude-api-key"),
        };
        let pinocchio = pinocchio
            .map(|key| format!("PINOCCHIO_{}", key.to_ascii_uppercase().replace('-', "_")));
        let names: Vec<String> = pinocchio
            .into_iter()
            .chain(self.variables.iter().map(|name| (*name).to_owned()))
            .collect();
        if names.is_empty() {
            "nothing (there is no variable for it)".to_owned()
        } else {
            names.join(" or ")
        }
    }
}
