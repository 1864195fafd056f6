//! The credential of a provider, for commands that report or print it.

use std::time::Duration;

use pinion_message::Secret;
use pinion_text::nearest;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{CredentialError, Registry};

/// The state of a provider's credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialState {
    Ready,
    /// There is none that can be used now.
    NotReady,
    /// The command or the variable of a key did not provide it.
    Invalid,
}

/// The state of a provider's credential, with the credential on request.
#[derive(Debug)]
pub struct CredentialReport {
    pub state: CredentialState,
    provider: String,
    /// A stable word for the reason; `None` for a credential that is ready.
    reason: Option<&'static str>,
    kind: &'static str,
    credential: Option<Secret>,
}

impl CredentialReport {
    /// Adds the credential, or the failure to obtain it.
    pub fn add(&mut self, credential: Result<Option<Secret>, CredentialError>) {
        match credential {
            Ok(credential) => self.credential = credential,
            Err(_) => {
                self.state = CredentialState::Invalid;
                self.reason = Some("invalid_state");
            }
        }
    }

    /// Adds the result of a renewal, if there was one.
    pub fn check(&mut self, renewed: Option<Result<(), CredentialError>>) {
        if let Some(Err(_)) = renewed {
            self.state = CredentialState::Invalid;
            self.reason = Some("invalid_state");
        }
    }

    fn word(&self) -> &'static str {
        match self.state {
            CredentialState::Ready => "ready",
            CredentialState::NotReady => "not_ready",
            CredentialState::Invalid => "invalid",
        }
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Value {
        let mut shown = json!({"status": self.word(), "provider": self.provider});
        if let Some(reason) = self.reason {
            shown["reason"] = reason.into();
        } else {
            shown["authType"] = self.kind.into();
        }
        if let Some(credential) = &self.credential {
            shown["credential"] = credential.expose_secret().into();
        }
        shown
    }

    /// Returns the report as lines: the state, and the credential if there is one.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.word());
        if let Some(credential) = &self.credential {
            text += &format!("{}\n", credential.expose_secret());
        }
        text
    }
}

impl Registry {
    /// Reports whether a provider has a usable credential. Runs no command of a key.
    pub fn credential_report(&self, provider: &str) -> CredentialReport {
        let has_login = self.stored_login(provider).is_some();
        let is_torn = self.has_unreadable_credentials();
        let reason = if self.check_provider(provider).is_err() {
            Some("provider_not_found")
        } else if is_torn {
            Some("invalid_state")
        } else if self.has_credentials(provider) {
            None
        } else if has_login {
            Some("credential_not_available")
        } else {
            Some("credentials_not_configured")
        };
        CredentialReport {
            state: match reason {
                None => CredentialState::Ready,
                Some("invalid_state") => CredentialState::Invalid,
                Some(_) => CredentialState::NotReady,
            },
            provider: provider.to_owned(),
            reason,
            kind: if has_login { "oauth" } else { "api_key" },
            credential: None,
        }
    }

    /// Fails with a sentence for a provider that does not exist.
    fn check_provider(&self, provider: &str) -> Result<(), String> {
        if self.providers().contains(&provider) {
            return Ok(());
        }
        let hint = match nearest(provider, self.providers()) {
            Some(near) => format!("Did you mean {near}?"),
            None => "`pinion models` lists the providers you have keys for.".to_owned(),
        };
        Err(format!("unknown provider {provider:?}. {hint}"))
    }

    /// Fails with a sentence if the provider does not exist, or if its credential is a login.
    pub fn check_key_provider(&self, provider: &str) -> Result<(), String> {
        self.check_provider(provider)?;
        if self.stored_login(provider).is_some() {
            return Err(format!(
                "the credential of {provider} is a login, not an API key; use `pinion auth print-bearer-token`."
            ));
        }
        Ok(())
    }

    /// Returns the token of a login that stays valid for `validity`, renewed if necessary. The error is a sentence.
    pub async fn bearer_token(&self, provider: &str, validity: Duration) -> Result<Secret, String> {
        self.check_provider(provider)?;
        let Some(login) = self.stored_login(provider) else {
            return Err(format!(
                "there is no login for {provider}; `pinion auth print-api-key` prints a key."
            ));
        };
        let validity = i64::try_from(validity.as_millis()).unwrap_or(i64::MAX);
        let login = self.fresh_login(provider, login, validity).await;
        let login = login.map_err(|error| error.to_string())?;
        if login.ends_within(validity) {
            return Err(format!(
                "OAuth refresh returned a token that expires too soon for {provider}; ask for less with --min-expiry."
            ));
        }
        Ok(Secret::from(login.access()))
    }
}
