//! The choice of a model from settings: its protocol, server and key.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use pinion_llm::{
    Authorization, CredentialError, EventStream, Provider, Registry, Request, RequestOptions,
};
use pinion_message::{Model, ModelCost, Secret, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::json;

use crate::api_type::{ApiType, OFFLINE};
use crate::error::{Notice, ProfileError};
use crate::locations::HostContext;
use crate::resolve::Resolved;
use crate::tuning::{self, Tuning};
use crate::unnamed::{self, Unnamed};
use crate::{oauth, outbound};

/// The context window of an unknown model, in tokens.
const CONTEXT_WINDOW: u64 = 128_000;

/// A model and everything needed to send requests to it.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub model: Arc<Model>,
    pub access: Access,
    pub thinking: ThinkingLevel,
    /// Options of its requests.
    pub tuning: Arc<Tuning>,
    /// Settings that have no effect, for stderr.
    pub notices: Vec<Notice>,
}

/// The credentials of requests.
#[derive(Debug, Clone)]
pub enum Access {
    Given(Box<Authorization>),
    /// Credentials from pinion's own registry, looked up for each request.
    Registry,
}

impl Chosen {
    /// Returns the key and the headers of a request. `registry` is the one the model was chosen
    /// with.
    pub fn authorize(
        &self,
        registry: &Registry,
    ) -> BoxFuture<'static, Result<Authorization, CredentialError>> {
        match &self.access {
            Access::Given(authorization) => {
                let authorization = Authorization::clone(authorization);
                Box::pin(async move { Ok(authorization) })
            }
            Access::Registry => {
                let (registry, model) = (registry.clone(), Arc::clone(&self.model));
                Box::pin(async move { registry.authorize(&model).await })
            }
        }
    }

    /// Returns the known keys, so that they can be masked.
    pub fn known_keys(&self) -> Vec<Secret> {
        match &self.access {
            Access::Given(given) => {
                let key = given.api_key.iter();
                key.chain(given.headers.values()).cloned().collect()
            }
            Access::Registry => Vec::new(),
        }
    }

    /// Returns a provider that passes requests to `inner` with the settings applied.
    pub fn provider(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Tuned {
            inner,
            tuning: Arc::clone(&self.tuning),
        })
    }

    /// Applies the settings to a request.
    pub fn tune(&self, options: &mut RequestOptions) {
        self.tuning.apply(options);
    }
}

/// A provider that applies the settings and passes requests on.
struct Tuned {
    inner: Arc<dyn Provider>,
    tuning: Arc<Tuning>,
}

impl Provider for Tuned {
    fn stream(&self, mut request: Request) -> EventStream {
        self.tuning.apply(&mut request.options);
        self.inner.stream(request)
    }
}

/// Returns the model that the settings choose. `registry` is pinion's own, for its catalogue and
/// its keys.
pub fn engine(
    resolved: &Resolved,
    registry: &Registry,
    host: &HostContext<'_>,
    if_unnamed: Unnamed<'_>,
    now: SystemTime,
) -> Result<Chosen, ProfileError> {
    let settings = &resolved.settings;
    let name = settings.chat.engine.as_deref().unwrap_or_default().trim();
    let api_type = settings.chat.api_type.as_deref().unwrap_or_default().trim();
    if api_type == OFFLINE {
        let id = if resolved.is_given(&["chat", "engine"]) {
            name.strip_prefix("offline/").unwrap_or(name)
        } else {
            "demo"
        };
        return of_registry(resolved, registry, OFFLINE, id);
    }
    if let Some((provider, id)) = own_name(resolved, registry, name) {
        return of_registry(resolved, registry, provider, id);
    }
    let api_type = ApiType::of(api_type)?;
    match of_api_type(resolved, registry, host, &api_type, name, now)? {
        Some(chosen) => Ok(chosen),
        None if unnamed::names_nothing(resolved) => {
            unnamed::choose(resolved, registry, host, if_unnamed, now)
        }
        None => Err(missing_key(registry, &api_type, name)),
    }
}

/// Returns the model `id` of this kind of API, with the server and key of the settings. `None`
/// without a key.
pub(crate) fn of_api_type(
    resolved: &Resolved,
    registry: &Registry,
    host: &HostContext<'_>,
    api_type: &ApiType,
    id: &str,
    now: SystemTime,
) -> Result<Option<Chosen>, ProfileError> {
    let bearer = bearer(resolved, api_type, now)?;
    let address = address(resolved, api_type)?;
    let access = match bearer {
        Some(token) => Some(Access::Given(Box::new(with_token(api_type, token)))),
        None => access(resolved, registry, host, api_type, &address),
    };
    let Some(access) = access else {
        return Ok(None);
    };
    let model = model(resolved, registry, api_type, id, address.url);
    finish(resolved, model, access).map(Some)
}

pub(crate) fn missing_key(registry: &Registry, api_type: &ApiType, id: &str) -> ProfileError {
    let key = api_type.keys.first().copied().unwrap_or_default();
    ProfileError::MissingKey {
        engine: id.to_owned(),
        api_type: api_type.name.to_owned(),
        key: key.to_owned(),
        variables: api_type.advised_variables(),
        instead: unnamed::models_with_keys(registry),
    }
}

/// Returns the model that `--model` names, with the settings applied. The name overrides the
/// engine, the kind of API and the server of every profile.
pub fn named_engine(
    resolved: &Resolved,
    registry: &Registry,
    pattern: &str,
) -> Result<Chosen, ProfileError> {
    let found = pinion_llm::resolve_model(registry, None, pattern).map_err(|error| {
        ProfileError::UnknownModel {
            message: error.to_string(),
        }
    })?;
    check_key(registry, &found.model)?;
    let mut chosen = finish(resolved, Model::clone(&found.model), Access::Registry)?;
    if let Some(level) = found.thinking {
        chosen.thinking = chosen.model.clamp_thinking(level);
    }
    let warning = found.warning.map(|words| Notice::new("model", words));
    chosen.notices.extend(warning);
    Ok(chosen)
}

/// Applies the settings to `model`.
fn finish(resolved: &Resolved, mut model: Model, access: Access) -> Result<Chosen, ProfileError> {
    if resolved.settings.openai.stream_include_usage == Some(false) {
        let compat = model.compat.get_or_insert_default();
        compat.insert("supportsUsageInStreaming".to_owned(), json!(false));
    }
    let (tuning, thinking, notices) = tuning::of(resolved, &model)?;
    Ok(Chosen {
        thinking: model.clamp_thinking(thinking),
        model: Arc::new(model),
        access,
        tuning: Arc::new(tuning),
        notices,
    })
}

/// Returns a model of pinion's own registry, with its own key.
pub(crate) fn of_registry(
    resolved: &Resolved,
    registry: &Registry,
    provider: &str,
    id: &str,
) -> Result<Chosen, ProfileError> {
    let Some(model) = registry.find(provider, id) else {
        let resolved = pinion_llm::resolve_model(registry, Some(provider), id);
        let message = match resolved {
            Err(error) => error.to_string(),
            Ok(found) => format!(
                "engine \"{provider}/{id}\" is not a model of pinion; did you mean {}/{}?",
                found.model.provider, found.model.id
            ),
        };
        return Err(ProfileError::UnknownModel { message });
    };
    check_key(registry, &model)?;
    finish(resolved, Model::clone(&model), Access::Registry)
}

fn check_key(registry: &Registry, model: &Model) -> Result<(), ProfileError> {
    registry.check_credentials(model).map_err(|error| {
        let reason = error.to_string().replace("\n\n", " ");
        let reason = reason.trim_end_matches('.');
        ProfileError::MissingCredential {
            message: format!("{reason}{}", unnamed::models_with_keys(registry)),
        }
    })
}

/// Returns the provider and id of `provider/id` or `cassette:FILE`, unless the settings name
/// another server.
fn own_name<'a>(
    resolved: &Resolved,
    registry: &Registry,
    name: &'a str,
) -> Option<(&'a str, &'a str)> {
    if let Some(file) = name.strip_prefix("cassette:") {
        return Some(("cassette", file));
    }
    let (provider, id) = name.split_once('/')?;
    let elsewhere = resolved.is_given(&["chat", "api_type"])
        || resolved.is_given(&["api", "base_urls", "openai-base-url"]);
    let known = registry.providers().contains(&provider);
    (known && (provider == OFFLINE || !elsewhere)).then_some((provider, id))
}

/// The server of requests.
struct Address {
    url: String,
    /// It is the provider's usual server, which may receive every key of the user.
    usual: bool,
}

fn address(resolved: &Resolved, api_type: &ApiType) -> Result<Address, ProfileError> {
    let api = &resolved.settings.api;
    let known = api_type.base_urls.iter().find_map(|key| {
        let url = api.base_urls.get(*key)?.trim();
        (!url.is_empty()).then_some((*key, url))
    });
    let default = api_type
        .default_base_url
        .zip(api_type.base_urls.first().copied());
    let Some((key, url)) = known.or(default.map(|(url, key)| (key, url))) else {
        return Err(ProfileError::MissingBaseUrl {
            api_type: api_type.name.to_owned(),
            key: api_type
                .base_urls
                .first()
                .copied()
                .unwrap_or_default()
                .to_owned(),
        });
    };
    outbound::check(key, url, api, api_type.permissions)?;
    let usual = Some(url.trim_end_matches('/')) == api_type.default_base_url;
    let mut url = url.trim_end_matches('/').to_owned();
    if api_type.api == "google-generative-ai" {
        let version = resolved.settings.gemini.api_version.as_deref();
        let version = version.unwrap_or("v1beta").trim_matches('/');
        if !version.is_empty() && !url.ends_with(&format!("/{version}")) {
            url = format!("{url}/{version}");
        }
    }
    Ok(Address { url, usual })
}

/// Returns the first key found: in the settings, the usual variables, pinion's own files.
fn access(
    resolved: &Resolved,
    registry: &Registry,
    host: &HostContext<'_>,
    api_type: &ApiType,
    address: &Address,
) -> Option<Access> {
    if let Some(key) = static_key(resolved, api_type) {
        return Some(with_key(key));
    }
    let variable = |name: &&str| host.variable(name);
    if let Some(key) = api_type.variables.iter().find_map(variable) {
        return Some(with_key(Secret::from(key)));
    }
    (address.usual && registry.has_credentials(api_type.provider)).then_some(Access::Registry)
}

fn with_key(key: Secret) -> Access {
    Access::Given(Box::new(Authorization {
        api_key: Some(key),
        ..Authorization::default()
    }))
}

pub(crate) fn static_key(resolved: &Resolved, api_type: &ApiType) -> Option<Secret> {
    let keys = &resolved.settings.api.api_keys;
    let set = |name: &&str| {
        let key = keys.get(*name)?;
        (!key.expose_secret().trim().is_empty()).then(|| key.clone())
    };
    api_type.keys.iter().find_map(set)
}

/// Returns the token of the profile's login.
fn bearer(
    resolved: &Resolved,
    api_type: &ApiType,
    now: SystemTime,
) -> Result<Option<Secret>, ProfileError> {
    let Some(profile) = &resolved.profile else {
        return Ok(None);
    };
    let has_key = api_type.keys.iter().any(|key| {
        let key = profile.settings.get(&["api", "api_keys", key]);
        key.and_then(|key| key.as_str())
            .is_some_and(|key| !key.trim().is_empty())
    });
    let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
    oauth::token(profile, has_key, now)
}

/// OpenAI's APIs send every key as a bearer token; the others need a header for it.
fn with_token(api_type: &ApiType, token: Secret) -> Authorization {
    match api_type.api {
        "openai-completions" | "openai-responses" => Authorization {
            api_key: Some(token),
            ..Authorization::default()
        },
        _ => {
            let value = Secret::from(format!("Bearer {}", token.expose_secret()));
            Authorization {
                headers: [("Authorization".to_owned(), value)].into(),
                ..Authorization::default()
            }
        }
    }
}

/// Returns the model of the catalogue, or a new one, with `model_info` applied.
fn model(
    resolved: &Resolved,
    registry: &Registry,
    api_type: &ApiType,
    id: &str,
    base_url: String,
) -> Model {
    let known = registry.find(api_type.provider, id);
    let mut model = match known {
        Some(known) => Model::clone(&known),
        None => Model {
            id: id.to_owned(),
            name: id.to_owned(),
            api: String::new(),
            provider: api_type.provider.to_owned(),
            base_url: String::new(),
            reasoning: tuning::thinks_by_name(id)
                || tuning::asks_to_think(resolved, api_type.api).is_some(),
            thinking_level_map: None,
            input: vec!["text".to_owned(), "image".to_owned()],
            cost: ModelCost::default(),
            context_window: CONTEXT_WINDOW,
            max_tokens: 0,
            headers: None,
            compat: None,
        },
    };
    model.api = api_type.api.to_owned();
    // Servers that only imitate OpenAI's rarely support its later additions.
    if api_type.api == "openai-completions" && !base_url.starts_with("https://api.openai.com/") {
        let compat = model.compat.get_or_insert_default();
        for (flag, value) in [
            ("supportsStore", json!(false)),
            ("supportsDeveloperRole", json!(false)),
            ("maxTokensField", json!("max_tokens")),
        ] {
            compat.entry(flag).or_insert(value);
        }
    }
    model.base_url = base_url;
    let info = &resolved.settings.model_info;
    if let Some(name) = &info.name {
        model.name.clone_from(name);
    }
    model.reasoning = info.reasoning.unwrap_or(model.reasoning);
    if let Some(input) = &info.input {
        model.input.clone_from(input);
    }
    let tokens = |tokens: Option<i64>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    model.context_window = tokens(info.context_window).unwrap_or(model.context_window);
    model.max_tokens = tokens(info.max_output_tokens).unwrap_or(model.max_tokens);
    if let Some(cost) = info.cost {
        model.cost = ModelCost {
            input: cost.input,
            output: cost.output,
            cache_read: cost.cache_read,
            cache_write: cost.cache_write,
            tiers: Vec::new(),
        };
    }
    model
}
