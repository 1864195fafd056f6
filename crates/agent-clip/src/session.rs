//! The session of a run, with the settings of its agent and the permissions of its caller.

use std::path::PathBuf;
use std::sync::Arc;

use pinion_access::Principal;
use pinion_agent::{Config, Listener};
use pinion_clip_tools::{ClipCaller, LocalClips};
use pinion_llm::Registry;
use pinion_message::{Mask, Secret, ThinkingLevel};
use pinion_status::{Code, Failure};
use pinion_tools::Tool;
use serde_json::json;

use super::AgentClip;
use super::agents::Agent;
use super::feed::Feed;
use super::topics::Topic;

/// The provider id of an agent that has its own `base_url`.
const OWN_PROVIDER: &str = "agent";

/// Builds sessions from settings and files; the program implements it.
pub trait SessionFactory: Send + Sync {
    /// Returns the keys that no session may show.
    fn mask(&self) -> &Mask;

    /// Reads the known models into a registry of its own, so that a key set for one session does not reach others.
    fn registry(&self) -> Registry;

    /// Builds a session. Blocks, and runs on a thread of a runtime.
    fn build(&self, request: SessionRequest) -> Result<Config, Failure>;
}

/// Inputs of a session.
pub struct SessionRequest {
    /// The id of the session, which also marks the processes of its tools.
    pub id: String,
    /// The directory of the session files.
    pub directory: PathBuf,
    /// The caller owns the hub; other callers get no context files, skills and prompt templates.
    pub is_owner: bool,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub api_key: Option<String>,
    pub thinking: Option<ThinkingLevel>,
    pub system_prompt: Option<String>,
    /// Tools beside the built-in ones.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The session's own models and keys; `None` shares those of the program.
    pub registry: Option<Registry>,
    /// The receiver of the session's events.
    pub listener: Arc<dyn Listener>,
}

impl std::fmt::Debug for SessionRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionRequest")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl AgentClip {
    /// Builds a session for `caller`. Only the hub's owner gets tools of this machine and files on its disk.
    pub(super) fn build(
        &self,
        caller: &Principal,
        topic: &Topic,
        feed: Arc<Feed>,
    ) -> Result<Config, Failure> {
        // No fallback to another agent: it may have tools that this one was denied.
        let agent = self.agents.get(Some(&topic.agent_id)).map_err(|failure| {
            if failure.code != Code::NotFound {
                return failure;
            }
            let message = "the agent of this topic was deleted; begin another topic";
            Failure::new(Code::FailedPrecondition, message)
        })?;
        let is_owner = *caller == Principal::Super;
        let mut request = SessionRequest {
            id: topic.id.clone(),
            directory: self.topics.sessions().to_owned(),
            is_owner,
            model: self.defaults.model.clone(),
            provider: self.defaults.provider.clone(),
            api_key: None,
            thinking: agent.thinking.or(self.defaults.thinking),
            system_prompt: filled(&agent.system_prompt),
            tools: self.tools(caller, &agent),
            registry: None,
            listener: feed,
        };
        if !agent.llm_model.is_empty() || !agent.llm_provider.is_empty() {
            request.model = filled(&agent.llm_model);
            request.provider = filled(&agent.llm_provider);
        }
        self.set_provider(&agent, &mut request)?;
        let mut config = self.sessions.build(request)?;
        if !is_owner {
            config.tools.clear();
            config.active_tools.clear();
        } else if let Some(tools) = agent.tools {
            config.active_tools = tools;
        }
        config.settings.temperature = agent.temperature;
        config.settings.max_tokens = agent.max_tokens;
        Ok(config)
    }

    /// Sets models and keys for an agent that has its own key or address. No other key is sent to that address.
    fn set_provider(&self, agent: &Agent, request: &mut SessionRequest) -> Result<(), Failure> {
        let key = agent.api_key.reveal();
        if let Some(key) = key {
            self.sessions.mask().learn(&Secret::from(key.to_owned()));
        }
        if agent.base_url.is_empty() {
            request.api_key = key.map(str::to_owned);
            request.registry = key.map(|_| self.sessions.registry());
            return Ok(());
        }
        let api = match agent.llm_provider.as_str() {
            "anthropic" => "anthropic-messages",
            "google" => "google-generative-ai",
            _ => "openai-completions",
        };
        let model = json!({"id": agent.llm_model, "reasoning": agent.thinking.is_some()});
        let config = json!({
            "baseUrl": agent.base_url,
            "api": api,
            "apiKey": "-",
            "models": [model],
        });
        let registry = self
            .sessions
            .registry()
            .with_provider(OWN_PROVIDER, &config)
            .map_err(|error| Failure::new(Code::FailedPrecondition, error))?;
        let key = Secret::from(key.unwrap_or("-").to_owned());
        registry.set_runtime_key(OWN_PROVIDER, key);
        request.provider = Some(OWN_PROVIDER.into());
        request.model = Some(agent.llm_model.clone());
        request.registry = Some(registry);
        Ok(())
    }

    /// Returns the clips that both the agent and the caller may use, as tools.
    fn tools(&self, caller: &Principal, agent: &Agent) -> Vec<Arc<dyn Tool>> {
        let Some(hub) = self.hub.upgrade() else {
            return Vec::new();
        };
        let offers =
            pinion_clip_tools::offers(&hub, caller, &self.alias, &agent.scope, &agent.pinned);
        let only: Vec<String> = offers.iter().map(|offer| offer.alias.clone()).collect();
        let (offers, left_out) = pinion_clip_tools::within_limit(offers);
        if !left_out.is_empty() {
            self.warn(&format!(
                "agent {}: models take no more than {} commands; these clips are left out: {}",
                agent.id,
                pinion_clip_tools::MAX_CLIP_TOOLS,
                left_out.join(", ")
            ));
        }
        let clips: Arc<dyn ClipCaller> = Arc::new(LocalClips::new(
            self.hub.clone(),
            caller.clone(),
            Some(only),
        ));
        pinion_clip_tools::tools(offers, &clips)
    }
}

fn filled(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
