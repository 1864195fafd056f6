//! The providers whose logins pinion knows, and a sentence for those that it does not sign in to.

use std::sync::Arc;

use crate::{KimiCoding, LoginProvider, Meta, OpenAi, OpenAiCodex, OpenRouter, Xai};

/// Returns the way to sign in to a provider, or at least to renew its stored logins.
pub fn built_in(provider: &str) -> Option<Arc<dyn LoginProvider>> {
    Some(match provider {
        "openai" => Arc::new(OpenAi::default()),
        "openrouter" => Arc::new(OpenRouter::default()),
        "openai-codex" => Arc::new(OpenAiCodex::default()),
        "kimi-coding" => Arc::new(KimiCoding::default()),
        "meta" => Arc::new(Meta::default()),
        "xai" => Arc::new(Xai::default()),
        _ => return None,
    })
}

/// The providers that pinion signs in to.
pub fn sign_in_providers() -> [&'static str; 2] {
    ["openai", "openrouter"]
}

/// Explains in one sentence why pinion offers no sign-in to a provider, and what to do instead; `None` if it offers one
/// or knows nothing about it.
pub fn not_offered(provider: &str) -> Option<&'static str> {
    Some(match provider {
        "anthropic" => {
            "Anthropic permits its subscription logins in its own programs only, so pinion does not imitate them: use an API \
             key (ANTHROPIC_API_KEY) or workload identity."
        }
        "github-copilot" => {
            "GitHub Copilot has no sign-in for other programs, so pinion does not imitate an editor: set \
             COPILOT_GITHUB_TOKEN, or use a provider with an API key."
        }
        "google-gemini-cli" | "google-antigravity" => {
            "Google forbids other programs to use this login and suspends accounts for it: use the provider google with \
             GEMINI_API_KEY, or google-vertex."
        }
        "openai-codex" => {
            "The client of this login belongs to another program, so pinion renews the logins that pi stored and makes none: \
             sign in to the provider openai instead, with the same ChatGPT account."
        }
        "kimi-coding" => {
            "The client of this login belongs to another program, so pinion renews the logins that pi stored and makes none: \
             use KIMI_API_KEY."
        }
        "meta" => {
            "The client of this login belongs to another program, so pinion renews the logins that pi stored and makes none: \
             use META_API_KEY."
        }
        "xai" => {
            "The client of this login belongs to another program, so pinion renews the logins that pi stored and makes none: \
             use XAI_API_KEY."
        }
        "radius" => {
            "Radius is a service of pi, whose protocol pinion does not support: use another provider of the model, such as \
             openrouter."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pinion_signs_in_to_is_built_in_and_the_rest_has_a_sentence() {
        for provider in sign_in_providers() {
            assert!(
                built_in(provider).is_some_and(|login| login.can_sign_in()),
                "{provider}"
            );
            assert_eq!(not_offered(provider), None);
        }
        for provider in ["openai-codex", "kimi-coding", "meta", "xai"] {
            assert!(
                built_in(provider).is_some_and(|login| !login.can_sign_in()),
                "{provider}"
            );
            assert!(not_offered(provider).is_some_and(|words| words.contains(": ")));
        }
        for provider in ["anthropic", "github-copilot", "google-gemini-cli", "radius"] {
            assert!(built_in(provider).is_none(), "{provider}");
            assert!(not_offered(provider).is_some(), "{provider}");
        }
    }
}
