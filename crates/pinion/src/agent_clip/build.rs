//! An engine for a topic, with the settings of its agent and the permissions of its caller.

use std::sync::Arc;

use pinion_access::Principal;
use pinion_clip_tools::{ClipCaller, LocalClips};
use pinion_llm::Registry;
use pinion_message::Secret;
use pinion_pi::Dialect;
use pinion_status::{Code, Failure};
use pinion_tools::Tool;
use serde_json::json;

use super::AgentClip;
use super::agents::Agent;
use super::feed::Feed;
use super::topics::Topic;
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Engine, Shared};
use crate::extensions::Audience;

/// The provider id of an agent that has its own `base_url`.
const OWN_PROVIDER: &str = "agent";

impl AgentClip {
    /// Builds an engine for `caller`. Only the hub's owner gets tools of this machine and files on its disk.
    pub(super) async fn build(
        &self,
        caller: &Principal,
        topic: &Topic,
        feed: Arc<Feed>,
    ) -> Result<Engine, Failure> {
        // No fallback to another agent: it may have tools that this one was denied.
        let agent = self.agents.get(Some(&topic.agent_id)).map_err(|failure| {
            if failure.code != Code::NotFound {
                return failure;
            }
            let message = "the agent of this topic was deleted; begin another topic";
            Failure::new(Code::FailedPrecondition, message)
        })?;
        let owns = *caller == Principal::Super;
        let mut flags = self.flags(&agent, topic);
        if !owns {
            flags.no_context_files = true;
            flags.no_skills = true;
            flags.no_prompt_templates = true;
        }
        let registry = self.registry(&agent, &mut flags)?;
        let basis = Basis::at(self.dirs.clone(), &flags).map_err(failed)?;
        let mut conversation = Conversation::open(&flags, &basis).map_err(failed)?;
        conversation.family = Some(topic.id.clone());
        let company = Company {
            tools: self.tools(caller, &agent),
            registry,
            ..Company::new(vec![feed], Audience::none())
        };
        let mut engine = engine::build(
            self.program,
            &flags,
            basis,
            conversation,
            company,
            &self.shared,
        )
        .await
        .map_err(failed)?;
        let config = &mut engine.config;
        match (owns, agent.tools) {
            (true, None) => {}
            (true, Some(tools)) => config.active_tools = tools,
            (false, _) => {
                config.tools.clear();
                config.active_tools.clear();
            }
        }
        config.settings.temperature = agent.temperature;
        config.settings.max_tokens = agent.max_tokens;
        Ok(engine)
    }

    /// Returns the hub's start flags, overridden by the agent's settings.
    fn flags(&self, agent: &Agent, topic: &Topic) -> Flags {
        let mut flags = self.flags.clone();
        flags.session_id = Some(topic.id.clone());
        flags.session_dir = Some(self.topics.sessions().display().to_string());
        flags.dialect = Some(Dialect::Modern);
        // An extension expects the session of a single user; a hub may have many users.
        flags.no_extensions = true;
        flags.thinking = agent.thinking.or(flags.thinking);
        if !agent.system_prompt.is_empty() {
            flags.system_prompt = Some(agent.system_prompt.clone());
        }
        if !agent.llm_model.is_empty() || !agent.llm_provider.is_empty() {
            let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            flags.model = filled(&agent.llm_model);
            flags.provider = filled(&agent.llm_provider);
            // The key belongs to the model that the hub was started with.
            flags.api_key = None;
        }
        flags
    }

    /// Returns models and keys for an agent that has its own key or address. No other key is sent to that address.
    fn registry(&self, agent: &Agent, flags: &mut Flags) -> Result<Option<Registry>, Failure> {
        let key = agent.api_key.reveal();
        if let Some(key) = key {
            self.shared.mask.learn(&Secret::from(key.to_owned()));
        }
        if agent.base_url.is_empty() {
            flags.api_key = key.map(str::to_owned).or(flags.api_key.take());
            return Ok(key.map(|_| Shared::registry_apart(&self.dirs)));
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
        let registry = Shared::registry_apart(&self.dirs)
            .with_provider(OWN_PROVIDER, &config)
            .map_err(|error| Failure::new(Code::FailedPrecondition, error))?;
        let key = Secret::from(key.unwrap_or("-").to_owned());
        registry.set_runtime_key(OWN_PROVIDER, key);
        flags.provider = Some(OWN_PROVIDER.into());
        flags.model = Some(agent.llm_model.clone());
        flags.api_key = None;
        Ok(Some(registry))
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
            self.complain(&format!(
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

fn failed(failure: crate::failure::Failure) -> Failure {
    Failure::new(Code::FailedPrecondition, failure.into_words())
}
