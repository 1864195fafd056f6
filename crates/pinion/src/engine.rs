//! Puts a session together from flags, settings and what lies on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{Config, EngineSettings, Expanded, Expander, Listener, Steering};
use pinion_config::{
    Dirs, Discovery, LazyResources, ProjectTrust, PromptParts, PromptTexts, ResourceFlags,
    Settings, SettingsFile, Trust, TrustFlag, compose_system_prompt, load_context_files, migrate,
    today,
};
use pinion_llm::{
    CacheRetention, HttpRetry, InitialOptions, Registry, RegistryOptions, Resolved, ScopedModel,
    Timeouts, initial_model, resolve_model, scope,
};
use pinion_message::{Mask, Model, Secret, ThinkingLevel};
use pinion_session::{EntryKind, NewEntry, NewSession, Opened, Store};
use pinion_tools::ToolSettings;
use serde_json::{Value, json};

use crate::choices::Choices;
use crate::cli::Flags;
use crate::failure::Failure;
use crate::preferences::SavedPreferences;
use crate::program::Program;

/// A session ready to be started, and what the fronts need beside it.
pub(crate) struct Engine {
    pub config: Config,
    pub preferences: Arc<SavedPreferences>,
}

/// The tools that are on unless flags say otherwise.
const DEFAULT_TOOLS: &[&str] = &["read", "bash", "edit", "write"];

/// Puts a session together; what is odd on disk is told on stderr and does not stop it.
pub(crate) fn build(
    program: Program,
    flags: &Flags,
    listeners: Vec<Arc<dyn Listener>>,
) -> Result<Engine, Failure> {
    for warning in &flags.warnings {
        eprintln!("{warning}");
    }
    let dirs = Dirs::from_env()?;
    let flag = match flags.trust {
        None => TrustFlag::Unset,
        Some(true) => TrustFlag::Approve,
        Some(false) => TrustFlag::Refuse,
    };
    let (trust, notices) = Trust::decide(&dirs, flag);
    tell(&notices);
    let (settings, notices) = Settings::load(&dirs, trust);
    tell(&notices);
    tell(&migrate(&dirs, &settings));

    let (registry, notices) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
    tell(&notices);
    let registry = Arc::new(registry);
    let scope = scoped_models(&registry, flags, &settings);
    let session_directory = session_directory(&dirs, flags, &settings);
    let mut store = open_session(&dirs, flags, session_directory.as_deref())?;
    if let Some(name) = flags
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        append(
            &mut store,
            NewEntry::SessionInfo {
                name: name.to_owned(),
            },
        );
    }
    let (model, thinking_level) =
        choose_model(program, flags, &settings, &registry, &scope, &mut store)?;

    let mask = Mask::default();
    let tool_names = tool_names(flags);
    let shell = tool_settings(&dirs, &settings, &mask);
    let tools = pinion_tools::builtin(&tool_names, shell.clone());
    let resources = Arc::new(LazyResources::new(
        dirs.clone(),
        settings.clone(),
        resource_flags(flags),
        trust,
    ));
    let system_prompt = system_prompt(&dirs, flags, &tools, &resources, trust);
    let preferences = Arc::new(SavedPreferences::new(SettingsFile::global(&dirs)));
    let config = Config {
        store,
        cwd: dirs.cwd.clone(),
        session_directory,
        model,
        thinking_level,
        models: Arc::new(Choices::new(registry, scope, mask.clone())),
        mask,
        tools,
        shell,
        system_prompt: system_prompt.into(),
        settings: engine_settings(&settings),
        preferences: Arc::clone(&preferences) as _,
        expander: Arc::new(ResourceExpander(resources)),
        listeners,
    };
    Ok(Engine {
        config,
        preferences,
    })
}

fn tell<T: std::fmt::Display>(notices: &[T]) {
    for notice in notices {
        eprintln!("Warning: {notice}");
    }
}

struct ResourceExpander(Arc<LazyResources>);

impl Expander for ResourceExpander {
    fn expand(&self, text: &str) -> Expanded {
        if !text.starts_with('/') {
            return Expanded {
                text: text.to_owned(),
                fault: None,
            };
        }
        let expanded = self.0.get().expand(text);
        let fault = expanded
            .error
            .map(|error| (error.path.display().to_string(), error.message));
        Expanded {
            text: expanded.text.into_owned(),
            fault,
        }
    }

    fn commands(&self) -> Value {
        json!(self.0.get().commands())
    }
}

fn scoped_models(registry: &Registry, flags: &Flags, settings: &Settings) -> Vec<ScopedModel> {
    let patterns: Vec<String> = match (&flags.models, settings.enabled_models()) {
        (Some(patterns), _) => patterns.clone(),
        (None, Some(patterns)) => patterns.into_iter().map(str::to_owned).collect(),
        (None, None) => return Vec::new(),
    };
    let (models, warnings) = scope(registry, &patterns);
    tell(&warnings);
    models
}

fn session_directory(dirs: &Dirs, flags: &Flags, settings: &Settings) -> Option<PathBuf> {
    if flags.no_session {
        return None;
    }
    let named = dirs.session_dir(flags.session_dir.as_deref(), settings);
    let directory =
        named.unwrap_or_else(|| pinion_session::project_directory(&dirs.agent_dir, &dirs.cwd));
    if let Err(error) = std::fs::create_dir_all(&directory) {
        eprintln!(
            "Warning: {}: {error}; sessions cannot be saved there",
            directory.display()
        );
    }
    Some(directory)
}

/// Opens or begins the session the flags name.
fn open_session(dirs: &Dirs, flags: &Flags, directory: Option<&Path>) -> Result<Store, Failure> {
    let new = |id: Option<String>| NewSession {
        cwd: dirs.cwd.clone(),
        directory: directory.map(Path::to_owned),
        id,
        parent_session: None,
    };
    let failed = |error: pinion_session::SessionError| Failure::failed(format!("Error: {error}"));
    let Some(directory) = directory else {
        return Store::create(new(None)).map_err(failed);
    };
    let sessions_root = dirs.agent_dir.join("sessions");
    let find = |argument: &str| {
        pinion_session::find(&sessions_root, directory, argument)
            .map(|found| dirs.cwd.join(found.into_path()))
            .map_err(|error| Failure::failed(error.to_string()))
    };
    let existing = if let Some(argument) = &flags.session {
        Some(find(argument)?)
    } else if let Some(id) = &flags.session_id {
        match pinion_session::find_id(directory, id) {
            Some(path) => Some(path),
            None => return Store::create(new(Some(id.clone()))).map_err(failed),
        }
    } else if let Some(argument) = &flags.fork {
        let source = find(argument)?;
        return opened(Store::copy_of(&source, new(None)).map_err(failed)?, None);
    } else if flags.continue_last {
        pinion_session::most_recent(directory)
    } else {
        None
    };
    match existing {
        Some(path) if path.exists() => opened(
            Store::open(&path, &dirs.cwd).map_err(failed)?,
            flags.session_dir.as_deref(),
        ),
        Some(path) => Ok(Store::at_path(&path, &dirs.cwd)),
        None => Store::create(new(None)).map_err(failed),
    }
}

fn opened(opened: Opened, directory: Option<&str>) -> Result<Store, Failure> {
    tell(&opened.notices);
    let mut store = opened.store;
    if let Some(directory) = directory {
        store.set_directory(directory.into());
    }
    Ok(store)
}

/// The model and level to begin with, written into the session where it does not say so itself.
fn choose_model(
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
        initial = offline_instead(program, registry, &options)?;
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

fn append(store: &mut Store, entry: NewEntry) {
    if let Err(error) = store.append(entry) {
        eprintln!("Warning: {error}");
    }
}

/// The model the command line names.
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

/// With nothing configured at all, the built-in model answers, and says so; pi gives up.
fn offline_instead(
    program: Program,
    registry: &Registry,
    options: &InitialOptions<'_>,
) -> Result<Option<pinion_llm::InitialModel>, Failure> {
    match program {
        Program::Pi => Err(Failure::failed(
            "No models available.\n\nSet the key of a provider in the environment, for example ANTHROPIC_API_KEY,\nOPENAI_API_KEY or GEMINI_API_KEY, or describe a server in models.json.",
        )),
        Program::Pinion => {
            registry.set_include_offline(true);
            eprintln!(
                "Note: no model is configured, so the built-in offline/demo model answers. It is no real model:\nset ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or write models.json, to use one."
            );
            Ok(initial_model(registry, options))
        }
    }
}

fn tool_names(flags: &Flags) -> Vec<String> {
    let mut names: Vec<String> = match (&flags.tools, flags.no_tools) {
        (Some(names), _) => names.clone(),
        (None, true) => Vec::new(),
        (None, false) => DEFAULT_TOOLS.iter().map(ToString::to_string).collect(),
    };
    names.retain(|name| !flags.exclude_tools.contains(name));
    names
}

fn tool_settings(dirs: &Dirs, settings: &Settings, mask: &Mask) -> ToolSettings {
    ToolSettings {
        shell_path: settings.shell_path().map(|path| dirs.resolve(path)),
        shell_command_prefix: settings.shell_command_prefix().map(str::to_owned),
        bin_dir: Some(dirs.agent_dir.join("bin")),
        auto_resize_images: settings.images().auto_resize,
        env: vec![("AI_AGENT".into(), "pinion".into())],
        mask: mask.clone(),
        ..ToolSettings::default()
    }
}

fn resource_flags(flags: &Flags) -> ResourceFlags {
    let discovery = |off| if off { Discovery::Off } else { Discovery::On };
    ResourceFlags {
        skills: flags.skills.clone(),
        skill_discovery: discovery(flags.no_skills),
        prompt_templates: flags.prompt_templates.clone(),
        prompt_discovery: discovery(flags.no_prompt_templates),
    }
}

fn system_prompt(
    dirs: &Dirs,
    flags: &Flags,
    tools: &[Arc<dyn pinion_tools::Tool>],
    resources: &LazyResources,
    trust: ProjectTrust,
) -> String {
    let (texts, notices) = PromptTexts::load(
        dirs,
        flags.system_prompt.as_deref(),
        &flags.append_system_prompt,
        trust,
    );
    tell(&notices);
    let (context_files, notices) = if flags.no_context_files {
        Default::default()
    } else {
        load_context_files(dirs, trust)
    };
    tell(&notices);
    let skills = resources.get().skills();
    tell(resources.notices());
    let purposes: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            let purpose = spec
                .description
                .split(". ")
                .next()
                .unwrap_or(&spec.description);
            (spec.name.as_str(), purpose.trim_end_matches('.'))
        })
        .collect();
    compose_system_prompt(&PromptParts {
        tools: &purposes,
        guidelines: &[],
        custom: texts.custom.as_deref(),
        append: texts.append.as_deref(),
        context_files: &context_files,
        skills,
        cwd: &dirs.cwd,
        date: &today(),
    })
}

fn engine_settings(settings: &Settings) -> EngineSettings {
    let defaults = EngineSettings::default();
    let compaction = settings.compaction();
    let retry = settings.retry();
    let budgets = settings.thinking_budgets();
    let http_retry = HttpRetry {
        max_retries: retry
            .provider
            .max_retries
            .map_or(defaults.http_retry.max_retries, clamp_u32),
        max_delay: Duration::from_millis(retry.max_delay_ms),
    };
    let first_byte = retry.provider.timeout_ms.map(Duration::from_millis);
    let timeouts = Timeouts {
        first_byte: first_byte.unwrap_or(defaults.timeouts.first_byte),
        idle: timeout(settings, "timeouts.idleMs").unwrap_or(defaults.timeouts.idle),
        connect: timeout(settings, "timeouts.connectMs").unwrap_or(defaults.timeouts.connect),
        total: timeout(settings, "timeouts.totalMs"),
    };
    EngineSettings {
        steering_mode: Some(settings.steering_mode().to_owned()),
        follow_up_mode: Some(settings.follow_up_mode().to_owned()),
        auto_compaction: compaction.enabled,
        reserve_tokens: compaction.reserve_tokens,
        keep_recent_tokens: compaction.keep_recent_tokens,
        branch_summary_reserve_tokens: settings.branch_summary().reserve_tokens,
        auto_retry: retry.enabled,
        max_retries: clamp_u32(retry.max_retries),
        retry_base_delay: Duration::from_millis(retry.base_delay_ms),
        http_retry,
        timeouts,
        thinking_budgets: BTreeMap::from([
            (ThinkingLevel::Minimal, budgets.minimal),
            (ThinkingLevel::Low, budgets.low),
            (ThinkingLevel::Medium, budgets.medium),
            (ThinkingLevel::High, budgets.high),
        ]),
        cache_retention: match std::env::var("PI_CACHE_RETENTION").as_deref() {
            Ok("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        tool_timeout: settings
            .get_global("tools.timeoutSeconds")
            .and_then(Value::as_u64)
            .map_or(defaults.tool_timeout, Duration::from_secs),
        steering: match settings.get("steeringDelivery").and_then(Value::as_str) {
            Some("after-turn") => Steering::WaitsForTurn,
            _ => Steering::SkipsCalls,
        },
        block_images: settings.images().block_images,
        default_thinking_level: settings
            .default_thinking_level()
            .unwrap_or(defaults.default_thinking_level),
        ..defaults
    }
}

fn timeout(settings: &Settings, path: &str) -> Option<Duration> {
    settings
        .get_global(path)
        .and_then(Value::as_u64)
        .map(Duration::from_millis)
}

fn clamp_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
