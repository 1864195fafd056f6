//! API keys: their sources and the order of these.
//!
//! The command line overrides `auth.json`, which overrides the environment, which overrides
//! `models.json`. A check for a key never runs a command; fetching a key may. Nothing under a
//! project's directory is ever read.

mod auth_file;
mod command;
mod environment;
mod hints;
mod identity;
mod renewal;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pinion_logins::{Login, LoginProvider, RENEWAL_MARGIN, built_in};
use pinion_message::{Millis, Model, Secret};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::Notice;
use crate::identity::CloudIdentity;
pub(crate) use auth_file::Entries;
use auth_file::{AuthFile, Stored};
use command::CommandCache;
pub use environment::{Environment, key_variables};
use identity::Identities;
pub use renewal::finish_renewals;
use renewal::{RenewalError, fresh_login};

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
    /// The login is about to expire and could not be renewed.
    #[error("OAuth refresh failed for {provider}: {cause}\n\n{hint}")]
    Renewal {
        provider: String,
        /// The cause, without secrets.
        cause: String,
        /// Advice that names the way to sign in again.
        hint: String,
    },
    /// The login could not be turned into a key.
    #[error("OAuth auth derivation failed for {provider}: {cause}")]
    Access {
        provider: String,
        /// The cause, without secrets.
        cause: String,
    },
    /// The identity of a cloud is missing or was refused.
    #[error("{reason}")]
    Identity {
        provider: String,
        /// A sentence that ends with what to do.
        reason: String,
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
            Self::Renewal { .. } => "login_not_renewed",
            Self::Access { .. } => "login_not_usable",
            Self::Identity { .. } => "no_cloud_identity",
            Self::Command { .. } => "key_command_failed",
        }
    }
}

/// The data that a request needs.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    pub(crate) key: Option<Secret>,
    pub(crate) headers: BTreeMap<String, Secret>,
    pub(crate) base_url: Option<String>,
    pub(crate) identity: Option<CloudIdentity>,
    /// Everything that must be masked besides the key and the headers.
    pub(crate) secrets: Vec<Secret>,
}

impl Granted {
    fn key(key: Secret) -> Self {
        Self {
            key: Some(key),
            ..Self::default()
        }
    }
}

/// Every source of keys except `models.json`.
pub(crate) struct Credentials {
    directory: PathBuf,
    environment: Environment,
    auth: Arc<AuthFile>,
    runtime: RwLock<HashMap<String, Secret>>,
    commands: Arc<CommandCache>,
    /// The ways to sign in that extensions registered, by provider.
    logins: RwLock<HashMap<String, Arc<dyn LoginProvider>>>,
    identities: Identities,
}

/// Shows the directory only.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    pub(crate) fn open(directory: &Path, environment: Environment) -> (Self, Vec<Notice>) {
        let (auth, notices) = AuthFile::open(directory.join("auth.json"));
        let credentials = Self {
            directory: directory.to_owned(),
            environment,
            auth: Arc::new(auth),
            runtime: RwLock::default(),
            commands: Arc::default(),
            logins: RwLock::default(),
            identities: Identities::default(),
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

    /// Stores a whole entry.
    pub(crate) fn store(&self, provider: &str, entry: Value) -> io::Result<()> {
        self.auth.store(provider, entry)
    }

    /// Removes an entry. Returns `false` if there is none.
    pub(crate) fn remove(&self, provider: &str) -> io::Result<bool> {
        self.auth.remove(provider)
    }

    /// Sets the way to sign in to a provider; `None` restores pinion's own.
    pub(crate) fn set_login_provider(&self, provider: &str, login: Option<Arc<dyn LoginProvider>>) {
        let mut logins = self.logins.write().unwrap_or_else(PoisonError::into_inner);
        match login {
            Some(login) => logins.insert(provider.to_owned(), login),
            None => logins.remove(provider),
        };
    }

    /// The way to sign in to a provider: that of an extension, else pinion's own.
    pub(crate) fn login_provider(&self, provider: &str) -> Option<Arc<dyn LoginProvider>> {
        let logins = self.logins.read().unwrap_or_else(PoisonError::into_inner);
        logins.get(provider).cloned().or_else(|| built_in(provider))
    }

    fn runtime_key(&self, provider: &str) -> Option<Secret> {
        self.runtime
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(provider)
            .cloned()
    }

    /// The stored login of a provider.
    pub(crate) fn login(&self, provider: &str) -> Option<Login> {
        match self.auth.entries().get(provider) {
            Some(Stored::Login(login)) => Some(login.clone()),
            _ => None,
        }
    }

    /// Reports whether the file cannot be parsed to its end.
    pub(crate) fn is_torn(&self) -> bool {
        self.auth.is_torn()
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
                // This provider takes logins only.
                Some(Stored::ApiKey { .. }) if provider == "openai-codex" => false,
                Some(Stored::ApiKey { key: Some(_), .. }) => true,
                // An entry without anything selects the chain of AWS.
                Some(Stored::ApiKey { .. }) if provider == "amazon-bedrock" => true,
                Some(Stored::ApiKey { key: None, .. }) => {
                    let environment = self.environment_in(stored, provider);
                    environment.has_credentials(provider)
                }
                Some(Stored::Login(login)) => {
                    !login.is_expired() || self.login_provider(provider).is_some()
                }
                Some(Stored::Unusable) => false,
                None => {
                    self.set(configured).is_some() || self.environment.has_credentials(provider)
                }
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
            Some(Stored::Login(_) | Stored::Unusable) | None => self.environment.clone(),
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
            Some(Stored::Login(_)) => CredentialError::Expired { provider, hint },
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
        let granted = self.of_entry(provider, None, configured).await?;
        Ok(granted.key)
    }

    /// Everything that a request to `model` needs. Renews a login that is about to expire.
    pub(crate) async fn access(
        &self,
        model: &Model,
        configured: Option<&Secret>,
    ) -> Result<Granted, CredentialError> {
        let provider = model.provider.as_str();
        let mut granted = self.of_entry(provider, Some(model), configured).await?;
        self.add_identity(model, &mut granted).await?;
        Ok(granted)
    }

    /// The key of a provider and what belongs to it, without the identities of clouds.
    async fn of_entry(
        &self,
        provider: &str,
        model: Option<&Model>,
        configured: Option<&Secret>,
    ) -> Result<Granted, CredentialError> {
        if let Some(key) = self.runtime_key(provider) {
            return Ok(Granted::key(key));
        }
        let entries = self.auth.entries();
        let found = match entries.get(provider) {
            Some(Stored::ApiKey { .. }) if provider == "openai-codex" => None,
            Some(Stored::ApiKey { key: Some(key), .. }) => {
                return self.value(provider, "API key", key).await.map(Granted::key);
            }
            Some(Stored::ApiKey { key: None, .. }) => {
                self.environment_in(&entries, provider).key(provider)
            }
            Some(Stored::Login(login)) => return self.of_login(provider, login, model).await,
            Some(Stored::Unusable) => None,
            None => match (self.environment.key(provider), self.set(configured)) {
                (None, Some(key)) => {
                    return self.value(provider, "API key", key).await.map(Granted::key);
                }
                (key, _) => key,
            },
        };
        match found {
            Some(key) => Ok(Granted::key(Secret::from(key))),
            None => match self.missing(provider, configured) {
                Some(error) => Err(error),
                None => Ok(Granted::default()),
            },
        }
    }

    /// The key of a stored login, which is renewed if it is due.
    async fn of_login(
        &self,
        provider: &str,
        login: &Login,
        model: Option<&Model>,
    ) -> Result<Granted, CredentialError> {
        let Some(way) = self.login_provider(provider) else {
            let expired = || {
                self.missing(provider, None)
                    .unwrap_or(CredentialError::Expired {
                        provider: provider.to_owned(),
                        hint: self.hint(provider),
                    })
            };
            // pinion does not renew it, and uses it while it is valid.
            return if login.is_expired() {
                Err(expired())
            } else {
                Ok(Granted::key(Secret::from(login.access())))
            };
        };
        let login = if login.is_due() {
            self.renewed(provider, Arc::clone(&way), RENEWAL_MARGIN)
                .await?
        } else {
            login.clone()
        };
        let access = way.access(&login, model).await;
        let access = access.map_err(|error| CredentialError::Access {
            provider: provider.to_owned(),
            cause: login.masked(&error.to_string()),
        })?;
        Ok(Granted {
            key: access.api_key,
            headers: access.headers,
            base_url: access.base_url,
            identity: None,
            secrets: login.secrets(),
        })
    }

    /// Returns the login of a provider, renewed if it ends within `margin` milliseconds.
    pub(crate) async fn renewed(
        &self,
        provider: &str,
        way: Arc<dyn LoginProvider>,
        margin: Millis,
    ) -> Result<Login, CredentialError> {
        let can_sign_in = way.can_sign_in();
        let fresh = fresh_login(&self.auth, provider, way, margin).await;
        fresh.map_err(|error| match error {
            RenewalError::LoggedOut => CredentialError::Missing {
                provider: provider.to_owned(),
                hint: self.hint(provider),
            },
            RenewalError::Failed(cause) => CredentialError::Renewal {
                provider: provider.to_owned(),
                cause,
                hint: hints::sign_in_again(provider, can_sign_in),
            },
        })
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
        if provider == "anthropic" {
            known.extend(environment.get("ANTHROPIC_AUTH_TOKEN").map(Secret::from));
        }
        let mut texts: Vec<Secret> = configured.into_iter().cloned().collect();
        match stored.get(provider) {
            Some(Stored::ApiKey { key, .. }) => texts.extend(key.clone()),
            Some(Stored::Login(login)) => known.extend(login.secrets()),
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

    /// Returns a configured key unless it only names a variable that is not set.
    fn set<'a>(&self, configured: Option<&'a Secret>) -> Option<&'a Secret> {
        configured.filter(|key| {
            let Some(name) = key.expose_secret().strip_prefix('$') else {
                return true;
            };
            let braced = name
                .strip_prefix('{')
                .and_then(|name| name.strip_suffix('}'));
            let name = braced.unwrap_or(name);
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let is_name = name
                .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(is_part);
            !is_name || self.environment.get(name).is_some()
        })
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
