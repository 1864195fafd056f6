//! Turns the name after `--model` into a model.
//!
//! Names may be partial, may have a provider before a slash and a thinking level after a colon.
//! Nothing here uses the network or runs a command.

mod initial;
mod nearest;
mod pattern;
mod scope;

use std::sync::Arc;

use pinion_message::{Model, ThinkingLevel};

use crate::registry::{Candidate, is_built_in};
use crate::{Registry, cassette, offline};
pub use initial::{InitialModel, InitialOptions, default_model, initial_model};
use pattern::{Suffix, match_pattern};
pub use scope::{ScopedModel, scope};

#[derive(Debug, Clone)]
pub struct Resolved {
    pub model: Arc<Model>,
    /// The level written after the name, not yet clamped to the model.
    pub thinking: Option<ThinkingLevel>,
    /// For stderr, after `Warning: `.
    pub warning: Option<String>,
}

/// A name that matches no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error(
        "Unknown provider \"{provider}\". {}Use --list-models to see available providers/models.",
        did_you_mean(.nearest.as_deref())
    )]
    UnknownProvider {
        /// As it was written.
        provider: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    #[error(
        "Model \"{model}\" not found. {}Use --list-models to see available models.",
        did_you_mean(.nearest.as_deref())
    )]
    UnknownModel {
        /// As it was written, with the provider if one was named.
        model: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// A cassette that cannot be replayed.
    #[error(
        "Cassette \"{file}\" cannot be replayed: {reason}. Record one with PINION_CASSETTE_RECORD={file}."
    )]
    Cassette {
        /// As it was written.
        file: String,
        /// The reason, without its full stop.
        reason: String,
    },
}

impl ResolveError {
    /// A name for programs that never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownProvider { .. } => "unknown_provider",
            Self::UnknownModel { .. } => "unknown_model",
            Self::Cassette { .. } => "unreadable_cassette",
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!("Did you mean \"{name}\"? "))
        .unwrap_or_default()
}

/// The model that `pattern` stands for, among all known ones or those of `provider`.
///
/// An exact name wins over a partial one. If several models match, those whose API is supported are
/// preferred, then those whose provider has a credential, then those of the provider that makes
/// them. A name unknown to a built-in provider becomes a model of that provider, with a warning:
/// new models work before the catalogue contains them.
pub fn resolve_model(
    registry: &Registry,
    provider: Option<&str>,
    pattern: &str,
) -> Result<Resolved, ResolveError> {
    let found = |model, thinking| Resolved {
        model,
        thinking,
        warning: None,
    };
    let cassette = match provider {
        None => pattern.strip_prefix(cassette::PREFIX),
        Some(provider) => (provider == cassette::PROVIDER).then_some(pattern),
    };
    if let Some(file) = cassette {
        let unreadable = |reason| ResolveError::Cassette {
            file: file.to_owned(),
            reason,
        };
        let model = cassette::cassette_model(file).map_err(unreadable)?;
        return Ok(found(Arc::new(model), None));
    }
    let (named, mut rest) = match provider {
        Some(provider) => {
            let canonical = canonical_provider(registry, provider)?;
            (
                Some(canonical),
                strip_provider(pattern, canonical).unwrap_or(pattern),
            )
        }
        None => (None, pattern),
    };
    let mut inferred = None;
    if named.is_none()
        && let Some((before, after)) = pattern.split_once('/')
        && let Ok(canonical) = canonical_provider(registry, before)
    {
        inferred = Some(canonical);
        rest = after;
    }
    let restricted = named.or(inferred);
    if let Some(offline::PROVIDER) = restricted
        && let Some(model) = offline::scenario_model(rest)
    {
        return Ok(found(Arc::new(model), None));
    }

    let candidates: Vec<Candidate<'_>> = match restricted {
        Some(provider) => registry.candidates_of(provider).collect(),
        None => registry.candidates().collect(),
    };
    if let Some(hit) = match_pattern(registry, rest, &candidates, Suffix::MustBeLevel) {
        return Ok(found(hit.candidate.to_model(), hit.thinking));
    }
    if inferred.is_some() {
        // The text before the slash may belong to an id after all.
        let all: Vec<Candidate<'_>> = registry.candidates().collect();
        if let Some(hit) = match_pattern(registry, pattern, &all, Suffix::MustBeLevel) {
            return Ok(found(hit.candidate.to_model(), hit.thinking));
        }
    }
    if let Some(provider) = restricted
        && provider != offline::PROVIDER
        && is_built_in(provider)
        && let Some(resolved) = custom_model(registry, provider, rest)
    {
        return Ok(resolved);
    }
    let shown = restricted.map_or_else(|| rest.to_owned(), |provider| format!("{provider}/{rest}"));
    Err(ResolveError::UnknownModel {
        nearest: nearest::suggest_model(rest, &candidates),
        model: shown,
    })
}

/// The provider as the registry spells it.
fn canonical_provider<'a>(registry: &'a Registry, name: &str) -> Result<&'a str, ResolveError> {
    let providers = registry.providers();
    let known = providers
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name));
    known.copied().ok_or_else(|| ResolveError::UnknownProvider {
        provider: name.to_owned(),
        nearest: pinion_text::nearest(name, providers.iter().copied()).map(ToOwned::to_owned),
    })
}

fn strip_provider<'p>(pattern: &'p str, provider: &str) -> Option<&'p str> {
    let (before, after) = pattern.split_once('/')?;
    before.eq_ignore_ascii_case(provider).then_some(after)
}

/// A copy of the provider's default model under an id the catalogue does not have.
pub fn custom_model(registry: &Registry, provider: &str, text: &str) -> Option<Resolved> {
    let (id, thinking) = pattern::split_level(text).unwrap_or((text, None));
    if id.is_empty() {
        return None;
    }
    let mut model = Model::clone(&*default_model(registry, provider)?);
    id.clone_into(&mut model.id);
    id.clone_into(&mut model.name);
    let warning =
        format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
    Some(Resolved {
        model: Arc::new(model),
        thinking,
        warning: Some(warning),
    })
}

#[cfg(test)]
mod tests;
