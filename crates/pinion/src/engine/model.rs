//! Chooses the model and the thinking level of a new or continued session.

use std::sync::Arc;

use pinion_config::Settings;
use pinion_llm::{
    InitialOptions, Registry, Resolved, ScopedModel, initial_model, resolve_model, scope,
};
use pinion_message::{Model, Secret, ThinkingLevel};
use pinion_session::{EntryKind, NewEntry, Store};

use super::session::append;
use super::tell;
use crate::cli::Flags;
use crate::failure::Failure;
use crate::program::Program;

const WHAT_TO_SET: &str = "Set the key of a provider in the environment, for example ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or describe a server in models.json.";

pub(super) fn scoped_models(
    registry: &Registry,
    flags: &Flags,
    settings: &Settings,
) -> Vec<ScopedModel> {
    let patterns: Vec<String> = match (&flags.models, settings.enabled_models()) {
        (Some(patterns), _) => patterns.clone(),
        (None, Some(patterns)) => patterns.into_iter().map(str::to_owned).collect(),
        (None, None) => return Vec::new(),
    };
    let (models, warnings) = scope(registry, &patterns);
    tell(&warnings);
    models
}

/// Returns the first model and thinking level. Writes both into a new session, and the level into a continued session
/// that has none.
pub(super) fn choose_model(
    program: Program,
    flags: &Flags,
    settings: &Settings,
    registry: &Registry,
    scope: &[ScopedModel],
    store: &mut Store,
) -> Result<(Option<Arc<Model>>, ThinkingLevel), Failure> {
    let choices = store.choices();
    let continuing = store
        .entries()
        .any(|entry| matches!(entry.kind(), EntryKind::Message(_)));
    let chosen = named_model(program, flags, registry)?;
    if let Some(key) = &flags.api_key {
        let provider = match &chosen {
            Some(chosen) => chosen.model.provider.clone(),
            None => scope.first().map(|scoped| scoped.model.provider.clone()).ok_or_else(|| {
                Failure::usage(
                    "--api-key requires a model to be specified via --model, --provider/--model, or --models",
                )
                .for_program(program)
            })?,
        };
        registry.set_runtime_key(&provider, Secret::from(key.clone()));
    }
    let session = choices
        .model
        .as_ref()
        .map(|(provider, id)| (provider.as_str(), id.as_str()));
    let saved = settings.default_provider().zip(settings.default_model());
    let options = InitialOptions {
        chosen: chosen.as_ref(),
        scope,
        continuing,
        session,
        saved,
    };
    let mut initial = initial_model(registry, &options);
    if initial.is_none() {
        initial = offline_instead(program, flags, registry, &options)?;
    }
    let Some(initial) = initial else {
        return Ok((None, ThinkingLevel::Off));
    };
    tell(&initial.warning.iter().collect::<Vec<_>>());
    let model = initial.model;
    let wanted = flags
        .thinking
        .or(initial.thinking)
        .or(choices.thinking_level)
        .or(settings.default_thinking_level())
        .unwrap_or(ThinkingLevel::Medium);
    let level = model.clamp_thinking(wanted);
    if !continuing {
        append(
            store,
            NewEntry::ModelChange {
                provider: model.provider.clone(),
                model_id: model.id.clone(),
            },
        );
        append(store, NewEntry::ThinkingLevelChange(level));
    } else if choices.thinking_level.is_none() {
        append(store, NewEntry::ThinkingLevelChange(level));
    }
    Ok((Some(model), level))
}

/// Returns the model that the command line names. Fails if the model is unknown and, under the name `pinion`, also if
/// its credentials are missing.
fn named_model(
    program: Program,
    flags: &Flags,
    registry: &Registry,
) -> Result<Option<Resolved>, Failure> {
    let pattern = match (&flags.model, &flags.provider) {
        (Some(pattern), _) => pattern.clone(),
        (None, Some(provider)) => match pinion_llm::default_model(registry, provider) {
            Some(model) => model.id.clone(),
            None => String::new(),
        },
        (None, None) => return Ok(None),
    };
    let resolved = resolve_model(registry, flags.provider.as_deref(), &pattern)
        .map_err(|error| Failure::usage(error.to_string()).for_program(program))?;
    if flags.api_key.is_none()
        && program == Program::Pinion
        && let Err(error) = registry.check_credentials(&resolved.model)
    {
        return Err(Failure::failed(error.to_string()));
    }
    Ok(Some(resolved))
}

/// Returns the built-in model, with a note on stderr, if the run is a chat. Fails elsewhere: without a user who reads
/// the note, its answer could be mistaken for that of a real model.
fn offline_instead(
    program: Program,
    flags: &Flags,
    registry: &Registry,
    options: &InitialOptions<'_>,
) -> Result<Option<pinion_llm::InitialModel>, Failure> {
    if program == Program::Pi || !flags.demo {
        // A fleet shows the last line of a child that failed, so the demo comes before the variables to set.
        let demo = match program {
            Program::Pi => "",
            _ => "To try pinion without a model, use --model offline/demo.\n",
        };
        return Err(Failure::failed(format!(
            "No models available.\n\n{demo}{WHAT_TO_SET}"
        )));
    }
    registry.set_include_offline(true);
    eprintln!(
        "Note: no model is configured, so the built-in offline/demo model answers. It is not a real model:\nset ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or write models.json, to use one."
    );
    Ok(initial_model(registry, options))
}
