//! Advice about credentials that are missing or cannot be used.

use pinion_logins::not_offered;

use super::auth_file::Stored;
use super::{Credentials, key_variables};
use crate::catalog;
use crate::wire::SUPPORTED_APIS;

/// Advice to sign in again.
pub(super) fn sign_in_again(provider: &str, can_sign_in: bool) -> String {
    match (can_sign_in, not_offered(provider)) {
        (true, _) => format!("Check the network, or sign in again: pinion login {provider}"),
        (false, Some(instead)) => {
            format!("Check the network, or sign in again with pi. {instead}")
        }
        (false, None) => "Check the network, or sign in again with pi.".to_owned(),
    }
}

impl Credentials {
    /// Advice about an entry of `auth.json` that cannot be used.
    pub(super) fn hint_for_entry(&self, provider: &str, entry: &Stored) -> String {
        let auth = self.directory.join("auth.json");
        let auth = auth.display();
        let instead = match key_variables(provider) {
            [] => String::new(),
            variables => format!(" to use {}", variables.join(" or ")),
        };
        let remove = format!("remove the entry \"{provider}\" from {auth}{instead}");
        match entry {
            Stored::Login(_) => {
                let why = not_offered(provider).unwrap_or_default();
                let hint = format!(
                    "The login in {auth} has expired. Log in again with pi, or {remove}. {why}"
                );
                hint.trim_end().to_owned()
            }
            Stored::ApiKey { .. } if provider == "openai-codex" => format!(
                "This provider takes logins only, so the key in {auth} cannot be used: {remove}, and sign in to the provider \
                 openai (pinion login openai)."
            ),
            Stored::ApiKey { .. } => format!(
                "The entry \"{provider}\" in {auth} has neither \"key\" nor an \"env\" with a key. Add one, or {remove}."
            ),
            Stored::Unusable => format!(
                "The entry \"{provider}\" in {auth} is not a key or a login that pinion knows. Repair it, or {remove}."
            ),
        }
    }

    /// Advice about a missing key.
    pub(super) fn hint(&self, provider: &str) -> String {
        let mut models = catalog::models_of(provider).peekable();
        if let Some(first) = models.peek().copied()
            && !models.any(|model| SUPPORTED_APIS.contains(&model.api()))
        {
            return format!(
                "pinion does not support the API of {provider} ({}), so a key for it does not help. Use another provider of \
                 the model, for example openrouter with OPENROUTER_API_KEY.",
                first.api()
            );
        }
        let login = match self.login_provider(provider) {
            Some(way) if way.can_sign_in() => format!(", or sign in: pinion login {provider}"),
            _ => String::new(),
        };
        match provider {
            "openai-codex" => {
                return "This provider takes logins of pi only. Sign in to the provider openai with the same account: pinion \
                        login openai"
                    .to_owned();
            }
            "amazon-bedrock" => {
                return "Set AWS_BEARER_TOKEN_BEDROCK in the environment, or AWS_PROFILE, or AWS_ACCESS_KEY_ID and \
                        AWS_SECRET_ACCESS_KEY."
                    .to_owned();
            }
            "google-vertex" => {
                return "Set GOOGLE_CLOUD_API_KEY in the environment, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION \
                        after `gcloud auth application-default login`."
                    .to_owned();
            }
            _ => {}
        }
        let auth = self.directory.join("auth.json");
        let variables = match key_variables(provider) {
            [] => String::new(),
            [only] => format!("Set {only} in the environment, or add "),
            [first, rest @ ..] => {
                // The last resort of a provider is its plain key, the one people have.
                let (plain, others) = match provider {
                    "anthropic" => (rest[0], vec![*first]),
                    _ => (*first, rest.to_vec()),
                };
                format!(
                    "Set {plain} (or {}) in the environment, or add ",
                    others.join(", ")
                )
            }
        };
        let begin = if variables.is_empty() {
            "Add ".to_owned()
        } else {
            variables
        };
        format!(
            "{begin}\"{provider}\": {{\"type\":\"api_key\",\"key\":\"…\"}} to {}{login}.",
            auth.display()
        )
    }
}
