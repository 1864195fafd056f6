//! Requests to the agent, in the older and the newer spelling: `topic get {"id":…}`, `/topics/<id> get`.

use pinion_clip::manifest::canonical_command;
use pinion_jsonl::{explain, explain_with_position};
use pinion_status::{Code, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::fields::{AgentFields, EventFields, TopicFields};

/// The longest id of a topic or an agent, in bytes.
const LONGEST_ID: usize = 64;
/// The longest message, in bytes.
const LONGEST_MESSAGE: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) enum Request {
    Chat(Chat),
    Steer(AddedMessage),
    FollowUp(AddedMessage),
    Abort(String),
    State(String),
    ListSessions,
    GetSession(String),
    ListTopics,
    GetTopic { id: String, limit: usize },
    CreateTopic(TopicFields),
    UpdateTopic { id: String, title: String },
    DeleteTopic(String),
    SearchTopics(String),
    ListAgents,
    GetAgent(String),
    CreateAgent(Box<AgentFields>),
    UpdateAgent(String, Box<AgentFields>),
    DeleteAgent(String),
    ListEvents { agent_id: Option<String> },
    GetEvent(String),
    CreateEvent(Box<EventFields>),
    UpdateEvent(String, Box<EventFields>),
    CancelEvent(String),
    GetRun(String),
    CancelRun(String),
    GetConfig,
    Help,
}

/// The input of `chat`.
#[derive(Debug, Deserialize)]
pub(super) struct Chat {
    pub agent_id: Option<String>,
    pub topic_id: Option<String>,
    pub message: String,
    #[serde(default)]
    pub detach: bool,
}

/// The input of `steer` and `follow_up`.
#[derive(Debug, Deserialize)]
pub(super) struct AddedMessage {
    pub topic_id: String,
    pub message: String,
}

/// A command without its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Chat,
    Steer,
    FollowUp,
    Abort,
    State,
    ListSessions,
    GetSession,
    ListTopics,
    GetTopic,
    CreateTopic,
    UpdateTopic,
    DeleteTopic,
    SearchTopics,
    ListAgents,
    GetAgent,
    CreateAgent,
    UpdateAgent,
    DeleteAgent,
    ListEvents,
    GetEvent,
    CreateEvent,
    UpdateEvent,
    CancelEvent,
    GetRun,
    CancelRun,
    GetConfig,
    Help,
}

fn verb(command: &str) -> Option<(Verb, Option<String>)> {
    let command = canonical_command(command);
    let words: Vec<&str> = command.split(' ').collect();
    let plain = |verb| Some((verb, None));
    let of = |verb, id: &str| Some((verb, Some(id.to_owned())));
    match words[..] {
        ["chat"] => plain(Verb::Chat),
        ["steer"] => plain(Verb::Steer),
        ["follow_up" | "follow-up"] => plain(Verb::FollowUp),
        ["abort"] => plain(Verb::Abort),
        ["state"] => plain(Verb::State),
        ["sessions"] | ["sessions", "list"] => plain(Verb::ListSessions),
        ["sessions", "get"] => plain(Verb::GetSession),
        ["sessions", id, "get"] => of(Verb::GetSession, id),
        ["topic" | "topics", "list"] => plain(Verb::ListTopics),
        ["topic" | "topics", "create"] => plain(Verb::CreateTopic),
        ["topic" | "topics", "search"] => plain(Verb::SearchTopics),
        ["topic", "get"] => plain(Verb::GetTopic),
        ["topic", "rename" | "update"] => plain(Verb::UpdateTopic),
        ["topic", "delete"] => plain(Verb::DeleteTopic),
        ["topics", id, "get"] => of(Verb::GetTopic, id),
        ["topics", id, "update" | "rename"] => of(Verb::UpdateTopic, id),
        ["topics", id, "delete"] => of(Verb::DeleteTopic, id),
        ["agent" | "agents", "list"] => plain(Verb::ListAgents),
        ["agent" | "agents", "create"] => plain(Verb::CreateAgent),
        ["agent", "get"] => plain(Verb::GetAgent),
        ["agent", "update"] => plain(Verb::UpdateAgent),
        ["agent", "delete"] => plain(Verb::DeleteAgent),
        ["agents", id, "get"] => of(Verb::GetAgent, id),
        ["agents", id, "update"] => of(Verb::UpdateAgent, id),
        ["agents", id, "delete"] => of(Verb::DeleteAgent, id),
        ["event" | "events", "list"] => plain(Verb::ListEvents),
        ["event" | "events", "create"] => plain(Verb::CreateEvent),
        ["event", "get"] => plain(Verb::GetEvent),
        ["event", "update"] => plain(Verb::UpdateEvent),
        ["event", "cancel"] | ["cancel-event"] => plain(Verb::CancelEvent),
        ["events", id, "get"] => of(Verb::GetEvent, id),
        ["events", id, "update"] => of(Verb::UpdateEvent, id),
        ["events", id, "cancel"] => of(Verb::CancelEvent, id),
        ["run", "get"] | ["get-run"] => plain(Verb::GetRun),
        ["run", "cancel"] | ["cancel-run"] => plain(Verb::CancelRun),
        ["config", "get"] => plain(Verb::GetConfig),
        ["help" | "--help"] => plain(Verb::Help),
        _ => None,
    }
}

/// Reports whether the agent supports this command, in either spelling.
pub(super) fn is_known(command: &str) -> bool {
    verb(command).is_some()
}

impl Request {
    /// Parses a request. Ignores unknown members of the input.
    pub fn read(command: &str, input: &[u8]) -> Result<Self, Failure> {
        let Some((verb, named)) = verb(command) else {
            let message = format!("the agent does not support command \"{command}\"");
            return Err(Failure::new(Code::NotFound, message));
        };
        let members = members(input)?;
        let id = |names: &[&str]| -> Result<String, Failure> {
            let given = names.iter().find_map(|name| members.get(*name)?.as_str());
            let id = named.as_deref().or(given).map(str::trim);
            checked(
                id.filter(|id| !id.is_empty())
                    .ok_or_else(|| missing(names[0]))?,
            )
        };
        let text = |name: &str| -> Result<String, Failure> {
            let text = members.get(name).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| missing(name))
        };
        const TOPIC: [&str; 2] = ["topic_id", "id"];
        const ITSELF: [&str; 2] = ["id", "topic_id"];
        const AGENT: [&str; 2] = ["id", "agent_id"];
        const EVENT: [&str; 2] = ["id", "event_id"];
        const RUN: [&str; 2] = ["id", "run_id"];
        Ok(match verb {
            Verb::Chat => Self::Chat(chat(&members)?),
            Verb::Steer => Self::Steer(said(&members)?),
            Verb::FollowUp => Self::FollowUp(said(&members)?),
            Verb::Abort => Self::Abort(id(&TOPIC)?),
            Verb::State => Self::State(id(&TOPIC)?),
            Verb::ListSessions => Self::ListSessions,
            Verb::GetSession => Self::GetSession(id(&TOPIC)?),
            Verb::ListTopics => Self::ListTopics,
            Verb::GetTopic => Self::GetTopic {
                id: id(&ITSELF)?,
                limit: limit(&members)?,
            },
            Verb::CreateTopic => Self::CreateTopic(parsed(&members)?),
            Verb::UpdateTopic => Self::UpdateTopic {
                id: id(&ITSELF)?,
                title: text("title")?,
            },
            Verb::DeleteTopic => Self::DeleteTopic(id(&ITSELF)?),
            Verb::SearchTopics => Self::SearchTopics(text("query").or_else(|_| text("q"))?),
            Verb::ListAgents => Self::ListAgents,
            Verb::GetAgent => Self::GetAgent(id(&AGENT)?),
            Verb::CreateAgent => Self::CreateAgent(Box::new(parsed(&members)?)),
            Verb::UpdateAgent => Self::UpdateAgent(id(&AGENT)?, Box::new(parsed(&members)?)),
            Verb::DeleteAgent => Self::DeleteAgent(id(&AGENT)?),
            Verb::ListEvents => Self::ListEvents {
                agent_id: text("agent_id").ok(),
            },
            Verb::GetEvent => Self::GetEvent(id(&EVENT)?),
            Verb::CreateEvent => Self::CreateEvent(Box::new(parsed(&members)?)),
            Verb::UpdateEvent => Self::UpdateEvent(id(&EVENT)?, Box::new(parsed(&members)?)),
            Verb::CancelEvent => Self::CancelEvent(id(&EVENT)?),
            Verb::GetRun => Self::GetRun(id(&RUN)?),
            Verb::CancelRun => Self::CancelRun(id(&RUN)?),
            Verb::GetConfig => Self::GetConfig,
            Verb::Help => Self::Help,
        })
    }
}

fn members(input: &[u8]) -> Result<Map<String, Value>, Failure> {
    if input.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(input) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(Failure::invalid("the input must be an object")),
        Err(error) => Err(Failure::invalid(format!(
            "the input is not JSON: {}",
            explain_with_position(&error)
        ))),
    }
}

fn parsed<T: DeserializeOwned>(members: &Map<String, Value>) -> Result<T, Failure> {
    T::deserialize(members)
        .map_err(|error| Failure::invalid(format!("the input: {}", explain(&error))))
}

fn chat(members: &Map<String, Value>) -> Result<Chat, Failure> {
    let mut chat: Chat = parsed(members)?;
    for id in [&mut chat.topic_id, &mut chat.agent_id] {
        // An empty field of a form means that no id is given.
        *id = id.take().filter(|id| !id.trim().is_empty());
        if let Some(id) = id {
            *id = checked(id.trim())?;
        }
    }
    check_prompt(&chat.message)?;
    Ok(chat)
}

fn said(members: &Map<String, Value>) -> Result<AddedMessage, Failure> {
    let mut said: AddedMessage = parsed(members)?;
    said.topic_id = checked(said.topic_id.trim())?;
    check_prompt(&said.message)?;
    Ok(said)
}

fn check_prompt(message: &str) -> Result<(), Failure> {
    if message.trim().is_empty() {
        return Err(missing("message"));
    }
    if message.len() > LONGEST_MESSAGE {
        return Err(Failure::invalid("the message is longer than 8 MiB"));
    }
    Ok(())
}

fn limit(members: &Map<String, Value>) -> Result<usize, Failure> {
    match members.get("limit") {
        None | Some(Value::Null) => Ok(200),
        Some(limit) => {
            let limit = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
            limit.ok_or_else(|| Failure::invalid("limit must be a number, 0 or more"))
        }
    }
}

/// Returns the id if it is valid. Ids are also names of files, so only letters, digits, `-` and `_` are allowed.
pub(super) fn checked(id: &str) -> Result<String, Failure> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(fits) {
        return Err(Failure::invalid(format!(
            "{id:?} is no id: letters, digits, - and _, at most {LONGEST_ID} of them"
        )));
    }
    Ok(id.to_owned())
}

fn missing(name: &str) -> Failure {
    Failure::invalid(format!("{name} is required"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_mean_the_same() {
        for (command, verb_and_id) in [
            ("topic list", (Verb::ListTopics, None)),
            ("/topics list", (Verb::ListTopics, None)),
            ("/topics/abc get", (Verb::GetTopic, Some("abc"))),
            ("/topics/abc update", (Verb::UpdateTopic, Some("abc"))),
            ("topic rename", (Verb::UpdateTopic, None)),
            ("/agents create", (Verb::CreateAgent, None)),
            ("/agents/x-1 delete", (Verb::DeleteAgent, Some("x-1"))),
            ("agent/list", (Verb::ListAgents, None)),
            ("get-run", (Verb::GetRun, None)),
            ("run cancel", (Verb::CancelRun, None)),
            ("--help", (Verb::Help, None)),
            ("/events list", (Verb::ListEvents, None)),
            ("event create", (Verb::CreateEvent, None)),
            ("/events/e-1 get", (Verb::GetEvent, Some("e-1"))),
            ("/events/e-1 update", (Verb::UpdateEvent, Some("e-1"))),
            ("event cancel", (Verb::CancelEvent, None)),
            ("cancel-event", (Verb::CancelEvent, None)),
            ("sessions", (Verb::ListSessions, None)),
        ] {
            let (wanted, id) = verb_and_id;
            assert_eq!(
                verb(command),
                Some((wanted, id.map(str::to_owned))),
                "{command}"
            );
        }
        for unknown in [
            "",
            "/",
            "topic",
            "topics abc",
            "agents x y z",
            "format disk",
        ] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn every_command_of_the_manifest_is_known() {
        for command in &super::super::manifest::manifest("agent").commands {
            assert!(is_known(&command.name), "{}", command.name);
            let schema: Value = serde_json::from_str(&command.input).unwrap();
            assert_eq!(schema["type"], "object", "{}", command.name);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (command, input, words) in [
            ("chat", "{}", "\"message\" is missing"),
            ("chat", r#"{"message":"  "}"#, "message is required"),
            (
                "chat",
                r#"{"message":"x","topic_id":"../../etc"}"#,
                "is no id",
            ),
            ("chat", "[]", "must be an object"),
            ("chat", "{", "is not JSON"),
            ("topic get", "{}", "id is required"),
            ("topic get", r#"{"id":"a","limit":-1}"#, "limit must be"),
            ("/topics/a.b get", "{}", "is no id"),
            ("steer", r#"{"message":"x"}"#, "topic_id"),
            (
                "agent create",
                r#"{"thinking":"hard"}"#,
                "unknown value \"hard\"",
            ),
            (
                "event create",
                r#"{"type":"weekly"}"#,
                "use one of once, daily",
            ),
            ("cancel-event", "{}", "id is required"),
        ] {
            let failure = Request::read(command, input.as_bytes()).unwrap_err();
            assert!(
                failure.message.contains(words),
                "{command} {input}: {failure}"
            );
        }
        let request = Request::read("chat", br#"{"message":"x","topic_id":"","later":1}"#).unwrap();
        assert!(matches!(
            request,
            Request::Chat(Chat { topic_id: None, .. })
        ));
    }
}
