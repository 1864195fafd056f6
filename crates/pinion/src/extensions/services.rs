//! The program as extensions see it: models, keys, resources and the exit.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use pinion_config::{Contributions, Dirs, LazyResources, ProjectTrust, Settings};
use pinion_extensions::{Contribution, PromptOptions, Services};
use pinion_llm::{
    Authorization, Environment, EventStream, Provider, Providers, Registry, Request, ScopedModel,
    is_supported_api,
};
use pinion_message::{Mask, Model, ThinkingLevel};
use pinion_sync::lock;
use pinion_tools::ToolSettings;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::engine::Prompter;

/// The services that the program offers to extensions.
pub(crate) struct ProgramServices {
    ground: Ground,
    registry: RwLock<Arc<Registry>>,
    router: Arc<Router>,
    prompter: OnceLock<Arc<Prompter>>,
    /// The models to which the session is limited.
    scope: OnceLock<Vec<ScopedModel>>,
    exit: watch::Sender<Option<i32>>,
}

/// The parts that stay the same while the program runs.
pub(crate) struct Ground {
    pub dirs: Dirs,
    pub settings: Settings,
    pub trust: ProjectTrust,
    pub resources: Arc<LazyResources>,
    pub mask: Mask,
    pub shell: ToolSettings,
    pub runtime: Handle,
}

/// Sends a request to a server, or to the extension that registered the model's API.
struct Router {
    providers: Providers,
    /// In the order of registration; the last of equal ones answers.
    extensions: Mutex<Vec<Answering>>,
}

/// An extension that answers the requests to a provider, or to one of its models.
struct Answering {
    /// The name of the provider.
    name: String,
    requests: AnsweredRequests,
    provider: Arc<dyn Provider>,
}

enum AnsweredRequests {
    /// Those for this API. Models of other providers with the same API are answered too, unless pinion supports it.
    Api(String),
    /// Those to the model with this id.
    Model(String),
}

impl Answering {
    fn replaced_by(&self, other: &Self) -> bool {
        match (&self.requests, &other.requests) {
            (AnsweredRequests::Api(known), AnsweredRequests::Api(new))
            | (AnsweredRequests::Model(known), AnsweredRequests::Model(new)) => known == new,
            _ => false,
        }
    }

    /// Returns the number by which this extension precedes others for a request to `model`; `None` if it does not answer
    /// it.
    fn rank(&self, model: &Model) -> Option<u8> {
        let is_own = self.name == model.provider;
        match &self.requests {
            AnsweredRequests::Model(id) => (is_own && *id == model.id).then_some(2),
            AnsweredRequests::Api(api) if *api != model.api => None,
            AnsweredRequests::Api(_) if is_own => Some(1),
            AnsweredRequests::Api(api) => (!is_supported_api(api)).then_some(0),
        }
    }
}

impl Router {
    fn extensions(&self) -> MutexGuard<'_, Vec<Answering>> {
        lock(&self.extensions)
    }

    /// Adds an extension, or replaces an earlier registration for the same requests.
    fn add(&self, answering: Answering) {
        let mut extensions = self.extensions();
        extensions.retain(|known| known.name != answering.name || !known.replaced_by(&answering));
        extensions.push(answering);
    }
}

impl Provider for Router {
    fn stream(&self, request: Request) -> EventStream {
        let extension = {
            let extensions = self.extensions();
            let answering = extensions.iter();
            let ranked = answering.filter_map(|it| Some((it.rank(&request.model)?, it)));
            let best = ranked.max_by_key(|(rank, _)| *rank);
            best.map(|(_, answering)| Arc::clone(&answering.provider))
        };
        match extension {
            Some(extension) => extension.stream(request),
            None => self.providers.stream(request),
        }
    }
}

impl ProgramServices {
    pub fn new(registry: Registry, providers: Providers, ground: Ground) -> Self {
        for key in registry.known_keys() {
            ground.mask.learn(&key);
        }
        let router = Arc::new(Router {
            providers,
            extensions: Mutex::default(),
        });
        Self {
            ground,
            registry: RwLock::new(Arc::new(registry)),
            router,
            prompter: OnceLock::new(),
            scope: OnceLock::new(),
            exit: watch::Sender::new(None),
        }
    }

    /// Returns the current registry of models.
    pub fn registry(&self) -> Arc<Registry> {
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&registry)
    }

    /// Returns the provider that answers for every model.
    pub fn router(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.router) as _
    }

    /// Sets the source of the system prompt.
    pub fn set_prompter(&self, prompter: Arc<Prompter>) {
        // Set once, while the session is built.
        let _ = self.prompter.set(prompter);
    }

    /// Sets the models to which the session is limited.
    pub fn set_scope(&self, scope: Vec<ScopedModel>) {
        // Set once, while the session is built.
        let _ = self.scope.set(scope);
    }

    /// Waits until an extension requests the end of the program, and returns its exit code.
    pub async fn exited(&self) -> u8 {
        let mut exit = self.exit.subscribe();
        let code = exit.wait_for(Option::is_some).await.map(|code| *code);
        match code {
            // Truncated to eight bits, as the system does.
            Ok(code) => code.unwrap_or_default() as u8,
            Err(_) => std::future::pending().await,
        }
    }

    fn change_registry(&self, registry: Registry) {
        for key in registry.known_keys() {
            self.ground.mask.learn(&key);
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
        let mask = self.ground.mask.clone();
        let model = model.clone();
        Box::pin(async move { crate::choices::authorize(&registry, &mask, &model).await })
    }

    fn environment(&self, provider: &str) -> Environment {
        self.registry().environment(provider)
    }

    fn provider(&self) -> Option<Arc<dyn Provider>> {
        Some(self.router())
    }

    fn runtime(&self) -> Option<Handle> {
        Some(self.ground.runtime.clone())
    }

    fn tool_settings(&self) -> ToolSettings {
        self.ground.shell.clone()
    }

    fn working_directory(&self) -> PathBuf {
        self.ground.dirs.cwd.clone()
    }

    fn agent_directory(&self) -> PathBuf {
        self.ground.dirs.agent_dir.clone()
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
            self.router.add(Answering {
                name: name.to_owned(),
                requests: AnsweredRequests::Api(api),
                provider,
            });
        }
        Ok(())
    }

    fn unregister_provider(&self, name: &str) {
        self.change_registry(self.registry().without_provider(name));
        let is_other = |answering: &Answering| {
            answering.name != name || matches!(answering.requests, AnsweredRequests::Model(_))
        };
        self.router.extensions().retain(is_other);
    }

    fn register_virtual_model(
        &self,
        model: Model,
        answering: Arc<dyn Provider>,
    ) -> Result<(), String> {
        self.router.add(Answering {
            name: model.provider.clone(),
            requests: AnsweredRequests::Model(model.id.clone()),
            provider: answering,
        });
        self.change_registry(self.registry().with_virtual_model(model));
        Ok(())
    }

    fn unregister_virtual_model(&self, provider: &str, id: &str) {
        self.change_registry(self.registry().without_virtual_model(provider, id));
        let is_other = |answering: &Answering| {
            let is_model =
                matches!(&answering.requests, AnsweredRequests::Model(known) if known == id);
            answering.name != provider || !is_model
        };
        self.router.extensions().retain(is_other);
    }

    fn scoped_models(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        let scope = self.scope.get().into_iter().flatten();
        scope
            .map(|scoped| (Arc::clone(&scoped.model), scoped.thinking))
            .collect()
    }

    fn is_project_trusted(&self) -> bool {
        self.ground.trust == ProjectTrust::Trusted
    }

    fn settings(&self) -> Value {
        self.ground.settings.effective().clone()
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
        self.ground.resources.contribute(Contributions {
            skills: known(skills),
            prompts: known(prompts),
        });
    }

    fn prompt_options(&self) -> Value {
        let prompter = self.prompter.get();
        prompter.map_or_else(|| json!({}), |prompter| prompter.options())
    }

    fn compose_prompt(&self, parts: &PromptOptions) -> Option<String> {
        Some(self.prompter.get()?.compose_from(parts))
    }

    fn commands(&self) -> Vec<Value> {
        let commands = self.ground.resources.get().commands();
        commands.iter().map(|command| json!(command)).collect()
    }

    fn reload(&self) {
        self.ground.resources.invalidate();
    }
}

impl std::fmt::Debug for ProgramServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgramServices")
    }
}
