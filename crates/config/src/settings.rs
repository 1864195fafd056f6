//! The user's settings and the project's, merged, with defaults.
//!
//! Loading reads two small files; getters look into the merged object. Values stay in their JSON
//! form, so that extensions can read keys that are unknown here.

mod keys;
mod legacy;
mod values;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pinion_message::ThinkingLevel;
use serde_json::{Map, Value};

pub use values::{BranchSummary, Compaction, Images, ProviderRetry, Retry};
pub use writer::{SettingsChanges, SettingsWriter};

use crate::{ConfigError, Dirs, Notice, ProjectTrust, json_file, trust};

type Layer = Map<String, Value>;

/// The effective settings. Cheap to clone; a clone does not follow later changes.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    global: Arc<Layer>,
    project: Arc<Layer>,
    merged: Arc<Layer>,
}

/// A list of paths in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    Extensions,
    Skills,
    Prompts,
    Themes,
}

impl ResourceKind {
    /// Its name in settings and manifests, and of the directory that is searched for it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Extensions => "extensions",
            Self::Skills => "skills",
            Self::Prompts => "prompts",
            Self::Themes => "themes",
        }
    }
}

impl Settings {
    /// Reads the user's file, and the project's if the project is trusted. Broken parts are left
    /// out and reported; so is the file of a project that is not trusted, which is not opened.
    pub fn load(dirs: &Dirs, trust: ProjectTrust) -> (Self, Vec<Notice>) {
        let mut notices = Vec::new();
        let mut read = |file: PathBuf| {
            let mut layer = json_file::read(&file, &mut notices);
            legacy::migrate(&mut layer);
            keys::remove_invalid(&mut layer, &file, &mut notices);
            layer
        };
        let global = read(dirs.global_settings());
        // An agent directory may be the `.pi` of some directory; its file is the user's
        // nevertheless.
        let is_own = dirs.project_dir == dirs.agent_dir;
        let file = dirs.project_settings();
        let project = if is_own {
            Layer::new()
        } else if trust == ProjectTrust::Trusted {
            read(file)
        } else {
            if file.exists() {
                notices.push(trust::skipped_settings_notice(&file));
            }
            Layer::new()
        };
        (Self::from_layers(global, project), notices)
    }

    /// Settings from JSON values instead of files; values that are not objects count as empty.
    pub fn from_values(global: Value, project: Value) -> Self {
        let layer = |value| match value {
            Value::Object(mut layer) => {
                legacy::migrate(&mut layer);
                keys::remove_invalid(&mut layer, "settings".as_ref(), &mut Vec::new());
                layer
            }
            _ => Layer::new(),
        };
        Self::from_layers(layer(global), layer(project))
    }

    fn from_layers(global: Layer, project: Layer) -> Self {
        let merged = merge(&global, &project);
        Self {
            global: global.into(),
            project: project.into(),
            merged: merged.into(),
        }
    }

    /// Makes the changes of [`SettingsFile::update`] for this process only. They go to the user's
    /// layer, so a project's value still overrides them.
    pub fn apply(&mut self, changes: &[(&str, Option<Value>)]) {
        let mut global = Layer::clone(&self.global);
        for (path, value) in changes {
            set_path(&mut global, path, value.clone());
        }
        *self = Self::from_layers(global, Layer::clone(&self.project));
    }

    /// Returns the settings in effect: the user's, changed by the project's.
    pub fn effective(&self) -> Value {
        Value::Object(Layer::clone(&self.merged))
    }

    /// The value at a dotted path such as `retry.maxRetries`; `null` counts as absent.
    pub fn get(&self, path: &str) -> Option<&Value> {
        get_path(&self.merged, path)
    }

    /// The value in the user's file only: for values a project must not set.
    pub fn get_global(&self, path: &str) -> Option<&Value> {
        get_path(&self.global, path)
    }

    /// The value in the project's file only: for values that add to the user's.
    pub fn get_project(&self, path: &str) -> Option<&Value> {
        get_path(&self.project, path)
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(Value::as_str)
    }

    fn switch(&self, path: &str, default: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(default)
    }

    fn count(&self, path: &str) -> Option<u64> {
        self.get(path).and_then(keys::as_count)
    }

    fn count_or(&self, path: &str, default: u64) -> u64 {
        self.count(path).unwrap_or(default)
    }

    /// The provider of the default model.
    pub fn default_provider(&self) -> Option<&str> {
        self.text("defaultProvider")
    }

    /// The id of the default model.
    pub fn default_model(&self) -> Option<&str> {
        self.text("defaultModel")
    }

    pub fn default_thinking_level(&self) -> Option<ThinkingLevel> {
        self.text("defaultThinkingLevel")?.parse().ok()
    }

    /// Token budgets for thinking, for the levels that the settings contain; the provider decides
    /// the others.
    pub fn thinking_budgets(&self) -> BTreeMap<ThinkingLevel, u64> {
        [
            (ThinkingLevel::Minimal, "thinkingBudgets.minimal"),
            (ThinkingLevel::Low, "thinkingBudgets.low"),
            (ThinkingLevel::Medium, "thinkingBudgets.medium"),
            (ThinkingLevel::High, "thinkingBudgets.high"),
        ]
        .into_iter()
        .filter_map(|(level, path)| Some((level, self.count(path)?)))
        .collect()
    }

    /// The number of steering messages that are delivered at once. Any string is possible: clients
    /// may store one, and anything but `one-at-a-time` means all.
    pub fn steering_mode(&self) -> &str {
        self.text("steeringMode").unwrap_or("one-at-a-time")
    }

    /// The number of follow-up messages that are delivered at once; see [`Self::steering_mode`].
    pub fn follow_up_mode(&self) -> &str {
        self.text("followUpMode").unwrap_or("one-at-a-time")
    }

    /// `sse`, `websocket` or `auto`.
    pub fn transport(&self) -> &str {
        self.text("transport").unwrap_or("sse")
    }

    pub fn compaction(&self) -> Compaction {
        Compaction {
            enabled: self.switch("compaction.enabled", true),
            reserve_tokens: self.count_or("compaction.reserveTokens", 16384),
            keep_recent_tokens: self.count_or("compaction.keepRecentTokens", 20000),
        }
    }

    pub fn branch_summary(&self) -> BranchSummary {
        BranchSummary {
            reserve_tokens: self.count_or("branchSummary.reserveTokens", 16384),
            skip_prompt: self.switch("branchSummary.skipPrompt", false),
        }
    }

    pub fn retry(&self) -> Retry {
        Retry {
            enabled: self.switch("retry.enabled", true),
            max_retries: self.count_or("retry.maxRetries", 3),
            base_delay_ms: self.count_or("retry.baseDelayMs", 2000),
            max_delay_ms: self.count_or("retry.provider.maxRetryDelayMs", 60000),
            provider: ProviderRetry {
                timeout_ms: self.count("retry.provider.timeoutMs"),
                max_retries: self.count("retry.provider.maxRetries"),
            },
        }
    }

    pub fn images(&self) -> Images {
        Images {
            auto_resize: self.switch("images.autoResize", true),
            block_images: self.switch("images.blockImages", false),
        }
    }

    pub fn shell_path(&self) -> Option<&str> {
        self.text("shellPath")
    }

    /// Lines put before every shell command.
    pub fn shell_command_prefix(&self) -> Option<&str> {
        self.text("shellCommandPrefix")
    }

    /// Patterns of the models to cycle through; `None` means all.
    pub fn enabled_models(&self) -> Option<Vec<&str>> {
        self.get("enabledModels").map(text_list)
    }

    /// Offers skills as commands in a terminal.
    pub fn enable_skill_commands(&self) -> bool {
        self.switch("enableSkillCommands", true)
    }

    /// The directory of the sessions, as it was written.
    pub fn session_dir(&self) -> Option<&str> {
        self.text("sessionDir")
    }

    /// A path list of the user's file; entries are relative to the agent directory.
    pub fn user_paths(&self, kind: ResourceKind) -> Vec<&str> {
        self.global.get(kind.key()).map_or_else(Vec::new, text_list)
    }

    /// A path list of the project's file; entries are relative to `.pi`.
    pub fn project_paths(&self, kind: ResourceKind) -> Vec<&str> {
        self.project
            .get(kind.key())
            .map_or_else(Vec::new, text_list)
    }

    /// The entries of the user's `packages`; relative paths are relative to the agent directory.
    pub(crate) fn user_packages(&self) -> &[Value] {
        entries(&self.global, "packages")
    }

    /// The entries of the project's `packages`; relative paths are relative to `.pi`.
    pub(crate) fn project_packages(&self) -> &[Value] {
        entries(&self.project, "packages")
    }
}

fn entries<'a>(layer: &'a Layer, key: &str) -> &'a [Value] {
    let list = layer.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn text_list(value: &Value) -> Vec<&str> {
    value.as_array().map_or_else(Vec::new, |items| {
        items.iter().filter_map(Value::as_str).collect()
    })
}

/// Merges the project's settings over the global ones: objects merge one level deep, other values
/// are replaced.
fn merge(global: &Layer, project: &Layer) -> Layer {
    let mut merged = global.clone();
    for (name, value) in project {
        match (merged.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => {
                below.extend(
                    above
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone())),
                );
            }
            _ => {
                merged.insert(name.clone(), value.clone());
            }
        }
    }
    merged
}

fn get_path<'a>(layer: &'a Layer, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let mut value = layer.get(names.next()?)?;
    for name in names {
        value = value.as_object()?.get(name)?;
    }
    (!value.is_null()).then_some(value)
}

fn set_path(layer: &mut Layer, path: &str, value: Option<Value>) {
    match path.split_once('.') {
        None => match value {
            Some(value) => {
                layer.insert(path.to_owned(), value);
            }
            None => {
                layer.shift_remove(path);
            }
        },
        Some((name, rest)) => {
            // Without an object there is nothing to remove.
            if value.is_none() && !layer.get(name).is_some_and(Value::is_object) {
                return;
            }
            let inner = layer
                .entry(name)
                .or_insert_with(|| Value::Object(Layer::new()));
            if !inner.is_object() {
                *inner = Value::Object(Layer::new());
            }
            if let Value::Object(inner) = inner {
                set_path(inner, rest, value);
            }
        }
    }
}

/// The user's settings file, for writing. Cheap to clone and to send to a thread.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    path: Arc<PathBuf>,
}

impl SettingsFile {
    /// The user's file; a project's is written only by commands that record a package.
    pub fn global(dirs: &Dirs) -> Self {
        Self {
            path: Arc::new(dirs.global_settings()),
        }
    }

    /// Sets (`Some`) or removes (`None`) the values at dotted paths. Everything else stays as it
    /// is, in its order. Fails without touching a file that does not parse.
    ///
    /// Blocks while another process holds the lock, at most a fifth of a second.
    pub fn update(&self, changes: &[(&str, Option<Value>)]) -> Result<(), ConfigError> {
        json_file::update(&self.path, |layer| {
            for (path, value) in changes {
                set_path(layer, path, value.clone());
            }
        })
    }
}
