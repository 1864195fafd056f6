//! The stored agents, in `agents.json`.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinion_message::ThinkingLevel;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fields::AgentFields;
use super::record_file::{now, read, replace};

/// The id of the agent that exists before the user creates one.
const DEFAULT: &str = "default";
/// Maximum number of agents.
const MOST: usize = 1000;

/// The stored settings of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Agent {
    pub id: String,
    pub name: String,
    pub llm_provider: String,
    /// Empty for the model that the hub was started with.
    pub llm_model: String,
    pub base_url: String,
    pub api_key: Key,
    pub system_prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The clips that the agent may use; empty for all.
    pub scope: Vec<String>,
    /// The clips that come first among the agent's tools.
    pub pinned: Vec<String>,
    /// The agent's tools of this machine; `None` for the default ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    pub created_at: String,
    pub updated_at: String,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            id: DEFAULT.into(),
            name: "pinion".into(),
            llm_provider: String::new(),
            llm_model: String::new(),
            base_url: String::new(),
            api_key: Key::default(),
            system_prompt: String::new(),
            thinking: None,
            temperature: None,
            max_tokens: None,
            scope: Vec::new(),
            pinned: Vec::new(),
            tools: None,
            created_at: String::new(),
            updated_at: String::new(),
        }
    }
}

/// An API key. It is written to the file of agents but never sent to a caller.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Key(String);

impl Key {
    /// Returns the key; `None` if it is empty.
    pub fn reveal(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|key| !key.is_empty())
    }

    /// Returns enough of the key to recognize it: `abcd...wxyz`, or `...` for fewer than 16 characters.
    fn masked(&self) -> String {
        let letters: Vec<char> = self.0.chars().collect();
        match letters.len() {
            0 => String::new(),
            1..=15 => "...".into(),
            count => {
                let (first, last) = (&letters[..4], &letters[count - 4..]);
                format!("{}...{}", String::from_iter(first), String::from_iter(last))
            }
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

impl Agent {
    /// Returns the agent in the form that callers receive, with a masked key.
    pub fn shown(&self) -> Value {
        let mut shown = json!(self);
        shown["api_key"] = self.api_key.masked().into();
        shown["enable_reasoning"] = self.thinks().into();
        shown
    }

    fn thinks(&self) -> bool {
        self.thinking
            .is_some_and(|level| level != ThinkingLevel::Off)
    }

    fn take(&mut self, fields: AgentFields) -> Result<(), Failure> {
        let AgentFields {
            name,
            llm_provider,
            llm_model,
            base_url,
            api_key,
            system_prompt,
            thinking,
            enable_reasoning,
            temperature,
            max_tokens,
            scope,
            pinned,
            tools,
        } = fields;
        let set = |place: &mut String, text: Option<String>| {
            if let Some(text) = text {
                *place = text.trim().to_owned();
            }
        };
        set(&mut self.name, name);
        set(&mut self.llm_provider, llm_provider);
        set(&mut self.llm_model, llm_model);
        set(&mut self.base_url, base_url);
        set(&mut self.system_prompt, system_prompt);
        // A form sends back the masked key.
        if let Some(key) = api_key.filter(|key| *key != self.api_key.masked()) {
            self.api_key = Key(key.trim().to_owned());
        }
        if let Some(wanted) = enable_reasoning
            && wanted != self.thinks()
        {
            self.thinking = Some(if wanted {
                ThinkingLevel::Medium
            } else {
                ThinkingLevel::Off
            });
        }
        self.thinking = thinking.or(self.thinking);
        self.temperature = temperature.or(self.temperature);
        self.max_tokens = max_tokens.or(self.max_tokens);
        self.scope = scope.unwrap_or(std::mem::take(&mut self.scope));
        self.pinned = pinned.unwrap_or(std::mem::take(&mut self.pinned));
        self.tools = tools.or(self.tools.take());
        self.check()
    }

    fn check(&self) -> Result<(), Failure> {
        let known = pinion_tools::all_names();
        let mut tools = self.tools.iter().flatten();
        if let Some(tool) = tools.find(|tool| !known.contains(&tool.as_str())) {
            return Err(Failure::invalid(format!(
                "there is no tool \"{tool}\"; use {}",
                known.join(", ")
            )));
        }
        if self.name.is_empty() {
            return Err(Failure::invalid("name is required"));
        }
        let web = ["http://", "https://"];
        if !self.base_url.is_empty() && !web.iter().any(|it| self.base_url.starts_with(it)) {
            return Err(Failure::invalid(format!(
                "base_url is \"{}\", it must begin with http:// or https://",
                self.base_url
            )));
        }
        if !self.base_url.is_empty() && self.llm_model.is_empty() {
            return Err(Failure::invalid("llm_model is required with base_url"));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Agents {
    file: PathBuf,
    /// The content of the file, in order of creation.
    agents: Mutex<Vec<Agent>>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    agents: Vec<Agent>,
}

impl Agents {
    /// Reads the agents in `directory`.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let file = directory.join("agents.json");
        let stored: Option<Stored> = read(&file)?;
        Ok(Self {
            file,
            agents: Mutex::new(stored.map(|stored| stored.agents).unwrap_or_default()),
        })
    }

    fn agents(&self) -> MutexGuard<'_, Vec<Agent>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all agents, or the default agent if none is stored.
    pub fn all(&self) -> Vec<Agent> {
        let mut agents = self.agents().clone();
        if agents.is_empty() {
            agents.push(Agent::default());
        }
        agents
    }

    /// Returns the agent of this id, or the first agent.
    pub fn get(&self, id: Option<&str>) -> Result<Agent, Failure> {
        let all = self.all();
        let found = match id {
            None => all.into_iter().next(),
            Some(id) => all.into_iter().find(|agent| agent.id == id),
        };
        found.ok_or_else(|| unknown(id.unwrap_or(DEFAULT)))
    }

    pub fn create(&self, fields: AgentFields) -> Result<Agent, Failure> {
        let mut agent = Agent {
            id: uuid::Uuid::new_v4().to_string(),
            created_at: now(),
            ..Agent::default()
        };
        agent.name.clear();
        agent.take(fields)?;
        agent.updated_at.clone_from(&agent.created_at);
        self.change(|agents| {
            if agents.len() >= MOST {
                let message = format!("there are {MOST} agents already; delete one");
                return Err(Failure::new(Code::ResourceExhausted, message));
            }
            agents.push(agent.clone());
            Ok(agent)
        })
    }

    pub fn update(&self, id: &str, fields: AgentFields) -> Result<Agent, Failure> {
        self.change(|agents| {
            if agents.is_empty() && id == DEFAULT {
                agents.push(Agent {
                    created_at: now(),
                    ..Agent::default()
                });
            }
            let agent = agents.iter_mut().find(|agent| agent.id == id);
            let agent = agent.ok_or_else(|| unknown(id))?;
            agent.take(fields)?;
            agent.updated_at = now();
            Ok(agent.clone())
        })
    }

    pub fn delete(&self, id: &str) -> Result<(), Failure> {
        self.change(|agents| {
            let before = agents.len();
            agents.retain(|agent| agent.id != id);
            if agents.len() == before {
                return Err(unknown(id));
            }
            Ok(())
        })
    }

    /// Changes the file, then the agents in memory. Nothing changes if the file cannot be written.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Agent>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut known = self.agents();
        let mut stored = Stored {
            agents: known.clone(),
        };
        let result = change(&mut stored.agents)?;
        replace(&self.file, &stored)?;
        *known = stored.agents;
        Ok(result)
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no agent \"{id}\""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fields(value: Value) -> AgentFields {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn agents_are_kept_and_their_keys_are_not_shown() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::open(place.path()).unwrap();
        assert_eq!(agents.get(None).unwrap().id, DEFAULT);
        let made = agents
            .create(fields(
                json!({"name": " helper ", "api_key": "sk-1234567890abcdef", "scope": ["todo"]}),
            ))
            .unwrap();
        assert_eq!(made.name, "helper");
        let shown = made.shown();
        assert_eq!(shown["api_key"], "sk-1...cdef");
        assert!(!format!("{made:?}").contains("567890"));

        // The masked key that a form sends back does not change the key.
        let same = fields(json!({"api_key": "sk-1...cdef", "enable_reasoning": true}));
        let updated = agents.update(&made.id, same).unwrap();
        assert_eq!(updated.api_key.reveal(), Some("sk-1234567890abcdef"));
        assert_eq!(updated.thinking, Some(ThinkingLevel::Medium));
        let short = agents
            .update(&made.id, fields(json!({"api_key": "short"})))
            .unwrap();
        assert_eq!(short.shown()["api_key"], "...");

        let file = place.path().join("agents.json");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let again = Agents::open(place.path()).unwrap();
        assert_eq!(again.get(None).unwrap().id, made.id);
        assert_eq!(again.get(Some(&made.id)).unwrap().scope, ["todo"]);
        again.delete(&made.id).unwrap();
        assert_eq!(again.delete(&made.id).unwrap_err().code, Code::NotFound);
        assert_eq!(again.get(None).unwrap().id, DEFAULT);
    }

    #[test]
    fn the_first_agent_can_be_changed_before_any_is_made() {
        let place = tempfile::tempdir().unwrap();
        let agents = Agents::open(place.path()).unwrap();
        agents
            .update(DEFAULT, fields(json!({"system_prompt": "Be brief."})))
            .unwrap();
        assert_eq!(agents.get(None).unwrap().system_prompt, "Be brief.");
        for (value, words) in [
            (json!({"tools": ["rm"]}), "no tool \"rm\""),
            (
                json!({"base_url": "ftp://x", "llm_model": "m"}),
                "must begin with",
            ),
            (json!({"base_url": "http://x"}), "llm_model is required"),
            (json!({"name": ""}), "name is required"),
        ] {
            let failure = agents.update(DEFAULT, fields(value)).unwrap_err();
            assert!(failure.message.contains(words), "{failure}");
        }
        assert_eq!(agents.get(None).unwrap().tools, None);
    }

    #[test]
    fn a_damaged_file_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("agents.json"), "{\"agents\": [").unwrap();
        let failure = Agents::open(place.path()).unwrap_err();
        assert_eq!(failure.code, Code::DataLoss);
    }
}
