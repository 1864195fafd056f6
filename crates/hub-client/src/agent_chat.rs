//! Conversations with the agent of a hub.

use pinion_connect::Receiver;
use pinion_proto::hub::{InvokeRequest, InvokeResponse};
use pinion_status::Failure;
use pinion_text::harmless;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{HubClient, hub_error};

/// The alias of the clip.
const AGENT: &str = "agent";

/// A conversation with an agent. Messages after the first continue its topic.
#[derive(Debug)]
pub struct AgentChat {
    client: HubClient,
    agent: Option<String>,
    topic: Option<String>,
}

/// The answer to one message.
#[derive(Debug)]
pub struct ChatAnswer<'a> {
    chat: &'a mut AgentChat,
    receiver: Receiver<InvokeResponse>,
}

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum ChatEvent {
    /// The next piece of the text; never empty.
    Text(String),
    /// The agent calls the tool of this name.
    ToolCall(String),
}

/// Formats the parts of an answer for a user. Tool calls appear on lines of their own on a terminal, elsewhere not.
#[derive(Debug)]
pub struct ChatText {
    is_terminal: bool,
    line_is_open: bool,
}

impl ChatText {
    pub fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            line_is_open: false,
        }
    }

    /// Returns the text of the next part; empty if nothing of it is shown.
    pub fn next(&mut self, event: ChatEvent) -> String {
        match event {
            ChatEvent::Text(text) => {
                self.line_is_open = !text.ends_with('\n');
                if self.is_terminal {
                    // Text of an agent must not control the terminal.
                    harmless(&text)
                } else {
                    text
                }
            }
            ChatEvent::ToolCall(name) if self.is_terminal => {
                let start = self.end();
                format!("{start}[{}]\n", harmless(&name))
            }
            ChatEvent::ToolCall(_) => String::new(),
        }
    }

    /// Returns the end of an unfinished line.
    pub fn end(&mut self) -> &'static str {
        let was_open = std::mem::take(&mut self.line_is_open);
        if was_open { "\n" } else { "" }
    }
}

/// The members of an agent's event that a conversation needs.
#[derive(Deserialize)]
struct AgentEvent {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    topic_id: Option<String>,
}

impl AgentChat {
    /// Creates a conversation with `agent` or the hub's default agent, in `topic` or a new one.
    pub fn new(client: HubClient, agent: Option<String>, topic: Option<String>) -> Self {
        Self {
            client,
            agent,
            topic,
        }
    }

    /// Reports whether there is a topic: one was given, or the agent has begun to answer.
    pub fn has_topic(&self) -> bool {
        self.topic.is_some()
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &str) -> Result<ChatAnswer<'_>, Failure> {
        let members = [
            ("agent_id", self.agent.as_deref()),
            ("topic_id", self.topic.as_deref()),
            ("message", Some(message)),
        ];
        let members = members.into_iter();
        let input: Map<String, Value> = members
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect();
        let request = InvokeRequest {
            clip_name: AGENT.to_owned().into(),
            command: "chat".to_owned().into(),
            input: Value::Object(input).to_string().into(),
            ..InvokeRequest::default()
        };
        let receiver = self.client.stream("Invoke", &request).await;
        let receiver = receiver.map_err(|failure| self.client.explain(failure))?;
        Ok(ChatAnswer {
            chat: self,
            receiver,
        })
    }
}

impl ChatAnswer<'_> {
    /// Returns the next event; `None` at the end of the answer.
    pub async fn next(&mut self) -> Result<Option<ChatEvent>, Failure> {
        loop {
            let response = self.receiver.next().await;
            let response = response.map_err(|failure| self.chat.client.explain(failure))?;
            let Some(response) = response else {
                return Ok(None);
            };
            if let Some(error) = &response.error {
                return Err(self.chat.client.explain(hub_error(error)));
            }
            let Ok(event) = serde_json::from_slice::<AgentEvent>(&response.output) else {
                continue;
            };
            if event.topic_id.is_some() {
                self.chat.topic = event.topic_id;
            }
            match event.kind.as_str() {
                "text" if !event.content.is_empty() => {
                    return Ok(Some(ChatEvent::Text(event.content)));
                }
                "tool_call" => return Ok(Some(ChatEvent::ToolCall(event.name))),
                _ => {}
            }
        }
    }
}
