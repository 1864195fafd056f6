//! API keys: their sources and the order of these.
//!
//! The command line overrides `auth.json`, which overrides the environment, which overrides
//! `models.json`. A check for a key never runs a command; fetching a key may. Nothing under a
//! project's directory is ever read.

mod auth_file;
mod command;
mod environment;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pinion_message::{Millis, Secret, now_millis};
use secrecy::ExposeSecret;

use crate::Notice;
use crate::catalog;
use crate::wire::SUPPORTED_APIS;
pub(crate) use auth_file::Entries;
use auth_file::{AuthFile, Stored};
use command::CommandCache;
pub use environment::{Environment, key_variables};

/// A provider has no usable key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Nothing is configured for the provider.
    #[error("No API key found for {provider}.\n\n{hint}")]
    Missing {
        provider: String,
        /// Advice that names the variables to set.
        hint: String,
    },
    /// The only credential is a login that has expired.
    #[error(
        "Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable.\n\n{hint}"
    )]
    Expired {
        provider: String,
        /// Advice that names the variables to set.
        hint: String,
    },
    /// The command that should print the key, or a header, failed.
    #[error(
        "The command for the {what} of {provider} gave no value: {reason}. Run it by hand to see why."
    )]
    Command {
        provider: String,
        /// `API key`, or the header's name.
        what: String,
        /// The way in which the command failed.
        reason: String,
    },
}

impl CredentialError {
    /// A name for programs that never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "no_api_key",
            Self::Expired { .. } => "login_expired",
            Self::Command { .. } => "key_command_failed",
        }
    }
}

/// Every source of keys except `models.json`.
#[derive(Debug)]
pub(crate) struct Credentials {
    directory: PathBuf,
    environment: Environment,
    auth: AuthFile,
    runtime: RwLock<HashMap<String, Secret>>,
    commands: CommandCache,
}

impl Credentials {
    pub(crate) fn open(directory: &Path, environment: Environment) -> (Self, Vec<Notice>) {
        let (auth, notices) = AuthFile::open(directory.join("auth.json"));
        let credentials = Self {
            directory: directory.to_owned(),
            environment,
            auth,
            runtime: RwLock::default(),
            commands: CommandCache::default(),
        };
        (credentials, notices)
    }

    pub(crate) fn set_runtime_key(&self, provider: &str, key: Secret) {
        let mut runtime = self.runtime.write().unwrap_or_else(PoisonError::into_inner);
        runtime.insert(provider.to_owned(), key);
    }

    pub(crate) fn store_key(&self, provider: &str, key: &Secret) -> io::Result<()> {
        self.auth.store_key(provider, key)
    }

    fn runtime_key(&self, provider: &str) -> Option<Secret> {
        self.runtime
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(provider)
            .cloned()
    }

    /// The token of a stored login and the time at which it expires.
    pub(crate) fn login(&self, provider: &str) -> Option<(Secret, Millis)> {
        match self.auth.entries().get(provider) {
            Some(Stored::Login { access, expires }) => Some((access.clone(), *expires)),
            _ => None,
        }
    }

    /// The current entries of `auth.json`, to check several providers with one read.
    pub(crate) fn stored(&self) -> Arc<Entries> {
        self.auth.entries()
    }

    /// Reports whether any source has a key. Runs no command.
    pub(crate) fn has(
        &self,
        provider: &str,
        stored: &Entries,
        configured: Option<&Secret>,
    ) -> bool {
        self.runtime_key(provider).is_some()
            || match stored.get(provider) {
                Some(Stored::ApiKey { key: Some(_), .. }) => true,
                Some(Stored::ApiKey { key: None, .. }) => {
                    let environment = self.environment_in(stored, provider);
                    environment.has_credentials(provider)
                }
                Some(Stored::Login { expires, .. }) => *expires > now_millis(),
                Some(Stored::Unusable) => false,
                None => configured.is_some() || self.environment.has_credentials(provider),
            }
    }

    /// Returns the environment of a provider: the variables of its entry in `auth.json`, then those of the
    /// process. Keys, headers and addresses are all looked up here.
    pub(crate) fn environment(&self, provider: &str) -> Environment {
        self.environment_in(&self.auth.entries(), provider)
    }

    fn environment_in(&self, stored: &Entries, provider: &str) -> Environment {
        match stored.get(provider) {
            Some(Stored::ApiKey { env, .. }) => self.environment.with(env),
            Some(Stored::Login { .. } | Stored::Unusable) | None => self.environment.clone(),
        }
    }

    /// The error for a provider without a key; `None` when it has one.
    pub(crate) fn missing(
        &self,
        provider: &str,
        configured: Option<&Secret>,
    ) -> Option<CredentialError> {
        let stored = self.auth.entries();
        if self.has(provider, &stored, configured) {
            return None;
        }
        let entry = stored.get(provider);
        let hint = match entry {
            Some(entry) => self.hint_for_entry(provider, entry),
            None => self.hint(provider),
        };
        let provider = provider.to_owned();
        Some(match entry {
            Some(Stored::Login { .. }) => CredentialError::Expired { provider, hint },
            _ => CredentialError::Missing { provider, hint },
        })
    }

    /// The key to send now; `None` for clouds that take no key.
    ///
    /// `configured` is the value in `models.json`.
    pub(crate) async fn key(
        &self,
        provider: &str,
        configured: Option<&Secret>,
    ) -> Result<Option<Secret>, CredentialError> {
        if let Some(key) = self.runtime_key(provider) {
            return Ok(Some(key));
        }
        let entries = self.auth.entries();
        let found = match entries.get(provider) {
            Some(Stored::ApiKey { key: Some(key), .. }) => {
                return self.value(provider, "API key", key).await.map(Some);
            }
            Some(Stored::ApiKey { key: None, .. }) => {
                self.environment_in(&entries, provider).key(provider)
            }
            Some(Stored::Login { access, expires }) if *expires > now_millis() => {
                return Ok(Some(access.clone()));
            }
            Some(Stored::Login { .. } | Stored::Unusable) => None,
            None => match (self.environment.key(provider), configured) {
                (None, Some(key)) => return self.value(provider, "API key", key).await.map(Some),
                (key, _) => key,
            },
        };
        match found {
            Some(key) => Ok(Some(Secret::from(key))),
            None => self.missing(provider, configured).map_or(Ok(None), Err),
        }
    }

    /// Every key of `provider` that is known without running a command.
    pub(crate) fn known(
        &self,
        provider: &str,
        stored: &Entries,
        configured: Option<&Secret>,
    ) -> Vec<Secret> {
        let environment = self.environment_in(stored, provider);
        let mut known: Vec<Secret> = self.runtime_key(provider).into_iter().collect();
        known.extend(self.environment.key(provider).map(Secret::from));
        known.extend(environment.key(provider).map(Secret::from));
        let mut texts: Vec<Secret> = configured.into_iter().cloned().collect();
        match stored.get(provider) {
            Some(Stored::ApiKey { key, .. }) => texts.extend(key.clone()),
            Some(Stored::Login { access, .. }) => known.push(access.clone()),
            Some(Stored::Unusable) | None => {}
        }
        for text in texts {
            let value = text.expose_secret();
            if !value.starts_with('!') {
                known.push(Secret::from(self.expanded(&environment, value)));
            }
        }
        known
    }

    /// Returns the value of the variable that `text` names, or `text` with the values of the variables in it: `$NAME`
    /// and `${NAME}`. `$$` stands for `$`, and `$!` for `!`. An unset variable leaves the text as it is.
    fn expanded(&self, environment: &Environment, text: &str) -> String {
        if let Some(value) = environment.get(text) {
            return value;
        }
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let (replacement, left) = variable(environment, after);
            expanded.push_str(&replacement);
            rest = left;
        }
        expanded + rest
    }

    /// Resolves a configured text: the output of a `!command`, the value of a variable of that
    /// name, or the text with the values of the variables in it.
    pub(crate) async fn value(
        &self,
        provider: &str,
        what: &str,
        text: &Secret,
    ) -> Result<Secret, CredentialError> {
        if let Some(command) = text.expose_secret().strip_prefix('!') {
            let output = self.commands.output(command).await;
            return output.map_err(|reason| CredentialError::Command {
                provider: provider.to_owned(),
                what: what.to_owned(),
                reason,
            });
        }
        let environment = self.environment(provider);
        Ok(Secret::from(
            self.expanded(&environment, text.expose_secret()),
        ))
    }

    /// Advice about an entry of `auth.json` that cannot be used.
    fn hint_for_entry(&self, provider: &str, entry: &Stored) -> String {
        let auth = self.directory.join("auth.json");
        let auth = auth.display();
        let instead = match key_variables(provider) {
            [] => String::new(),
            variables => format!(" to use {}", variables.join(" or ")),
        };
        let remove = format!("remove the entry \"{provider}\" from {auth}{instead}");
        match entry {
            Stored::Login { .. } => {
                format!("The login in {auth} has expired. Log in again with pi, or {remove}.")
            }
            Stored::ApiKey { .. } => format!(
                "The entry \"{provider}\" in {auth} has neither \"key\" nor an \"env\" with a key. Add one, or {remove}."
            ),
            Stored::Unusable => format!(
                "The entry \"{provider}\" in {auth} is not a key or a login that pinion knows. Repair it, or {remove}."
            ),
        }
    }

    /// Advice about a missing key.
    fn hint(&self, provider: &str) -> String {
        let mut models = catalog::models_of(provider).peekable();
        if let Some(first) = models.peek().copied()
            && !models.any(|model| SUPPORTED_APIS.contains(&model.api()))
        {
            let (other, variable) = match provider {
                "amazon-bedrock" => ("anthropic", "ANTHROPIC_API_KEY"),
                "openai-codex" => ("openai", "OPENAI_API_KEY"),
                _ => ("openrouter", "OPENROUTER_API_KEY"),
            };
            return format!(
                "pinion does not support the API of {provider} ({}), so a key for it does not help. Use another provider of \
                 the model, for example {other} with {variable}.",
                first.api()
            );
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
            "{begin}\"{provider}\": {{\"type\":\"api_key\",\"key\":\"…\"}} to {}.",
            auth.display()
        )
    }
}

/// Returns the replacement of what follows a `$`, and the text after it.
fn variable<'a>(environment: &Environment, after: &'a str) -> (String, &'a str) {
    if let Some(rest) = after.strip_prefix('$') {
        return ("$".to_owned(), rest);
    }
    if let Some(rest) = after.strip_prefix('!') {
        return ("!".to_owned(), rest);
    }
    let (name, rest) = match after
        .strip_prefix('{')
        .and_then(|text| text.split_once('}'))
    {
        Some((name, rest)) => (name, rest),
        None => {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let end = after.find(|letter| !is_part(letter));
            after.split_at(end.unwrap_or(after.len()))
        }
    };
    match environment.get(name).filter(|_| !name.is_empty()) {
        Some(value) => (value, rest),
        None => ("$".to_owned(), after),
    }
}
