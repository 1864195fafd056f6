//! The parts of one run of a command: its prompt, its settings, its stores.

use std::fs::File;
use std::path::Path;

use pinion_commands::{BuiltInValues, Command, RenderedCommand};
use pinion_history::{HistoryError, TimelineStore, Turn, TurnStore, open_timeline, open_turns};
use pinion_pinocchio::{Seed, Text, seed_turn, with_prompt};
use pinion_profiles::Resolved;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::conversation::FINAL;
use crate::engine::Engine;
use crate::host::{EngineRequest, RunHost};
use crate::images::images;
use crate::options::{Options, RunMode};
use crate::profile_request::profile_request;
use crate::{End, RunError, chat, frames, stderr, text};

/// A command, ready to be run.
pub struct Job {
    pub(crate) host: Box<dyn RunHost>,
    pub(crate) options: Options,
    pub(crate) session_id: Text,
    /// The command's system prompt, messages and prompt with all variables filled in.
    pub(crate) rendered: RenderedCommand,
    /// The same as a turn.
    pub(crate) seed: Turn,
    /// The file that receives frames in addition to standard output.
    pub(crate) debug_file: Option<File>,
    /// The name of the command's file, for errors.
    command: String,
    resolved: Resolved,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Job")
            .field("command", &self.command)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The stores of conversations.
pub(crate) struct Stores {
    /// With `None` the timeline lives only in memory, as long as the process.
    pub timeline: Option<Box<dyn TimelineStore>>,
    pub turns: Option<Box<dyn TurnStore>>,
    /// The turn from which `--resume` continues.
    pub resumed: Option<Turn>,
}

impl Job {
    /// Prepares everything that can fail before the first frame.
    pub fn prepare(
        host: Box<dyn RunHost>,
        command: &Command,
        rendered: RenderedCommand,
        values: &BuiltInValues,
        options: Options,
    ) -> Result<Self, RunError> {
        let resolved = host
            .resolve(&profile_request(command, values))
            .map_err(|error| RunError::Failed(error.to_string()))?;
        stderr::warn_all(&resolved.notices);
        let images = images(&options.images, host.cwd())?;
        let seed = seed_turn(&Seed {
            system_prompt: rendered.system_prompt.as_deref().unwrap_or_default(),
            messages: &rendered.messages,
            prompt: rendered.prompt.as_deref().unwrap_or_default(),
            images: &images,
        });
        let debug_file = match &options.debug_events {
            None => None,
            Some(path) => Some(create_debug_file(path)?),
        };
        let session_id = options.session_id.clone();
        Ok(Self {
            host,
            session_id: session_id.unwrap_or_else(pinion_pinocchio::new_id).into(),
            options,
            rendered,
            seed,
            debug_file,
            command: file_name(command),
            resolved,
        })
    }

    /// Returns the settings as YAML, without secrets.
    pub fn settings(&self) -> String {
        self.resolved.settings.to_yaml()
    }

    /// Runs the command to its end.
    pub fn run(self, mode: RunMode) -> Result<End, RunError> {
        match mode {
            RunMode::Requests => frames::requests(self),
            RunMode::OneShot => frames::one_shot(self),
            RunMode::Chat => chat::open(self),
            RunMode::Text(format) => text::run(self, format),
        }
    }

    /// Builds the engine; the error is the reason why there is none.
    pub(crate) fn engine(&self, runtime: &Runtime) -> Result<Engine, String> {
        let request = EngineRequest {
            resolved: &self.resolved,
            model: self.options.model.as_deref(),
            allows_demo: self.options.mode.allows_demo(),
            clips: &self.options.clips,
            hub: self.options.hub.as_deref(),
        };
        let parts = self.host.engine_parts(&request, runtime)?;
        Ok(Engine::new(
            self.command.clone(),
            self.host.cwd().to_owned(),
            self.options.tools.clone(),
            parts,
        ))
    }

    /// Opens the stores and finds the turn from which to continue.
    pub(crate) fn open_stores(&self) -> Result<Stores, String> {
        let message = |error: HistoryError| error.to_string();
        let [turns, timeline] = [&self.options.turns, &self.options.timeline];
        let mut turns = open_turns(&turns.choice()).map_err(message)?;
        let resumed = match &mut turns {
            Some(turns) if self.options.resume => {
                let latest = turns.latest(&self.session_id, FINAL).map_err(message)?;
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
        let timeline = if timeline.is_named() {
            Some(open_timeline(&timeline.choice()).map_err(message)?)
        } else {
            None
        };
        Ok(Stores {
            timeline,
            turns,
            resumed,
        })
    }

    /// Returns the name of the chosen profile.
    pub(crate) fn profile(&self) -> Option<&str> {
        let profile = self.resolved.profile.as_ref();
        profile.map(|profile| profile.slug.as_str())
    }

    /// Returns the turn with which a chat begins: the seed without its prompt, which the chat sends itself.
    pub(crate) fn opening(&self) -> Turn {
        let mut turn = self.seed.clone();
        if self.rendered.prompt.is_some() {
            turn.blocks.pop();
        }
        turn
    }

    /// Returns the turn of the first run of a process that runs once: the command's prompt after the resumed turn.
    pub(crate) fn first_turn(&self, resumed: Option<Turn>) -> Turn {
        match (resumed, &self.rendered.prompt) {
            (None, _) => self.seed.clone(),
            (Some(turn), Some(prompt)) => with_prompt(&turn, prompt),
            (Some(turn), None) => turn,
        }
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

/// Creates an empty file for frames, and its directory if it is missing.
fn create_debug_file(path: &Path) -> Result<File, RunError> {
    let failed = |error: std::io::Error| {
        RunError::Failed(format!("--debug-events-jsonl {}: {error}", path.display()))
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    pinion_files::create_or_empty(path, 0o666).map_err(failed)
}
