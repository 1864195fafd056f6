//! What extensions may ask of the program they run in.
//!
//! Methods may be called on the thread of the engine and must not wait for it.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_config::Dirs;
use pinion_llm::{Authorization, Environment, Provider};
use pinion_message::Model;
use pinion_tools::ToolSettings;
use serde_json::{Value, json};

use crate::ExtensionEntry;

/// A file an extension brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// The file or directory.
    pub path: PathBuf,
    /// The extension that named it.
    pub extension: PathBuf,
}

/// What extensions may ask of the program they run in. Whoever offers nothing answers like a program
/// without models and resources.
pub trait Services: Send + Sync {
    /// Ends the program as `process.exit` asks, once everything written is flushed.
    fn exit(&self, code: i32);

    /// Every model there is, with credentials or without.
    fn all_models(&self) -> Vec<Arc<Model>> {
        Vec::new()
    }

    /// Every model that has credentials.
    fn available_models(&self) -> Vec<Arc<Model>> {
        Vec::new()
    }

    /// The model with exactly this provider and id, with credentials or without.
    fn find_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let models = self.all_models();
        let found = models
            .iter()
            .find(|model| model.provider == provider && model.id == id);
        found.map(Arc::clone)
    }

    /// What a request to `model` needs; the error is for people.
    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let error = format!("No API key found for \"{}\"", model.provider);
        Box::pin(std::future::ready(Err(error)))
    }

    /// Returns the environment of a provider, for requests that bring their own key.
    fn environment(&self, _provider: &str) -> Environment {
        Environment::default()
    }

    /// Who answers requests that extensions make to models; `None` if nobody does.
    fn provider(&self) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Where the program's own requests and tools run; `None` for the thread of the engine.
    fn runtime(&self) -> Option<tokio::runtime::Handle> {
        None
    }

    /// How the built-in tools are set up.
    fn tool_settings(&self) -> ToolSettings {
        ToolSettings::default()
    }

    /// The directory that relative paths start at.
    fn working_directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| "/".into())
    }

    /// The user's directory: settings, credentials, sessions.
    fn agent_directory(&self) -> PathBuf {
        Dirs::new(self.working_directory(), |name| std::env::var_os(name)).agent_dir
    }

    /// Whether credentials are set up for `provider`. Runs nothing.
    fn has_credentials(&self, _provider: &str) -> bool {
        false
    }

    /// Whether a login, not a key, opens `provider`.
    fn uses_login(&self, _provider: &str) -> bool {
        false
    }

    /// Makes a provider known: its models, its key, its address. `answering` is who answers
    /// for its `api` when the extension does so itself. The error is for the extension.
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

    /// Takes back what was registered for a provider.
    fn unregister_provider(&self, _name: &str) {}

    /// Adds skills and prompt templates, in the place of those added before.
    fn add_resources(&self, _skills: Vec<Contribution>, _prompts: Vec<Contribution>) {}

    /// What the system prompt is made of: `{cwd, skills, contextFiles, customPrompt, …}`.
    fn prompt_options(&self) -> Value {
        json!({})
    }

    /// The prompt templates and skills that can be called with `/`, as `get_commands` lists them.
    fn commands(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reads settings and resources again.
    fn reload(&self) {}

    /// The extensions to load from now on; `None` for those of before.
    fn entries(&self) -> Option<Vec<ExtensionEntry>> {
        None
    }
}

/// A program that offers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn exit(&self, _code: i32) {}
}
