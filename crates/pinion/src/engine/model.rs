//! Chooses the model and the thinking level of a new or continued session.

use std::sync::Arc;

use pinion_config::Settings;
use pinion_llm::{
    InitialOptions, Registry, Resolved, ScopedModel, custom_model, initial_model, resolve_model,
    scope,
};
use pinion_message::{Model, ModelCost, Secret, ThinkingLevel};
use pinion_pi::Dialect;
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
    dialect: Dialect,
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
    let chosen = named_model(program, dialect, flags, registry)?;
    if let Some(key) = &flags.api_key {
        let provider = match &chosen {
            Some(chosen) => chosen.model.provider.clone(),
            None => scope.first().map(|scoped| scoped.model.provider.clone()).ok_or_else(|| {
                Failure::usage(
                    "--api-key requires a model to be specified via --model, --provider/--model, or --models",
                )
                .bare()
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
    if initial.is_none() && program == Program::Pi && dialect == Dialect::Modern {
        // Clients of these releases start a session first and say what is missing when a prompt fails.
        eprintln!("Warning: no model is available. {WHAT_TO_SET}");
        return Ok((Some(Arc::new(unknown_model())), ThinkingLevel::Off));
    }
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
    dialect: Dialect,
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
    let resolved = resolve_model(registry, flags.provider.as_deref(), &pattern);
    let accepts_new_names = program == Program::Pi && dialect == Dialect::Modern;
    let resolved = resolved
        .or_else(|error| match &flags.provider {
            Some(provider) if accepts_new_names => {
                custom_model(registry, provider, &pattern).ok_or(error)
            }
            _ => Err(error),
        })
        .map_err(|error| Failure::from(error).for_program(program))?;
    if flags.api_key.is_none() && program == Program::Pinion {
        registry.check_credentials(&resolved.model)?;
    }
    Ok(Some(resolved))
}

/// Returns the model of a session for which no model is available.
fn unknown_model() -> Model {
    let unknown = || "unknown".to_owned();
    Model {
        id: unknown(),
        name: unknown(),
        api: unknown(),
        provider: unknown(),
        base_url: String::new(),
        reasoning: false,
        thinking_level_map: None,
        input: Vec::new(),
        cost: ModelCost::default(),
        context_window: 0,
        max_tokens: 0,
        headers: None,
        compat: None,
    }
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
        let problem = format!("No models available.\n\n{demo}{WHAT_TO_SET}");
        return Err(Failure::failed(problem).bare().about_key());
    }
    registry.set_include_offline(true);
    eprintln!(
        "Note: no model is configured, so the built-in offline/demo model answers. It is not a real model:\nset ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or write models.json, to use one."
    );
    Ok(initial_model(registry, options))
}
