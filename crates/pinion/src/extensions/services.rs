//! The program as extensions see it: models, keys, resources, and the way out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use pinion_config::{Contributions, LazyResources};
use pinion_extensions::{Contribution, Services};
use pinion_llm::{Authorization, Provider, Registry};
use pinion_message::{Mask, Model};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::engine::Prompter;

/// What extensions may ask of the program.
pub(crate) struct ProgramServices {
    registry: RwLock<Arc<Registry>>,
    /// Who answers for an API that an extension brings along, and the provider it came with.
    answering: Mutex<HashMap<String, (String, Arc<dyn Provider>)>>,
    resources: Arc<LazyResources>,
    prompter: OnceLock<Arc<Prompter>>,
    mask: Mask,
    exit: watch::Sender<Option<i32>>,
}

impl ProgramServices {
    pub fn new(registry: Registry, resources: Arc<LazyResources>, mask: Mask) -> Self {
        Self {
            registry: RwLock::new(Arc::new(registry)),
            answering: Mutex::default(),
            resources,
            prompter: OnceLock::new(),
            mask,
            exit: watch::Sender::new(None),
        }
    }

    /// The models there are, at this moment.
    pub fn registry(&self) -> Arc<Registry> {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&registry)
    }

    /// Who of the extensions answers for `model`.
    pub fn answering(&self, model: &Model) -> Option<Arc<dyn Provider>> {
        let answering = self
            .answering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (_, provider) = answering.get(&model.api)?;
        Some(Arc::clone(provider))
    }

    /// Names what the system prompt is made of.
    pub fn set_prompter(&self, prompter: Arc<Prompter>) {
        // Set once, while the session is put together.
        let _ = self.prompter.set(prompter);
    }

    /// Waits until an extension asks for the end of the program; its exit code.
    pub async fn exited(&self) -> u8 {
        let mut exit = self.exit.subscribe();
        match exit.wait_for(Option::is_some).await {
            // As the system does it.
            Ok(code) => code.unwrap_or_default() as u8,
            Err(_) => std::future::pending().await,
        }
    }

    fn change_registry(&self, registry: Registry) {
        for key in registry.known_keys() {
            self.mask.learn(&key);
        }
        let mut current = self
            .registry
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(registry);
    }
}

impl Services for ProgramServices {
    fn exit(&self, code: i32) {
        self.exit.send_replace(Some(code));
    }

    fn all_models(&self) -> Vec<Arc<Model>> {
        self.registry().all()
    }

    fn available_models(&self) -> Vec<Arc<Model>> {
        self.registry().available()
    }

    fn find_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.registry().find(provider, id)
    }

    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let registry = self.registry();
        let mask = self.mask.clone();
        let model = model.clone();
        Box::pin(async move { crate::choices::authorize(&registry, &mask, &model).await })
    }

    fn has_credentials(&self, provider: &str) -> bool {
        self.registry().has_credentials(provider)
    }

    fn register_provider(
        &self,
        name: &str,
        config: Value,
        answering: Option<Arc<dyn Provider>>,
    ) -> Result<(), String> {
        let api = config.get("api").and_then(Value::as_str).map(str::to_owned);
        if answering.is_some() && api.is_none() {
            return Err(format!(
                "Provider {name}: \"api\" is required when registering streamSimple."
            ));
        }
        let registry = self.registry().with_provider(name, &config)?;
        self.change_registry(registry);
        if let (Some(api), Some(provider)) = (api, answering) {
            let mut all = self
                .answering
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.insert(api, (name.to_owned(), provider));
        }
        Ok(())
    }

    fn unregister_provider(&self, name: &str) {
        self.change_registry(self.registry().without_provider(name));
        let mut all = self
            .answering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (provider, _)| provider != name);
    }

    fn add_resources(&self, skills: Vec<Contribution>, prompts: Vec<Contribution>) {
        let known = |contributions: Vec<Contribution>| {
            let contributions = contributions.into_iter();
            let contributions = contributions.map(|each| pinion_config::Contribution {
                path: each.path,
                extension: each.extension,
            });
            contributions.collect()
        };
        self.resources.contribute(Contributions {
            skills: known(skills),
            prompts: known(prompts),
        });
    }

    fn prompt_options(&self) -> Value {
        let prompter = self.prompter.get();
        prompter.map_or_else(|| json!({}), |prompter| prompter.options())
    }

    fn commands(&self) -> Vec<Value> {
        let commands = self.resources.get().commands();
        commands.iter().map(|command| json!(command)).collect()
    }

    fn reload(&self) {
        self.resources.forget();
    }
}

impl std::fmt::Debug for ProgramServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgramServices")
    }
}
