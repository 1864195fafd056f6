//! What the sessions of one process have in common.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use pinion_config::{ContextFile, Dirs, SettingsFile};
use pinion_llm::{Environment, Providers, Registry, RegistryOptions};
use pinion_message::Mask;
use pinion_tools::Tool;
use tokio::sync::OnceCell;

use super::tell;
use crate::clip_tools::{self, ClipFlags};
use crate::failure::Failure;
use crate::preferences::SavedPreferences;

/// What the sessions of one process have in common, so that each of them is small.
pub(crate) struct Shared {
    /// Connections to servers.
    pub providers: Providers,
    /// Every key that was ever used: none of them may be seen in any session.
    pub mask: Mask,
    /// What users chose for the next start.
    pub preferences: Arc<SavedPreferences>,
    /// The models there are, and the files they were read from.
    registry: Mutex<Option<(Files, Registry)>>,
    /// The commands of clips, once a session wanted them.
    clips: OnceCell<Vec<Arc<dyn Tool>>>,
    /// What models are told about projects.
    pub(super) context_files: Once<[ContextFile]>,
    /// What models are told first.
    pub(super) prompts: Arc<Once<str>>,
}

/// Keeps what is equal once, for as long as anybody uses it.
#[derive(Debug)]
pub(super) struct Once<T: ?Sized>(Mutex<Vec<Weak<T>>>);

impl<T: ?Sized> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized + PartialEq> Once<T> {
    /// The one that is equal to `new`: one that is known, or itself.
    pub fn the(&self, new: Arc<T>) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.strong_count() > 0);
        let same = known
            .iter()
            .filter_map(Weak::upgrade)
            .find(|one| *one == new);
        same.unwrap_or_else(|| {
            known.push(Arc::downgrade(&new));
            new
        })
    }
}

/// How the files looked that say which models and keys there are.
type Files = [Option<(u64, Option<SystemTime>)>; 2];

impl Shared {
    /// Nothing heavy: connections are made and files are read when they are needed.
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
            context_files: Once::default(),
            prompts: Arc::default(),
        }
    }

    /// The commands of the clips the flags name; the hub is asked once.
    pub(super) async fn clips(&self, flags: &ClipFlags) -> Result<Vec<Arc<dyn Tool>>, Failure> {
        if !flags.is_given() {
            return Ok(Vec::new());
        }
        let asked = self.clips.get_or_try_init(|| clip_tools::of_hub(flags));
        asked.await.cloned()
    }

    /// The models there are, with keys that are set for one session alone.
    pub fn registry_apart(dirs: &Dirs) -> Registry {
        let (registry, notices) = Registry::load(&dirs.agent_dir, registry_options());
        tell(&notices);
        registry
    }

    /// The models there are; read again when their files have changed.
    pub(super) fn registry(&self, dirs: &Dirs) -> Registry {
        let files = ["models.json", "auth.json"].map(|name| look(&dirs.agent_dir.join(name)));
        let mut known = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Keys may also be in variables that extensions set.
fn registry_options() -> RegistryOptions {
    RegistryOptions {
        environment: Environment::Lookup(pinion_extensions::environment_variable),
        ..RegistryOptions::default()
    }
}
