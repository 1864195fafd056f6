//! The parts of a run that the program builds from its settings, files and hub.

use std::path::Path;
use std::sync::Arc;

use pinion_agent::EngineSettings;
use pinion_llm::{Providers, Registry};
use pinion_message::Mask;
use pinion_profiles::{Chosen, ProfileError, ProfileRequest, Resolved};
use pinion_tools::{Tool, ToolSettings};
use tokio::runtime::Runtime;

/// Reads directories and settings and builds the parts of an engine; the program implements it.
pub trait RunHost {
    /// Returns the directory in which the command and the model's tools run.
    fn cwd(&self) -> &Path;

    fn home(&self) -> &Path;

    /// Returns the theme of the chat that the user's settings name.
    fn theme(&self) -> Option<&str>;

    /// Resolves the profile and the inference settings of a command.
    fn resolve(&self, request: &ProfileRequest) -> Result<Resolved, ProfileError>;

    /// Builds the parts of an engine; the error is the reason why there is none.
    fn engine_parts(
        &self,
        request: &EngineRequest<'_>,
        runtime: &Runtime,
    ) -> Result<EngineParts, String>;
}

/// The choice of a model and of tools.
#[derive(Debug)]
pub struct EngineRequest<'a> {
    pub resolved: &'a Resolved,
    /// The model of `--model`, which overrides the resolved settings.
    pub model: Option<&'a str>,
    /// The built-in model may answer if no model is configured.
    pub allows_demo: bool,
    /// The clips whose commands become tools; if empty, all clips of `hub`, if that is set.
    pub clips: &'a [String],
    /// The address of the hub of these clips.
    pub hub: Option<&'a str>,
}

/// The parts of an engine that come from settings, files and the hub.
pub struct EngineParts {
    pub chosen: Chosen,
    pub registry: Registry,
    pub providers: Providers,
    /// The commands of clips, as tools.
    pub clip_tools: Vec<Arc<dyn Tool>>,
    pub tool_settings: ToolSettings,
    pub settings: EngineSettings,
    /// Receives every key that is used.
    pub mask: Mask,
}

impl std::fmt::Debug for EngineParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EngineParts")
            .field("model", &self.chosen.model.id)
            .finish_non_exhaustive()
    }
}
