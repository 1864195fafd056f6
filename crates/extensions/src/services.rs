//! The interface through which extensions use the program that they run in.
//!
//! Methods may be called on the engine's thread and must not wait for that thread.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_config::Dirs;
use pinion_llm::{Authorization, Environment, Provider};
use pinion_message::{Model, ThinkingLevel};
use pinion_tools::ToolSettings;
use serde_json::{Value, json};

use crate::{ExtensionEntry, PromptOptions};

/// A file or directory that an extension contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    pub path: PathBuf,
    /// The extension that named the path.
    pub extension: PathBuf,
}

/// The parts of the program that extensions may use. The default methods behave like a program without models and
/// resources.
pub trait Services: Send + Sync {
    /// Ends the program as `process.exit` requests, after everything written is flushed.
    fn exit(&self, code: i32);

    /// Returns every known model, with credentials or without.
    fn all_models(&self) -> Vec<Arc<Model>> {
        Vec::new()
    }

    /// Returns every model that has credentials.
    fn available_models(&self) -> Vec<Arc<Model>> {
        Vec::new()
    }

    /// Returns the model with exactly this provider and id, with credentials or without.
    fn find_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let models = self.all_models();
        let found = models
            .iter()
            .find(|model| model.provider == provider && model.id == id);
        found.map(Arc::clone)
    }

    /// Returns the key and headers for a request to `model`. The error is a message for people.
    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let error = format!("No API key found for \"{}\"", model.provider);
        Box::pin(std::future::ready(Err(error)))
    }

    /// Returns the environment of a provider, for requests that carry their own key.
    fn environment(&self, _provider: &str) -> Environment {
        Environment::default()
    }

    /// Returns the provider that answers requests of extensions to models; `None` if there is none.
    fn provider(&self) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Returns the runtime for the program's own requests and tools; `None` for the engine's thread.
    fn runtime(&self) -> Option<tokio::runtime::Handle> {
        None
    }

    /// Returns the settings of the built-in tools.
    fn tool_settings(&self) -> ToolSettings {
        ToolSettings::default()
    }

    /// Returns the directory that relative paths start at.
    fn working_directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| "/".into())
    }

    /// Returns the user's directory of settings, credentials and sessions.
    fn agent_directory(&self) -> PathBuf {
        Dirs::new(self.working_directory(), |name| std::env::var_os(name)).agent_dir
    }

    /// Reports whether credentials are configured for `provider`. Does not run any program.
    fn has_credentials(&self, _provider: &str) -> bool {
        false
    }

    /// Reports whether `provider` uses a login instead of a key.
    fn uses_login(&self, _provider: &str) -> bool {
        false
    }

    /// Registers a provider: its models, its key, its address. `answering` answers requests for its `api` if the
    /// extension implements that API itself. The error is a message for the extension.
    fn register_provider(
        &self,
        name: &str,
        _config: Value,
        _answering: Option<Arc<dyn Provider>>,
    ) -> Result<(), String> {
        Err(format!(
            "Provider {name}: providers cannot be registered here."
        ))
    }

    /// Removes the registration of a provider.
    fn unregister_provider(&self, _name: &str) {}

    /// Adds a model whose requests `answering` answers, or replaces the one with the same provider and id. The error is
    /// a message for the extension.
    fn register_virtual_model(
        &self,
        model: Model,
        _answering: Arc<dyn Provider>,
    ) -> Result<(), String> {
        Err(format!(
            "Virtual model {}/{}: models cannot be registered here.",
            model.provider, model.id
        ))
    }

    /// Removes a model that [`Services::register_virtual_model`] added.
    fn unregister_virtual_model(&self, _provider: &str, _id: &str) {}

    /// Returns the models to which the session is limited, each with its thinking level; empty if there is no limit.
    fn scoped_models(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }

    /// Reports whether the user trusts the project of the session.
    fn is_project_trusted(&self) -> bool {
        false
    }

    /// Returns the settings in effect.
    fn settings(&self) -> Value {
        json!({})
    }

    /// Replaces the skills and prompt templates that extensions contributed earlier.
    fn add_resources(&self, _skills: Vec<Contribution>, _prompts: Vec<Contribution>) {}

    /// Returns the parts of the system prompt: `{cwd, skills, contextFiles, customPrompt, …}`.
    fn prompt_options(&self) -> Value {
        json!({})
    }

    /// Composes the system prompt from the parts that extensions changed, except their sections. `None` if the program
    /// has no such parts.
    fn compose_prompt(&self, _parts: &PromptOptions) -> Option<String> {
        None
    }

    /// Returns the prompt templates and skills that can be called with `/`, as `get_commands` lists them.
    fn commands(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reads settings and resources again.
    fn reload(&self) {}

    /// Returns the extensions to load from now on; `None` for the same ones as before.
    fn entries(&self) -> Option<Vec<ExtensionEntry>> {
        None
    }
}

/// A program without models, providers and resources.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn exit(&self, _code: i32) {}
}
