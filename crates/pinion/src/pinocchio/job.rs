//! The parts of one run of a command: its prompt, its settings, its stores.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use pinion_agent::ToolOrder;
use pinion_commands::{BuiltInValues, Command, RenderedCommand, Source, templates};
use pinion_config::{Dirs, Settings, Trust, TrustFlag};
use pinion_history::{StoreChoice, TimelineStore, Turn, TurnStore, open_timeline, open_turns};
use pinion_llm::{Providers, Registry, RegistryOptions};
use pinion_message::{Block, Mask};
use pinion_pi::MODERN_BEHAVIOUR;
use pinion_pinocchio::{Seed, Text, seed_turn, with_prompt};
use pinion_profiles::{Factories, HostContext, Notice, ProfileRequest, Resolved, Unnamed};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::conversation::FINAL;
use super::models::OneModel;
use super::options::Options;
use super::running::Runner;
use crate::clip_tools;
use crate::engine::{engine_settings, tool_settings};
use crate::failure::Failure;
use crate::surroundings;

/// A command, ready to be run.
pub(super) struct Job {
    pub options: Options,
    pub session_id: Text,
    /// The command's system prompt, messages and prompt with all variables filled in.
    pub rendered: RenderedCommand,
    /// The same as a turn.
    pub seed: Turn,
    /// The file that receives frames in addition to standard output.
    pub debug_events: Option<File>,
    /// The name of the command's file, for errors.
    command: String,
    place: Place,
    resolved: Resolved,
}

/// The stores of conversations.
pub(super) struct Stores {
    /// With `None` the timeline lives only in memory, as long as the process.
    pub timeline: Option<Box<dyn TimelineStore>>,
    pub turns: Option<Box<dyn TurnStore>>,
    /// The turn from which `--resume` continues.
    pub resumed: Option<Turn>,
}

impl Job {
    /// Prepares everything that can fail before the first frame.
    pub fn prepare(
        place: Place,
        command: &Command,
        rendered: RenderedCommand,
        values: &BuiltInValues,
        options: Options,
    ) -> Result<Self, Failure> {
        let resolved = place.resolve(&asked(command, values))?;
        tell(&resolved.notices);
        let images = images(&options.images, &place.dirs.cwd)?;
        let seed = seed_turn(&Seed {
            system_prompt: rendered.system_prompt.as_deref().unwrap_or_default(),
            messages: &rendered.messages,
            prompt: rendered.prompt.as_deref().unwrap_or_default(),
            images: &images,
        });
        let debug_events = match &options.debug_events {
            None => None,
            Some(path) => Some(created(path)?),
        };
        let session_id = options.session_id.clone();
        Ok(Self {
            session_id: session_id.unwrap_or_else(pinion_pinocchio::new_id).into(),
            options,
            rendered,
            seed,
            debug_events,
            command: file_name(command),
            place,
            resolved,
        })
    }

    /// Returns the settings as YAML, without secrets.
    pub fn settings(&self) -> String {
        self.resolved.settings.to_yaml()
    }

    /// Makes the runner of the engine; the error is the reason why there is none.
    pub fn runner(&self, runtime: &Runtime) -> Result<Runner, String> {
        let Place {
            dirs,
            settings,
            mask,
            ..
        } = &self.place;
        let (registry, notices) = Registry::load(&dirs.agent_dir, RegistryOptions::default());
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        let unnamed = Unnamed {
            saved: settings.default_provider().zip(settings.default_model()),
            demo: self.options.mode.allows_demo(),
        };
        let (resolved, now) = (&self.resolved, SystemTime::now());
        let chosen = match &self.options.model {
            Some(pattern) => pinion_profiles::named_engine(resolved, &registry, pattern),
            None => self.place.look(|surroundings| {
                pinion_profiles::engine(resolved, &registry, surroundings, unnamed, now)
            }),
        };
        let chosen = chosen.map_err(|error| error.to_string())?;
        tell(&chosen.notices);
        let (providers, notice) = Providers::from_environment();
        if let Some(notice) = notice {
            eprintln!("Warning: {notice}");
        }
        let clips = &self.options.clips;
        let clips = match clips.is_given() {
            false => Vec::new(),
            true => runtime
                .block_on(clip_tools::of_hub(clips))
                .map_err(Failure::into_words)?,
        };
        let models = OneModel::new(chosen, registry, providers, mask.clone());
        let mut engine = engine_settings(settings);
        // A turn must hold the messages themselves, not a summary of them.
        engine.auto_compaction = false;
        engine.tool_order = ToolOrder::Parallel;
        // Malformed calls fail, and an answer that failed before its first byte is announced as failed.
        engine.behaviour = MODERN_BEHAVIOUR;
        Ok(Runner {
            command: self.command.clone(),
            thinking_level: models.thinking_level(),
            models: Arc::new(models),
            tools: self.options.tools.clone(),
            clips,
            shell: tool_settings(dirs, settings, mask),
            settings: engine,
            dirs: dirs.clone(),
            mask: mask.clone(),
        })
    }

    /// Opens the stores and finds the turn from which to continue.
    pub fn open_stores(&self) -> Result<Stores, String> {
        let words = |error: pinion_history::HistoryError| error.to_string();
        let [turns, timeline] = [&self.options.turns, &self.options.timeline];
        let mut turns = open_turns(&turns.choice()).map_err(words)?;
        let resumed = match (&mut turns, self.options.resume) {
            (Some(turns), true) => {
                let latest = turns.latest(&self.session_id, FINAL).map_err(words)?;
                let latest = latest.ok_or_else(|| {
                    format!(
                        "no persisted final turn found for session \"{}\"",
                        self.session_id
                    )
                })?;
                let mut turn = latest.turn;
                turn.metadata
                    .insert(Turn::SESSION_ID.to_owned(), Value::from(&*self.session_id));
                Some(turn)
            }
            _ => None,
        };
        let timeline = match timeline.is_named() {
            true => Some(open_timeline(&timeline.choice()).map_err(words)?),
            false => None,
        };
        Ok(Stores {
            timeline,
            turns,
            resumed,
        })
    }

    /// Returns the name of the chosen profile.
    pub fn profile(&self) -> Option<&str> {
        let profile = self.resolved.profile.as_ref();
        profile.map(|profile| profile.slug.as_str())
    }

    pub fn dirs(&self) -> &Dirs {
        &self.place.dirs
    }

    /// Returns the theme of the user's settings.
    pub fn theme(&self) -> Option<&str> {
        self.place.settings.get("theme")?.as_str()
    }

    /// Returns the turn with which a chat begins: the seed without its prompt, which the chat sends itself.
    pub fn opening(&self) -> Turn {
        let mut turn = self.seed.clone();
        if self.rendered.prompt.is_some() {
            turn.blocks.pop();
        }
        turn
    }

    /// Returns the turn of the first run of a process that runs once: the command's prompt after the resumed turn.
    pub fn first_turn(&self, resumed: Option<Turn>) -> Turn {
        match (resumed, &self.rendered.prompt) {
            (None, _) => self.seed.clone(),
            (Some(turn), Some(prompt)) => with_prompt(&turn, prompt),
            (Some(turn), None) => turn,
        }
    }
}

/// The directories, settings and trust around a run.
pub(super) struct Place {
    pub dirs: Dirs,
    settings: Settings,
    trust: Trust,
    mask: Mask,
}

impl Place {
    pub fn read() -> Result<Self, Failure> {
        Ok(Self::of(Dirs::from_env()?))
    }

    /// Reads the settings and trust for these directories.
    pub fn of(dirs: Dirs) -> Self {
        let (trust, notices) = Trust::load(&dirs);
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        let (settings, notices) = Settings::load(&dirs, trust.of(&dirs.cwd));
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        Self {
            dirs,
            settings,
            trust,
            mask: Mask::default(),
        }
    }

    fn look<T>(&self, look: impl FnOnce(&HostContext<'_>) -> T) -> T {
        surroundings::with(&self.dirs, &self.trust, TrustFlag::Unset, look)
    }

    fn resolve(&self, asked: &ProfileRequest) -> Result<Resolved, Failure> {
        self.look(|surroundings| pinion_profiles::resolve(surroundings, asked))
            .map_err(|error| Failure::failed(format!("Error: {error}")))
    }

    /// Returns the directories of commands.
    pub fn repositories(&self) -> Vec<std::path::PathBuf> {
        self.look(|surroundings| {
            let (mut directories, notices) = pinion_profiles::repositories(surroundings, None);
            tell(&notices);
            directories.push(surroundings.home.join(".pinocchio/prompts"));
            directories
        })
    }
}

/// Returns the name of the command's file, or of the command if it is not in a file.
fn file_name(command: &Command) -> String {
    let name = command.origin.path.as_deref().and_then(Path::file_name);
    match name {
        Some(name) => name.to_string_lossy().into_owned(),
        None => command.name.clone(),
    }
}

/// Returns the profile, registries and settings that the command and its command line request.
fn asked(command: &Command, values: &BuiltInValues) -> ProfileRequest {
    let text = |name: &str| {
        let given = values.source(name) == Some(Source::CommandLine);
        values.optional(name).filter(|_| given).map(str::to_owned)
    };
    let mut options = BTreeMap::new();
    for name in pinion_profiles::options().filter_map(|key| key.option) {
        let given = matches!(
            values.source(name),
            Some(Source::CommandLine | Source::Alias)
        );
        if let Some(value) = values.value(name).filter(|_| given) {
            options.insert(name.to_owned(), json(value));
        }
    }
    let registries = values.list("profile-registries");
    ProfileRequest {
        profile: text("profile"),
        registries: (values.source("profile-registries") == Some(Source::CommandLine))
            .then_some(registries),
        config_file: text("config-file").map(Into::into),
        factories: command.factories.clone().map(|settings| Factories {
            settings,
            file: command.origin.path.clone(),
        }),
        options,
    }
}

fn json(value: &templates::Value) -> Value {
    match value {
        templates::Value::Bool(is) => Value::Bool(*is),
        templates::Value::Int(number) => Value::from(*number),
        templates::Value::Float(number) => Value::from(*number),
        templates::Value::List(items) => items.iter().map(json).collect(),
        templates::Value::Map(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), json(value)))
            .collect(),
        other => Value::String(templates::printed(other)),
    }
}

/// The largest image that pinion reads, in bytes.
const IMAGE_LIMIT: u64 = 64 << 20;

/// Reads local images and prepares them for a model.
fn images(paths: &[String], cwd: &Path) -> Result<Vec<Block>, Failure> {
    let mut images = Vec::new();
    for path in paths {
        let file = cwd.join(path);
        let failed = |reason: &dyn std::fmt::Display| {
            Failure::failed(format!("Error: --images {path}: {reason}"))
        };
        let bytes = pinion_files::read_named(&file, IMAGE_LIMIT).map_err(|error| failed(&error))?;
        match pinion_tools::prepare_image(bytes) {
            Ok((block, note)) => {
                if let Some(note) = note {
                    eprintln!("{path}: {note}");
                }
                images.push(block);
            }
            Err(reason) => return Err(failed(&format!("the picture {reason}"))),
        }
    }
    Ok(images)
}

/// Creates an empty file for frames, and its directory if it is missing.
fn created(path: &Path) -> Result<File, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!(
            "Error: --debug-events-jsonl {}: {error}",
            path.display()
        ))
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    pinion_files::create_or_empty(path, 0o666).map_err(failed)
}

fn tell(notices: &[Notice]) {
    for notice in notices {
        eprintln!("Warning: {}", notice.message);
    }
}

impl super::options::NamedStore {
    fn choice(&self) -> StoreChoice<'_> {
        StoreChoice {
            backend: &self.backend,
            dsn: &self.dsn,
            db: &self.db,
        }
    }
}
