//! The model of a run that does not name one.

use std::sync::Arc;
use std::time::SystemTime;

use pinion_llm::{InitialOptions, Registry, initial_model};
use pinion_message::Model;
use secrecy::ExposeSecret;

use crate::api_type::{ApiType, OFFLINE, SUPPORTED};
use crate::engine::{Chosen, missing_key, of_api_type, of_registry, static_key};
use crate::error::{Notice, ProfileError};
use crate::locations::HostContext;
use crate::resolve::Resolved;

/// The most models that an error suggests.
const SUGGESTIONS: usize = 5;

/// The options of a run that does not name a model and has no key for the default engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unnamed<'a> {
    /// Provider and id of the default model in the user's settings.
    pub saved: Option<(&'a str, &'a str)>,
    /// Use the built-in offline/demo model if there is no key at all. A script must not set it,
    /// because it would treat the answer as a real one.
    pub demo: bool,
}

/// Reports whether neither a profile nor an option names an engine, a kind of API or a server.
pub(crate) fn names_nothing(resolved: &Resolved) -> bool {
    resolved.profile.is_none()
        && [
            &["chat", "engine"][..],
            &["chat", "api_type"],
            &["api", "base_urls", "openai-base-url"],
        ]
        .iter()
        .all(|path| !resolved.is_given(path))
}

/// Chooses the saved model, else one that has a key, else the built-in one if `unnamed` permits it.
pub(crate) fn choose(
    resolved: &Resolved,
    registry: &Registry,
    host: &HostContext<'_>,
    unnamed: Unnamed<'_>,
    now: SystemTime,
) -> Result<Chosen, ProfileError> {
    let options = InitialOptions {
        chosen: None,
        scope: &[],
        continuing: false,
        session: None,
        saved: unnamed.saved,
    };
    let is_saved = |model: &Model| unnamed.saved == Some((&*model.provider, &*model.id));
    let of_settings = |api_type: &ApiType, id: &str| {
        let chosen = of_api_type(resolved, registry, host, api_type, id, now)?;
        chosen.ok_or_else(|| missing_key(registry, api_type, id))
    };
    if let Some(initial) = initial_model(registry, &options)
        && (initial.model.provider != OFFLINE || is_saved(&initial.model))
    {
        let Model { provider, id, .. } = &*initial.model;
        // If the settings name a server for this provider, it is used.
        let directed = SUPPORTED.iter().find(|api_type| {
            let given = |key: &&str| resolved.is_given(&["api", "base_urls", key]);
            api_type.provider == provider && api_type.base_urls.iter().any(given)
        });
        return match directed {
            Some(api_type) => of_settings(api_type, id),
            None => of_registry(resolved, registry, provider, id),
        };
    }
    // Keys that exist only in Pinocchio's settings and variables.
    let keyed = |api_type: &&ApiType| static_key(resolved, api_type).is_some();
    if let Some(api_type) = SUPPORTED.iter().find(keyed)
        && let Some(model) = pinion_llm::default_model(registry, api_type.provider)
    {
        return of_settings(api_type, &model.id);
    }
    if !unnamed.demo || any_key(resolved, registry, host) {
        return Err(ProfileError::NoModel);
    }
    let mut chosen = of_registry(resolved, registry, OFFLINE, "demo")?;
    chosen.notices.push(Notice::new(
        "offline_instead",
        "no key is configured and no engine is named, so the built-in offline/demo model answers. It is not a real model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or choose a profile, to use one.",
    ));
    Ok(chosen)
}

/// Reports whether a key of any provider is configured.
fn any_key(resolved: &Resolved, registry: &Registry, host: &HostContext<'_>) -> bool {
    let keys = resolved.settings.api.api_keys.values();
    let mut set = keys.filter(|key| !key.expose_secret().trim().is_empty());
    set.next().is_some()
        || SUPPORTED.iter().any(|api_type| {
            let mut variables = api_type.variables.iter();
            variables.any(|name| host.variable(name).is_some())
                || registry.has_credentials(api_type.provider)
        })
}

/// Returns the end of an error about a missing key: one model of each provider that has a key.
pub(crate) fn models_with_keys(registry: &Registry) -> String {
    let available = registry.available();
    let mut providers: Vec<&str> = available.iter().map(|model| &*model.provider).collect();
    providers.dedup();
    let names: Vec<String> = providers
        .into_iter()
        .filter(|provider| *provider != OFFLINE)
        .filter_map(|provider| {
            let default = pinion_llm::default_model(registry, provider)?;
            let is_available = |model: &&Arc<Model>| model.provider == provider;
            let spoken = available
                .iter()
                .filter(is_available)
                .any(|model| model.id == default.id);
            let first = available.iter().find(is_available)?;
            let model = if spoken { &default } else { first };
            Some(format!("{}/{}", model.provider, model.id))
        })
        .take(SUGGESTIONS)
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        ". Models you have a key for: {}; name one with --model",
        names.join(", ")
    )
}
