//! State that the sessions of one process share.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use pinion_config::{ContextFile, Dirs, SettingsFile};
use pinion_llm::{Environment, Providers, Registry, RegistryOptions};
use pinion_message::Mask;
use pinion_sync::{Interner, lock};
use pinion_tools::Tool;
use tokio::sync::OnceCell;

use super::tell;
use crate::clip_tools::{self, ClipFlags};
use crate::failure::Failure;
use crate::preferences::SavedPreferences;

/// State that the sessions of one process share, so that each session is small.
pub(crate) struct Shared {
    pub providers: Providers,
    /// All keys that any session used: no session may show any of them.
    pub mask: Mask,
    /// Choices of users, saved for the next start.
    pub preferences: Arc<SavedPreferences>,
    /// The known models, with the state of the files they were read from.
    registry: Mutex<Option<(Files, Registry)>>,
    /// The commands of clips, read from the hub when the first session requests them.
    clips: OnceCell<Vec<Arc<dyn Tool>>>,
    /// Context files of projects.
    pub(super) context_files: Interner<[ContextFile]>,
    /// System prompts.
    pub(super) prompts: Arc<Interner<str>>,
}

/// Size and modification time of `models.json` and `auth.json`; `None` if the file cannot be read.
type Files = [Option<(u64, Option<SystemTime>)>; 2];

impl Shared {
    /// Creates the shared state. Connections and files are opened later, when a session needs them.
    pub fn new(dirs: &Dirs) -> Self {
        let (providers, notice) = Providers::from_environment();
        if let Some(notice) = notice {
            eprintln!("Warning: {notice}");
        }
        Self {
            providers,
            mask: Mask::default(),
            preferences: Arc::new(SavedPreferences::new(SettingsFile::global(dirs))),
            registry: Mutex::new(None),
            clips: OnceCell::new(),
            context_files: Interner::default(),
            prompts: Arc::default(),
        }
    }

    /// Returns the commands of the clips that the flags name. The hub is queried once.
    pub(super) async fn clips(&self, flags: &ClipFlags) -> Result<Vec<Arc<dyn Tool>>, Failure> {
        if !flags.is_given() {
            return Ok(Vec::new());
        }
        let asked = self.clips.get_or_try_init(|| clip_tools::of_hub(flags));
        asked.await.cloned()
    }

    /// Reads the models into a registry of its own, so that a key set for one session does not reach others.
    pub fn registry_apart(dirs: &Dirs) -> Registry {
        let (registry, notices) = Registry::load(&dirs.agent_dir, registry_options());
        tell(&notices);
        registry
    }

    /// Reads the models again, for the sessions that follow.
    pub fn fresh_registry(&self, dirs: &Dirs) -> Registry {
        *lock(&self.registry) = None;
        self.registry(dirs)
    }

    /// Returns the shared registry of models, and reads it again if its files have changed.
    pub(super) fn registry(&self, dirs: &Dirs) -> Registry {
        let files = ["models.json", "auth.json"].map(|name| look(&dirs.agent_dir.join(name)));
        let mut known = lock(&self.registry);
        match &*known {
            Some((seen, registry)) if *seen == files => registry.clone(),
            _ => {
                let registry = Self::registry_apart(dirs);
                *known = Some((files, registry.clone()));
                registry
            }
        }
    }
}

fn look(file: &Path) -> Option<(u64, Option<SystemTime>)> {
    let metadata = file.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

/// Returns options that also look for keys in variables that extensions set.
fn registry_options() -> RegistryOptions {
    RegistryOptions {
        environment: Environment::Lookup(pinion_extensions::environment_variable),
        ..RegistryOptions::default()
    }
}
