//! Chooses the model of a new session.

use std::sync::Arc;

use pinion_message::{Model, ThinkingLevel};

use super::ScopedModel;
use crate::Registry;

/// The default model of each provider, in the order in which providers are preferred.
///
/// A test checks every id against the catalogue.
const DEFAULTS: [(&str, &str); 40] = [
    ("amazon-bedrock", "us.anthropic.claude-opus-4-6-v1"),
    ("anthropic", "claude-opus-4-7"),
    ("openai", "gpt-5.4"),
    ("azure", "gpt-5.4"),
    ("openai-codex", "gpt-5.6-sol"),
    ("deepseek", "deepseek-v4-pro"),
    ("google", "gemini-3.1-pro-preview"),
    ("google-vertex", "gemini-3.1-pro-preview"),
    ("github-copilot", "gpt-5.6-sol"),
    ("openrouter", "moonshotai/kimi-k2.6"),
    ("vercel-ai-gateway", "zai/glm-5.1"),
    ("xai", "grok-4.7"),
    ("groq", "openai/gpt-oss-120b"),
    ("cerebras", "gpt-oss-120b"),
    ("zai", "glm-5.3"),
    ("mistral", "devstral-medium-latest"),
    ("minimax", "MiniMax-M2.7"),
    ("minimax-cn", "MiniMax-M2.7"),
    ("moonshotai", "kimi-k2.6"),
    ("moonshotai-cn", "kimi-k2.6"),
    ("huggingface", "moonshotai/Kimi-K2.6"),
    ("fireworks", "accounts/fireworks/routers/kimi-latest"),
    ("opencode", "kimi-k2.6"),
    ("opencode-go", "kimi-k3"),
    ("kimi-coding", "kimi-for-coding"),
    ("cloudflare-workers-ai", "@cf/moonshotai/kimi-k2.6"),
    (
        "cloudflare-ai-gateway",
        "workers-ai/@cf/moonshotai/kimi-k2.6",
    ),
    ("xiaomi", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-cn", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-ams", "mimo-v2.6-pro"),
    ("xiaomi-token-plan-sgp", "mimo-v2.6-pro"),
    ("ant-ling", "Ring-2.6-1T"),
    ("baseten", "moonshotai/Kimi-K3"),
    ("meta", "muse-spark-1.3"),
    ("nvidia", "moonshotai/kimi-k2.6"),
    ("qwen-token-plan", "qwen3.8-max"),
    ("qwen-token-plan-cn", "qwen3.8-max"),
    ("qwen-token-plan-individual", "qwen3.8-max"),
    ("together", "moonshotai/Kimi-K3"),
    ("zai-coding-cn", "glm-5.3"),
];

/// The inputs of [`initial_model`].
#[derive(Debug, Clone, Copy, Default)]
pub struct InitialOptions<'a> {
    /// The model of the command line.
    pub chosen: Option<&'a super::Resolved>,
    /// The models to cycle through.
    pub scope: &'a [ScopedModel],
    /// The session continues an earlier one.
    pub continuing: bool,
    /// Provider and id of the model that the earlier session used last.
    pub session: Option<(&'a str, &'a str)>,
    /// Provider and id from the settings.
    pub saved: Option<(&'a str, &'a str)>,
}

#[derive(Debug, Clone)]
pub struct InitialModel {
    pub model: Arc<Model>,
    /// The level that belongs to the model, not yet clamped.
    pub thinking: Option<ThinkingLevel>,
    /// For stderr, after `Warning: `.
    pub warning: Option<String>,
}

/// The model of a new session; `None` when nothing is configured.
///
/// The order: the command line; the scope (the saved default if it is in the scope) unless an
/// earlier session continues; that session's model if it is available; the saved default; the
/// default models of the available providers; any available model.
pub fn initial_model(registry: &Registry, options: &InitialOptions<'_>) -> Option<InitialModel> {
    let plain = |model| InitialModel {
        model,
        thinking: None,
        warning: None,
    };
    if let Some(super::Resolved {
        model,
        thinking,
        warning,
    }) = options.chosen
    {
        let (model, warning) = (Arc::clone(model), warning.clone());
        return Some(InitialModel {
            model,
            thinking: *thinking,
            warning,
        });
    }
    if !options.continuing && !options.scope.is_empty() {
        let is_saved = |scoped: &&ScopedModel| {
            options.saved == Some((&*scoped.model.provider, &*scoped.model.id))
        };
        let scoped = options
            .scope
            .iter()
            .find(is_saved)
            .or(options.scope.first())?;
        let (model, thinking) = (Arc::clone(&scoped.model), scoped.thinking);
        return Some(InitialModel {
            model,
            thinking,
            warning: None,
        });
    }
    let mut warning = None;
    if let Some((provider, id)) = options.session {
        match registry.find(provider, id) {
            Some(model) if registry.has_credentials(provider) => return Some(plain(model)),
            Some(_) => {
                warning = Some(format!(
                    "Could not restore model {provider}/{id} (no API key)."
                ))
            }
            None => {
                warning = Some(format!(
                    "Could not restore model {provider}/{id} (it no longer exists)."
                ));
            }
        }
    }
    let saved = options
        .saved
        .and_then(|(provider, id)| registry.find(provider, id));
    let model = saved.or_else(|| first_available(registry))?;
    if let Some(warning) = &mut warning {
        warning.push_str(&format!(" Using {}/{}.", model.provider, model.id));
    }
    Some(InitialModel {
        model,
        thinking: None,
        warning,
    })
}

/// The model to use when only its provider is named.
pub fn default_model(registry: &Registry, provider: &str) -> Option<Arc<Model>> {
    let preferred = DEFAULTS.iter().find(|(name, _)| *name == provider);
    preferred
        .and_then(|(_, id)| registry.find(provider, id))
        .or_else(|| {
            registry
                .candidates_of(provider)
                .next()
                .map(|first| first.to_model())
        })
}

fn first_available(registry: &Registry) -> Option<Arc<Model>> {
    let available = registry.available_candidates();
    let preferred = DEFAULTS.iter().find_map(|&(provider, id)| {
        available
            .iter()
            .find(|candidate| candidate.provider == provider && candidate.id == id)
    });
    preferred
        .or(available.first())
        .map(|candidate| candidate.to_model())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn every_default_is_in_the_catalogue_and_every_provider_has_one() {
        for (provider, id) in DEFAULTS {
            let known = catalog::models_of(provider).any(|model| model.id() == id);
            assert!(known, "{provider}/{id}");
        }
        let without: Vec<_> = catalog::providers()
            .filter(|name| !DEFAULTS.iter().any(|(provider, _)| provider == name))
            .collect();
        // Its protocol is not supported.
        assert_eq!(without, ["radius"]);
    }
}
