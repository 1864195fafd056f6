//! The environment variables of each provider's key, and the source of variables: the process, or a
//! fixed set from the caller.

use std::collections::BTreeMap;

use pinion_cloud::{anthropic, aws, google};
use pinion_message::Secret;
use secrecy::ExposeSecret;

/// The source of environment variables.
#[derive(Debug, Clone, Default)]
pub enum Environment {
    /// The environment of this process.
    #[default]
    Process,
    /// A function that returns values by name.
    Lookup(fn(&str) -> Option<String>),
    /// Only these.
    Fixed(BTreeMap<String, String>),
    /// These variables, and another environment for those that are absent or empty.
    Overlay(BTreeMap<String, Secret>, Box<Environment>),
}

impl Environment {
    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match self {
            // A name with `=` or NUL cannot be set, and reading it would panic on some systems.
            Self::Process if name.is_empty() || name.contains(['=', '\0']) => None,
            Self::Process => std::env::var(name).ok(),
            Self::Lookup(ask) => ask(name),
            Self::Fixed(variables) => variables.get(name).cloned(),
            Self::Overlay(variables, below) => {
                let value = variables.get(name).map(ExposeSecret::expose_secret);
                match value.filter(|value| !value.is_empty()) {
                    Some(value) => Some(value.to_owned()),
                    None => below.get(name),
                }
            }
        };
        value.filter(|value| !value.is_empty())
    }

    /// These variables, overridden by those of an entry of `auth.json`.
    pub(crate) fn with(&self, entry: &BTreeMap<String, Secret>) -> Self {
        if entry.is_empty() {
            return self.clone();
        }
        Self::Overlay(entry.clone(), Box::new(self.clone()))
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The key of a provider, from the first of its variables that is set.
    pub(crate) fn key(&self, provider: &str) -> Option<String> {
        key_variables(provider)
            .iter()
            .find_map(|name| self.get(name))
    }

    /// Reports whether the environment has any credential of this provider.
    pub(crate) fn has_credentials(&self, provider: &str) -> bool {
        key_variables(provider).iter().any(|name| self.has(name))
            || match provider {
                "amazon-bedrock" => aws::is_configured(&|name: &str| self.get(name)),
                "google-vertex" => google::is_configured(&|name: &str| self.get(name)),
                "anthropic" => {
                    self.has("ANTHROPIC_AUTH_TOKEN")
                        || anthropic::is_configured(&|name: &str| self.get(name))
                }
                _ => false,
            }
    }
}

/// The variables that may hold a provider's key; the first one that is set is used.
pub fn key_variables(provider: &str) -> &'static [&'static str] {
    match provider {
        "amazon-bedrock" => &["AWS_BEARER_TOKEN_BEDROCK"],
        "ant-ling" => &["ANT_LING_API_KEY"],
        "anthropic" => &["ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"],
        "azure" | "azure-openai-responses" => &["AZURE_OPENAI_API_KEY"],
        "baseten" => &["BASETEN_API_KEY"],
        "cerebras" => &["CEREBRAS_API_KEY"],
        "cloudflare-ai-gateway" | "cloudflare-workers-ai" => &["CLOUDFLARE_API_KEY"],
        "deepseek" => &["DEEPSEEK_API_KEY"],
        "fireworks" => &["FIREWORKS_API_KEY"],
        "github-copilot" => &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        "google" => &["GEMINI_API_KEY"],
        "google-vertex" => &["GOOGLE_CLOUD_API_KEY"],
        "groq" => &["GROQ_API_KEY"],
        "huggingface" => &["HF_TOKEN"],
        "kimi-coding" => &["KIMI_API_KEY"],
        "meta" => &["META_API_KEY"],
        "minimax" => &["MINIMAX_API_KEY"],
        "minimax-cn" => &["MINIMAX_CN_API_KEY"],
        "mistral" => &["MISTRAL_API_KEY"],
        "moonshotai" | "moonshotai-cn" => &["MOONSHOT_API_KEY"],
        "nvidia" => &["NVIDIA_API_KEY"],
        "openai" => &["OPENAI_API_KEY"],
        "opencode" | "opencode-go" => &["OPENCODE_API_KEY"],
        "openrouter" => &["OPENROUTER_API_KEY"],
        "qwen-token-plan" | "qwen-token-plan-individual" => &["QWEN_TOKEN_PLAN_API_KEY"],
        "qwen-token-plan-cn" => &["QWEN_TOKEN_PLAN_CN_API_KEY"],
        "radius" => &["RADIUS_API_KEY"],
        "together" => &["TOGETHER_API_KEY"],
        "vercel-ai-gateway" => &["AI_GATEWAY_API_KEY"],
        "xai" => &["XAI_API_KEY"],
        "xiaomi" => &["XIAOMI_API_KEY"],
        "xiaomi-token-plan-ams" => &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
        "xiaomi-token-plan-cn" => &["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
        "xiaomi-token-plan-sgp" => &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
        "zai" => &["ZAI_API_KEY"],
        "zai-coding-cn" => &["ZAI_CODING_CN_API_KEY"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(variables: &[(&str, &str)]) -> Environment {
        let pairs = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Environment::Fixed(pairs.collect())
    }

    #[test]
    fn every_built_in_provider_has_a_variable() {
        for provider in crate::catalog::providers() {
            // The one provider that is only ever used through a login.
            let expected = provider != "openai-codex";
            assert_eq!(!key_variables(provider).is_empty(), expected, "{provider}");
        }
    }

    #[test]
    fn the_first_variable_wins_and_empty_ones_do_not_count() {
        let both = fixed(&[("ANTHROPIC_OAUTH_TOKEN", "o"), ("ANTHROPIC_API_KEY", "k")]);
        assert_eq!(both.key("anthropic").as_deref(), Some("o"));
        let one = fixed(&[("ANTHROPIC_OAUTH_TOKEN", ""), ("ANTHROPIC_API_KEY", "k")]);
        assert_eq!(one.key("anthropic").as_deref(), Some("k"));
    }

    #[test]
    fn an_identity_of_aws_counts_without_a_key() {
        assert!(fixed(&[("AWS_PROFILE", "p")]).has_credentials("amazon-bedrock"));
        assert!(!fixed(&[("AWS_ACCESS_KEY_ID", "i")]).has_credentials("amazon-bedrock"));
    }
}
