//! The parts of this program that a fleet needs: models and their prices, the program as a child, sessions as tasks.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use pinion_config::Dirs;
use pinion_fleet::{ChildExit, Host, Micros, TaskJob, Tokens};
use pinion_llm::{Registry, RegistryOptions, resolve_model};
use pinion_message::{Mask, Usage};

use super::task::Tasks;

/// This program as the host of a fleet.
pub(super) struct ProgramHost {
    dirs: Dirs,
    registry: OnceLock<Registry>,
    /// The keys of the registry; read when the first text is masked.
    mask: OnceLock<Mask>,
    /// The sessions in this process; made with the first of them.
    tasks: OnceLock<Arc<Tasks>>,
}

impl ProgramHost {
    pub fn new(dirs: Dirs) -> Self {
        Self {
            dirs,
            registry: OnceLock::new(),
            mask: OnceLock::new(),
            tasks: OnceLock::new(),
        }
    }

    fn registry(&self) -> &Registry {
        self.registry.get_or_init(|| {
            let (registry, notices) =
                Registry::load(&self.dirs.agent_dir, RegistryOptions::default());
            for notice in notices {
                eprintln!("Warning: {notice}");
            }
            registry
        })
    }

    /// Checks that pinion can use a model; the error is the reason why not.
    pub fn check_model(&self, name: &str) -> Result<(), String> {
        let resolved =
            resolve_model(self.registry(), None, name).map_err(|error| error.to_string())?;
        if resolved.warning.is_some() {
            return Err(format!(
                "model \"{name}\" is unknown; `pinion models` lists those there are, models.json adds others"
            ));
        }
        let checked = self.registry().check_credentials(&resolved.model);
        checked.map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            format!("model \"{name}\" cannot be asked: {first}")
        })
    }
}

impl Host for ProgramHost {
    fn program(&self) -> PathBuf {
        // Stays valid even if the file is replaced meanwhile, and names the same file for every child.
        std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into())
    }

    fn price(&self, model: &str, tokens: &Tokens) -> Option<Micros> {
        let resolved = resolve_model(self.registry(), None, model).ok()?;
        let rates = &resolved.model.cost;
        let mut usage = Usage {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            total_tokens: tokens.total(),
            ..Usage::default()
        };
        usage.price(rates);
        let cost = Micros::from_dollars(usage.cost.total);
        // A model without prices is not a free model.
        (cost > Micros::ZERO).then_some(cost)
    }

    fn mask_secrets(&self, text: &mut String) {
        let mask = self.mask.get_or_init(|| {
            let mask = Mask::default();
            let keys = self.registry().known_keys();
            keys.iter().for_each(|key| mask.learn(key));
            mask
        });
        mask.string(text);
    }

    fn task(&self, job: TaskJob) -> BoxFuture<'static, ChildExit> {
        let tasks = self
            .tasks
            .get_or_init(|| Arc::new(Tasks::new(self.dirs.clone())));
        Tasks::run(Arc::clone(tasks), job)
    }
}
