//! Every model that has a name, and the check whether it can be used.
//!
//! The registry is the built-in catalogue, changed by the user's `models.json`, and the keys for
//! both. A [`Model`] is made only when it is looked up or listed. Nothing here uses the network,
//! and no command runs before a key is needed for a request.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pinion_logins::{Login, LoginProvider};
use pinion_message::{Millis, Model, Secret};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::catalog::{self, CatalogModel};
use crate::credentials::{CredentialError, Credentials, Entries, Environment};
use crate::identity::CloudIdentity;
use crate::models_file::{self, CustomModel, ProviderConfig, Providers};
use crate::wire::SUPPORTED_APIS;
use crate::{Notice, RequestOptions, cassette, offline};

#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// List the offline model among the available ones.
    pub include_offline: bool,
    /// The source of environment variables.
    pub environment: Environment,
}

#[derive(Debug, Clone)]
pub struct Registry {
    /// The providers of `models.json`.
    from_file: Arc<Providers>,
    /// The providers of `models.json`, changed by those registered at run time.
    providers: Arc<Providers>,
    /// Models without a server of their own, see [`Registry::with_virtual_model`].
    virtual_models: Arc<Vec<CustomModel>>,
    credentials: Arc<Credentials>,
    include_offline: Arc<AtomicBool>,
}

/// The key, headers and variables of a request.
#[derive(Debug, Clone, Default)]
pub struct Authorization {
    /// The key; `None` for models that need none.
    pub api_key: Option<Secret>,
    /// Headers from `models.json`, resolved. Secret: never print them.
    pub headers: BTreeMap<String, Secret>,
    /// The variables that parts of the address come from; see [`Registry::environment`].
    pub environment: Environment,
    /// The address that replaces that of the model.
    pub base_url: Option<String>,
    /// The identity at a cloud.
    pub identity: Option<CloudIdentity>,
    /// Further secrets behind the key, such as the token that renews it. Never sent; for masks.
    pub secrets: Vec<Secret>,
}

impl Authorization {
    /// Every secret of the request, for masks.
    pub fn all_secrets(&self) -> impl Iterator<Item = &Secret> {
        let keys = self.api_key.iter().chain(&self.secrets);
        keys.chain(self.headers.values())
    }

    /// Puts the key, the headers and the environment into a request; headers that are there already win.
    pub fn apply(self, options: &mut RequestOptions) {
        options.api_key = self.api_key;
        options.environment = self.environment;
        options.base_url = self.base_url;
        options.identity = self.identity;
        for (name, value) in self.headers {
            options
                .headers
                .entry(name)
                .or_insert_with(|| value.expose_secret().to_owned());
        }
    }
}

/// A model that can be compared before a [`Model`] is made of it.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) provider: &'a str,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    BuiltIn(CatalogModel, Option<&'a ProviderConfig>),
    Offline(Option<&'a ProviderConfig>),
    Custom(&'a CustomModel),
}

impl Candidate<'_> {
    pub(crate) fn to_model(self) -> Arc<Model> {
        let (mut model, config) = match self.source {
            Source::BuiltIn(row, config) => (row.to_model(), config),
            Source::Offline(config) => (offline::demo_model(), config),
            Source::Custom(custom) => return Arc::clone(&custom.model),
        };
        if let Some(config) = config {
            config.apply(&mut model);
        }
        Arc::new(model)
    }

    pub(crate) fn is_offline(self) -> bool {
        matches!(self.source, Source::Offline(_))
    }

    /// Reports whether pinion supports the API of the model. A key may still be missing.
    pub(crate) fn is_supported(self) -> bool {
        match self.source {
            Source::BuiltIn(row, _) => SUPPORTED_APIS.contains(&row.api()),
            Source::Offline(_) | Source::Custom(_) => true,
        }
    }
}

impl Registry {
    /// Opens the registry of an agent directory (`models.json`, `auth.json`; both may be absent).
    ///
    /// Invalid parts of those files are ignored, each with a notice.
    pub fn load(agent_dir: &Path, options: RegistryOptions) -> (Self, Vec<Notice>) {
        let (providers, mut notices) = models_file::read(&agent_dir.join("models.json"));
        let (credentials, more) = Credentials::open(agent_dir, options.environment);
        notices.extend(more);
        let providers = Arc::new(providers);
        let registry = Self {
            from_file: Arc::clone(&providers),
            providers,
            virtual_models: Arc::default(),
            credentials: Arc::new(credentials),
            include_offline: Arc::new(AtomicBool::new(options.include_offline)),
        };
        (registry, notices)
    }

    /// This registry with one more provider, or another one of that name, as `models.json` would
    /// describe it. Keys set at run time are shared. The error is for people.
    pub fn with_provider(&self, name: &str, config: &Value) -> Result<Self, String> {
        let config = models_file::registered(name, config, self.config(name))?;
        let mut providers = Providers::clone(&self.providers);
        match providers.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = config,
            None => providers.push((name.to_owned(), config)),
        }
        Ok(Self {
            providers: Arc::new(providers),
            ..self.clone()
        })
    }

    /// This registry with only the `models.json` entry of a provider, without what was registered
    /// at run time.
    pub fn without_provider(&self, name: &str) -> Self {
        let mut providers = Providers::clone(&self.providers);
        providers.retain(|(known, _)| known != name);
        let from_file = self.from_file.iter().find(|(known, _)| known == name);
        providers.extend(from_file.cloned());
        Self {
            providers: Arc::new(providers),
            ..self.clone()
        }
    }

    /// This registry with a model that the program answers by requests to other models. It hides a model with the same
    /// provider and id. It is available if its provider has credentials, or if no other model has this provider.
    pub fn with_virtual_model(&self, model: Model) -> Self {
        let mut changed = self.without_virtual_model(&model.provider, &model.id);
        Arc::make_mut(&mut changed.virtual_models).push(CustomModel {
            model: Arc::new(model),
            headers: BTreeMap::new(),
        });
        changed
    }

    /// This registry without a model that was added by [`Registry::with_virtual_model`].
    pub fn without_virtual_model(&self, provider: &str, id: &str) -> Self {
        let mut changed = self.clone();
        Arc::make_mut(&mut changed.virtual_models)
            .retain(|known| known.model.provider != provider || known.model.id != id);
        changed
    }

    fn is_virtual(&self, model: &Model) -> bool {
        let mut known = self.virtual_models.iter();
        known.any(|known| known.model.provider == model.provider && known.model.id == model.id)
    }

    /// Reports whether all models of a provider are virtual.
    fn is_virtual_provider(&self, provider: &str) -> bool {
        let listed = |known: &CustomModel| known.model.provider == provider;
        self.virtual_models.iter().any(listed)
            && self.config(provider).is_none()
            && !is_built_in(provider)
    }

    /// Sets whether [`Registry::available`] contains the offline model.
    pub fn set_include_offline(&self, include: bool) {
        self.include_offline.store(include, Ordering::Relaxed);
    }

    /// The model with exactly this provider and id, whether or not there is a key.
    ///
    /// `offline/scenario:<file>` always exists; with the provider `cassette` the id is a file.
    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        if provider == offline::PROVIDER
            && let Some(model) = offline::scenario_model(id)
        {
            return Some(Arc::new(model));
        }
        if provider == cassette::PROVIDER {
            return cassette::cassette_model(id).ok().map(Arc::new);
        }
        self.candidates_of(provider)
            .find(|candidate| candidate.id == id)
            .map(Candidate::to_model)
    }

    /// Every model: built-in ones in catalogue order, the offline one, then those of `models.json`.
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.candidates().map(Candidate::to_model).collect()
    }

    /// The models whose provider has a credential and whose API is supported, in the order of
    /// [`Registry::all`]. Runs no command.
    pub fn available(&self) -> Vec<Arc<Model>> {
        self.available_candidates()
            .into_iter()
            .map(Candidate::to_model)
            .collect()
    }

    /// The names of all providers, built-in ones first.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = catalog::providers().collect();
        names.push(offline::PROVIDER);
        let custom = self.providers.iter().map(|(name, _)| name.as_str());
        names.extend(custom.filter(|name| !is_built_in(name)));
        names
    }

    /// Reports whether the provider has any credential. Runs no command; the offline model needs
    /// none.
    pub fn has_credentials(&self, provider: &str) -> bool {
        self.has_credentials_in(&self.credentials.stored(), provider)
    }

    /// A function like [`Registry::has_credentials`] for many providers, which reads `auth.json`
    /// once.
    pub(crate) fn credential_check(&self) -> impl Fn(&str) -> bool {
        let stored = self.credentials.stored();
        move |provider| self.has_credentials_in(&stored, provider)
    }

    fn has_credentials_in(&self, stored: &Entries, provider: &str) -> bool {
        let configured = self.configured_key(provider);
        [offline::PROVIDER, cassette::PROVIDER].contains(&provider)
            || self.is_virtual_provider(provider)
            || self.credentials.has(provider, stored, configured)
    }

    /// Returns the error with which a request to this model would fail if its key is missing. Runs
    /// no command.
    pub fn check_credentials(&self, model: &Model) -> Result<(), CredentialError> {
        if needs_no_key(model) || self.is_virtual_provider(&model.provider) {
            return Ok(());
        }
        let configured = self.configured_key(&model.provider);
        self.credentials
            .missing(&model.provider, configured)
            .map_or(Ok(()), Err)
    }

    /// Every key that is known without running a command, so that it can be masked.
    pub fn known_keys(&self) -> Vec<Secret> {
        let providers = self.providers();
        let stored = self.credentials.stored();
        let known = providers.iter().flat_map(|provider| {
            self.credentials
                .known(provider, &stored, self.configured_key(provider))
        });
        known.collect()
    }

    /// Uses `key` for a provider from now on. It overrides every other source (`--api-key`).
    pub fn set_runtime_key(&self, provider: &str, key: Secret) {
        self.credentials.set_runtime_key(provider, key);
    }

    /// Writes a key to `auth.json`, which only the user may read. Other entries stay.
    pub fn store_key(&self, provider: &str, key: &Secret) -> io::Result<()> {
        self.credentials.store_key(provider, key)
    }

    /// The key for a request to this model, looked up anew; `None` when it needs none.
    pub async fn api_key(&self, model: &Model) -> Result<Option<Secret>, CredentialError> {
        if needs_no_key(model) {
            return Ok(None);
        }
        self.credentials
            .key(&model.provider, self.configured_key(&model.provider))
            .await
    }

    /// The key of a provider, looked up anew; `None` when it needs none.
    pub async fn provider_key(&self, provider: &str) -> Result<Option<Secret>, CredentialError> {
        let configured = self.configured_key(provider);
        self.credentials.key(provider, configured).await
    }

    /// The names of the entries of `auth.json`, in no order.
    pub(crate) fn stored_names(&self) -> Vec<String> {
        self.credentials.stored().keys().cloned().collect()
    }

    /// Reports whether `auth.json` cannot be parsed to its end.
    pub(crate) fn has_unreadable_credentials(&self) -> bool {
        self.credentials.is_torn()
    }

    /// The stored login of a provider, also if it has expired.
    pub fn stored_login(&self, provider: &str) -> Option<Login> {
        self.credentials.login(provider)
    }

    /// The way to sign in to a provider and to renew its login; `None` if there is none.
    pub fn login_provider(&self, provider: &str) -> Option<Arc<dyn LoginProvider>> {
        self.credentials.login_provider(provider)
    }

    /// Returns `login`, renewed if it ends within `margin` milliseconds and pinion can renew it.
    pub async fn fresh_login(
        &self,
        provider: &str,
        login: Login,
        margin: Millis,
    ) -> Result<Login, CredentialError> {
        match self.login_provider(provider) {
            Some(way) if login.ends_within(margin) => {
                self.credentials.renewed(provider, way, margin).await
            }
            _ => Ok(login),
        }
    }

    /// Sets the way to sign in to a provider, which all clones of this registry then have; `None` restores pinion's own.
    pub fn set_login_provider(&self, provider: &str, login: Option<Arc<dyn LoginProvider>>) {
        self.credentials.set_login_provider(provider, login);
    }

    /// Stores a whole entry of `auth.json`, which only the user may read. Other entries stay. Blocks on the lock that all
    /// programs share.
    pub fn store_entry(&self, provider: &str, entry: Value) -> io::Result<()> {
        self.credentials.store(provider, entry)
    }

    /// Removes the entry of a provider from `auth.json`. Returns `false` if there is none. Blocks on the lock that all
    /// programs share.
    pub fn remove_entry(&self, provider: &str) -> io::Result<bool> {
        self.credentials.remove(provider)
    }

    /// The key and the headers for a request to this model, looked up anew.
    pub async fn authorize(&self, model: &Model) -> Result<Authorization, CredentialError> {
        if self.is_virtual(model) {
            // The model that answers has a key of its own.
            return Ok(Authorization::default());
        }
        if needs_no_key(model) {
            return Ok(Authorization::default());
        }
        let configured = self.configured_key(&model.provider);
        let granted = self.credentials.access(model, configured).await?;
        let mut authorization = Authorization {
            api_key: granted.key,
            headers: granted.headers,
            environment: self.environment(&model.provider),
            base_url: granted.base_url,
            identity: granted.identity,
            secrets: granted.secrets,
        };
        let Some(config) = self.config(&model.provider) else {
            return Ok(authorization);
        };
        let headers = &mut authorization.headers;
        let of_model = match config.custom(&model.id) {
            Some(custom) => Some(&custom.headers),
            None => config
                .overrides
                .get(&model.id)
                .map(|change| &change.headers),
        };
        let configured = config.headers.iter().chain(of_model.into_iter().flatten());
        for (name, text) in configured {
            let what = format!("header {name}");
            let value = self.credentials.value(&model.provider, &what, text).await?;
            headers.insert(name.clone(), value);
        }
        if config.auth_header
            && let Some(key) = &authorization.api_key
        {
            let bearer = Secret::from(format!("Bearer {}", key.expose_secret()));
            headers.insert("Authorization".to_owned(), bearer);
        }
        Ok(authorization)
    }

    /// Returns the environment of a provider: the `env` of its entry in `auth.json`, then the variables of
    /// the process.
    pub fn environment(&self, provider: &str) -> Environment {
        self.credentials.environment(provider)
    }

    /// Every model in order.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        let built_in = catalog::providers().chain([offline::PROVIDER]);
        let built_in = built_in.flat_map(|provider| self.built_in_of(provider));
        let listed = built_in.chain(
            self.providers
                .iter()
                .flat_map(|(name, config)| added(name, config)),
        );
        let shown = listed.filter(|candidate| {
            let mut known = self.virtual_models.iter().map(|known| &known.model);
            !known.any(|known| known.provider == candidate.provider && known.id == candidate.id)
        });
        shown.chain(self.virtual_models.iter().map(Candidate::custom))
    }

    /// The models of one provider in order.
    pub(crate) fn candidates_of<'a>(
        &'a self,
        provider: &'a str,
    ) -> impl Iterator<Item = Candidate<'a>> {
        let config = self.config(provider);
        let of_provider = move |known: &&CustomModel| known.model.provider == provider;
        let virtual_models = self.virtual_models.iter().filter(of_provider);
        let listed = self.built_in_of(provider).chain(
            config
                .into_iter()
                .flat_map(move |config| added(provider, config)),
        );
        virtual_models.map(Candidate::custom).chain(listed)
    }

    /// The available models in order.
    pub(crate) fn available_candidates(&self) -> Vec<Candidate<'_>> {
        let offline = self.include_offline.load(Ordering::Relaxed);
        let stored = self.credentials.stored();
        // Candidates are ordered by provider, so each provider is checked once.
        let mut last: Option<(&str, bool)> = None;
        let mut has_credentials = |provider| match last {
            Some((known, has)) if known == provider => has,
            _ => {
                let has = self.has_credentials_in(&stored, provider);
                last = Some((provider, has));
                has
            }
        };
        self.candidates()
            .filter(|candidate| {
                if candidate.is_offline() {
                    offline
                } else {
                    candidate.is_supported() && has_credentials(candidate.provider)
                }
            })
            .collect()
    }

    /// The built-in models of a provider, except those that `models.json` defines again.
    fn built_in_of<'a>(&'a self, provider: &'a str) -> impl Iterator<Item = Candidate<'a>> {
        let config = self.config(provider);
        let demo = (provider == offline::PROVIDER).then_some(Candidate {
            provider: offline::PROVIDER,
            id: offline::DEMO,
            name: offline::DEMO_NAME,
            source: Source::Offline(config),
        });
        let replaced = config.is_some_and(|config| config.replaces_built_in);
        let rows = catalog::models_of(provider).filter(move |_| !replaced);
        let rows = rows.map(move |row| {
            if let Some(custom) = config.and_then(|config| config.custom(row.id())) {
                return Candidate::custom(custom);
            }
            Candidate {
                provider: row.provider(),
                id: row.id(),
                name: config
                    .and_then(|config| config.renamed(row.id()))
                    .unwrap_or(row.name()),
                source: Source::BuiltIn(row, config),
            }
        });
        demo.into_iter().chain(rows)
    }

    fn config(&self, provider: &str) -> Option<&ProviderConfig> {
        self.providers
            .iter()
            .find(|(name, _)| name == provider)
            .map(|(_, config)| config)
    }

    fn configured_key(&self, provider: &str) -> Option<&Secret> {
        self.config(provider)?.api_key.as_ref()
    }
}

impl<'a> Candidate<'a> {
    fn custom(custom: &'a CustomModel) -> Self {
        let model = &custom.model;
        Self {
            provider: &model.provider,
            id: &model.id,
            name: &model.name,
            source: Source::Custom(custom),
        }
    }
}

/// The models a provider's entry adds to the built-in ones.
fn added<'a>(provider: &'a str, config: &'a ProviderConfig) -> impl Iterator<Item = Candidate<'a>> {
    let replaces = move |custom: &&CustomModel| {
        catalog::models_of(provider).any(|row| row.id() == custom.model.id)
    };
    config
        .models
        .iter()
        .filter(move |custom| !replaces(custom))
        .map(Candidate::custom)
}

pub(crate) fn is_built_in(provider: &str) -> bool {
    catalog::providers().any(|known| known == provider) || provider == offline::PROVIDER
}

fn needs_no_key(model: &Model) -> bool {
    model.api == offline::API || model.provider == cassette::PROVIDER
}
