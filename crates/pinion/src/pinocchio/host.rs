//! The settings, models and clips of a command's run.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pinion_config::{Dirs, Settings, Trust, TrustFlag};
use pinion_llm::{Providers, Registry, RegistryOptions};
use pinion_message::Mask;
use pinion_profiles::{HostContext, ProfileError, ProfileRequest, Resolved, Unnamed};
use pinion_run_command::{EngineParts, EngineRequest, RunHost};
use tokio::runtime::Runtime;

use crate::clip_tools::{self, ClipFlags};
use crate::engine::{engine_settings, tool_settings};
use crate::failure::Failure;
use crate::surroundings;

/// The directories, settings and trust of this process.
pub(super) struct CommandHost {
    dirs: Dirs,
    settings: Settings,
    trust: Trust,
    mask: Mask,
}

impl CommandHost {
    pub fn read() -> Result<Self, Failure> {
        let dirs = Dirs::from_env()?;
        let (trust, notices) = Trust::load(&dirs);
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        let (settings, notices) = Settings::load(&dirs, trust.of(&dirs.cwd));
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        Ok(Self {
            dirs,
            settings,
            trust,
            mask: Mask::default(),
        })
    }

    /// Fails if the user asked for a sandbox, which these runs do not have.
    pub fn check_sandbox(&self) -> Result<(), Failure> {
        crate::sandbox::refuse_unconfined(&self.dirs)
    }

    /// Returns the directories of commands.
    pub fn repositories(&self) -> Vec<PathBuf> {
        self.look(|surroundings| {
            let (mut directories, notices) = pinion_profiles::repositories(surroundings, None);
            for notice in &notices {
                eprintln!("Warning: {notice}");
            }
            directories.push(surroundings.home.join(".pinocchio/prompts"));
            directories
        })
    }

    fn look<T>(&self, look: impl FnOnce(&HostContext<'_>) -> T) -> T {
        surroundings::with(&self.dirs, &self.trust, TrustFlag::Unset, look)
    }
}

impl RunHost for CommandHost {
    fn cwd(&self) -> &Path {
        &self.dirs.cwd
    }

    fn home(&self) -> &Path {
        &self.dirs.home
    }

    fn theme(&self) -> Option<&str> {
        self.settings.get("theme")?.as_str()
    }

    fn resolve(&self, request: &ProfileRequest) -> Result<Resolved, ProfileError> {
        self.look(|surroundings| pinion_profiles::resolve(surroundings, request))
    }

    fn engine_parts(
        &self,
        request: &EngineRequest<'_>,
        runtime: &Runtime,
    ) -> Result<EngineParts, String> {
        let options = RegistryOptions::default();
        let (registry, notices) = Registry::load(&self.dirs.agent_dir, options);
        for notice in &notices {
            eprintln!("Warning: {notice}");
        }
        let unnamed = Unnamed {
            saved: self
                .settings
                .default_provider()
                .zip(self.settings.default_model()),
            demo: request.allows_demo,
        };
        let (resolved, now) = (request.resolved, SystemTime::now());
        let chosen = match request.model {
            Some(pattern) => pinion_profiles::named_engine(resolved, &registry, pattern),
            None => self.look(|surroundings| {
                pinion_profiles::engine(resolved, &registry, surroundings, unnamed, now)
            }),
        };
        let chosen = chosen.map_err(|error| error.to_string())?;
        for notice in &chosen.notices {
            eprintln!("Warning: {notice}");
        }
        let (providers, notice) = Providers::from_environment();
        if let Some(notice) = notice {
            eprintln!("Warning: {notice}");
        }
        let flags = ClipFlags {
            clips: Some(request.clips.to_vec()).filter(|names| !names.is_empty()),
            hub: request.hub.map(str::to_owned),
        };
        let clip_tools = if flags.is_given() {
            runtime.block_on(clip_tools::of_hub(&flags))?
        } else {
            Vec::new()
        };
        Ok(EngineParts {
            chosen,
            registry,
            providers,
            clip_tools,
            tool_settings: tool_settings(&self.dirs, &self.settings, &self.mask),
            settings: engine_settings(&self.settings),
            mask: self.mask.clone(),
        })
    }
}
