//! The fields of records in requests of callers. A missing field leaves the stored value unchanged.

use pinion_message::ThinkingLevel;
use pinion_scheduler::Recurrence;
use serde::Deserialize;

use super::events::Status;

/// The requested fields of a new topic.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TopicFields {
    pub title: Option<String>,
    pub agent_id: Option<String>,
}

/// The requested fields of an agent.
#[derive(Default, Deserialize)]
pub(super) struct AgentFields {
    pub name: Option<String>,
    pub llm_provider: Option<String>,
    pub llm_model: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<String>,
    pub system_prompt: Option<String>,
    pub thinking: Option<ThinkingLevel>,
    pub enable_reasoning: Option<bool>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u64>,
    pub scope: Option<Vec<String>>,
    pub pinned: Option<Vec<String>>,
    pub tools: Option<Vec<String>>,
}

impl std::fmt::Debug for AgentFields {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentFields")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The requested fields of an event.
#[derive(Default, Deserialize)]
pub(super) struct EventFields {
    pub agent_id: Option<String>,
    pub topic_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<Recurrence>,
    pub schedule: Option<String>,
    pub timezone: Option<String>,
    pub prompt: Option<String>,
    pub status: Option<Status>,
}

impl std::fmt::Debug for EventFields {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EventFields")
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}
