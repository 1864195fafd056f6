//! The built-in clip `agent`: agents that any client of the hub can run.
//!
//! | command | input | output |
//! |---|---|---|
//! | `chat` | `{message, agent_id?, topic_id?, detach?}` | events, then `{"status":"done",…}` |
//! | `steer`, `follow_up` | `{topic_id, message}` | `{"status":"queued",…}` |
//! | `abort` | `{topic_id}` | `{"status":"aborted"}` or `{"status":"idle"}` |
//! | `state` | `{topic_id}` | the topic's status, its last run, its model and its message counts |
//!
//! and records: `topic …`, `agent …`, `event …`, `run …`, `sessions …`, `config get`. A topic is a session on disk. It
//! has an engine during a run; afterwards nothing of it stays in memory. An event sends a prompt to an agent at a
//! scheduled time. `chat` streams objects with a `type`: `start` (always first), `text`, `thinking`, `tool_call`,
//! `tool_result`, `usage`, `error`, `done`.

mod agents;
mod chat;
mod events;
mod feed;
mod fields;
mod manifest;
mod record_file;
mod records;
mod request;
mod runs;
mod session;
mod topics;
mod views;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use pinion_access::Principal;
use pinion_agent::{Answer, Command, Delivery};
use pinion_clip::logs::{Level, Origin};
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, Snapshot};
use pinion_hub::{Answers, Endpoint, Hub, HubCall, failed, with_whole_input};
use pinion_message::ThinkingLevel;
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

use self::agents::Agents;
use self::chat::{ask, blocking};
use self::events::Events;
use self::request::Request;
use self::runs::Runs;
pub use self::session::{SessionFactory, SessionRequest};
use self::topics::{Run, Status as RunStatus, Topic, Topics};

/// The agent clip's alias in the hub.
pub const ALIAS: &str = "agent";

/// The model of agents that have none of their own.
#[derive(Debug, Clone, Default)]
pub struct AgentDefaults {
    pub model: Option<String>,
    pub provider: Option<String>,
    pub thinking: Option<ThinkingLevel>,
}

/// Settings for the runs of all agents.
pub struct AgentOptions {
    pub defaults: AgentDefaults,
    /// The directory of agents and topics: the data directory of the clip.
    pub directory: PathBuf,
    /// The working directory of tools.
    pub cwd: PathBuf,
    pub sessions: Box<dyn SessionFactory>,
}

impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentOptions")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Creates the agent clip of `hub` and starts its clock. Must be called within a runtime.
pub fn agent_clip(hub: &Arc<Hub>, options: AgentOptions) -> Result<Arc<dyn Endpoint>, Failure> {
    let AgentOptions {
        defaults,
        directory,
        cwd,
        sessions,
    } = options;
    std::fs::create_dir_all(&directory)
        .map_err(|error| Failure::io(directory.display(), &error))?;
    let (events, left_out) = Events::open(&directory)?;
    let clip = Arc::new(AgentClip {
        alias: ALIAS.to_owned(),
        manifest: Arc::new(manifest::manifest(ALIAS)),
        agents: Agents::open(&directory)?,
        topics: Topics::open(&directory)?,
        events,
        runs: Runs::default(),
        hub: Arc::downgrade(hub),
        defaults,
        cwd,
        sessions,
    });
    for failure in left_out {
        clip.warn(&format!("an event is left out: {failure}"));
    }
    pinion_scheduler::run_clock(hub, &clip);
    Ok(clip)
}

struct AgentClip {
    alias: String,
    manifest: Arc<Manifest>,
    agents: Agents,
    topics: Topics,
    events: Events,
    runs: Runs,
    /// The hub whose clips are tools. Weak because the hub owns this clip.
    hub: Weak<Hub>,
    defaults: AgentDefaults,
    cwd: PathBuf,
    sessions: Box<dyn SessionFactory>,
}

impl std::fmt::Debug for AgentClip {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AgentClip").finish_non_exhaustive()
    }
}

impl Endpoint for AgentClip {
    fn checks_inputs(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::running(Arc::clone(&self.manifest))
    }

    fn accepts(&self, command: &str) -> bool {
        request::is_known(command)
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        if let Principal::Guest | Principal::Anonymous = call.caller {
            let message = "the agent works for those who show a token";
            let failure = Failure::new(Code::Unauthenticated, message);
            return failed(CallError::Answered(failure));
        }
        with_whole_input(self, call, Self::invoke_whole)
    }
}

impl AgentClip {
    /// Serves a call whose input is complete.
    fn invoke_whole(self: Arc<Self>, call: HubCall) -> Answers {
        match Request::read(&call.command, &call.input) {
            Err(failure) => failed(CallError::Answered(failure)),
            Ok(Request::Chat(chat)) => self.chat(call.caller, chat, call.deadline),
            Ok(request) => Box::pin(futures_util::stream::once(async move {
                let answer = self.answer(&call.caller, request).await;
                let answer = answer.map(|value| value.to_string().into());
                answer.map_err(CallError::Answered)
            })),
        }
    }

    /// Writes a warning to the hub's log, for failures that no caller receives.
    fn warn(&self, message: &str) {
        if let Some(hub) = self.hub.upgrade() {
            hub.log().push(Level::Warn, Origin::System, message);
        }
    }

    async fn answer(
        self: &Arc<Self>,
        caller: &Principal,
        request: Request,
    ) -> Result<Value, Failure> {
        match request {
            Request::Steer(said) => {
                let topic = self.topic(caller, &said.topic_id).await?;
                self.add_message(&topic, said, Delivery::Steer).await
            }
            Request::FollowUp(said) => {
                let topic = self.topic(caller, &said.topic_id).await?;
                self.add_message(&topic, said, Delivery::FollowUp).await
            }
            Request::Abort(id) => {
                let topic = self.topic(caller, &id).await?;
                let status = match self.runs.of(&topic.id) {
                    None => "idle",
                    Some(live) => {
                        live.stop().await?;
                        "aborted"
                    }
                };
                Ok(json!({"topic_id": topic.id, "status": status}))
            }
            Request::State(id) => {
                let topic = self.topic(caller, &id).await?;
                self.state(topic).await
            }
            Request::GetRun(id) => Ok(json!(self.run(caller, &id).await?)),
            Request::CancelRun(id) => {
                let run = self.run(caller, &id).await?;
                match self.runs.get(&run.id) {
                    None => Ok(json!(run)),
                    Some(live) => {
                        live.stop().await?;
                        Ok(json!(self.run(caller, &id).await?))
                    }
                }
            }
            Request::DeleteTopic(id) => {
                let topic = self.topic(caller, &id).await?;
                if let Some(live) = self.runs.of(&topic.id) {
                    live.stop().await?;
                }
                let clip = Arc::clone(self);
                blocking(move || {
                    clip.events
                        .forget(|event| event.topic_id.as_ref() == Some(&topic.id))?;
                    clip.topics.delete(&topic)?;
                    Ok(json!({"id": topic.id, "status": "deleted"}))
                })
                .await
            }
            other => {
                let (clip, caller) = (Arc::clone(self), caller.clone());
                blocking(move || clip.look_up(&caller, other)).await
            }
        }
    }

    async fn topic(self: &Arc<Self>, caller: &Principal, id: &str) -> Result<Topic, Failure> {
        let (clip, caller, id) = (Arc::clone(self), caller.clone(), id.to_owned());
        blocking(move || {
            clip.topics
                .get(&caller, &id)
                .map(|topic| clip.with_live_status(topic))
        })
        .await
    }

    /// Marks a run as failed if it is recorded as running but is not in memory: it ended with an earlier hub process.
    fn with_live_status(&self, mut topic: Topic) -> Topic {
        let live = self.runs.of(&topic.id);
        if let Some(run) = &mut topic.run
            && run.status == RunStatus::Running
            && live.is_none_or(|live| live.run.id != run.id)
        {
            run.status = RunStatus::Error;
            run.error = Some("the hub ended before the run did".into());
        }
        topic
    }

    /// Returns the run of this id, or the last run of the topic of this id.
    async fn run(self: &Arc<Self>, caller: &Principal, id: &str) -> Result<Run, Failure> {
        let (clip, caller, id) = (Arc::clone(self), caller.clone(), id.to_owned());
        blocking(move || {
            let topics = clip.topics.all(&caller)?.into_iter();
            let runs = topics.filter_map(|topic| clip.with_live_status(topic).run);
            let mut runs = runs.filter(|run| run.id == id || run.topic_id == id);
            let message = format!("there is no run \"{id}\"; of every topic the last one is known");
            runs.next()
                .ok_or_else(|| Failure::new(Code::NotFound, message))
        })
        .await
    }

    async fn state(self: &Arc<Self>, topic: Topic) -> Result<Value, Failure> {
        let live = self.runs.of(&topic.id);
        let engine = live.as_ref().and_then(|live| live.session.borrow().clone());
        let mut state = json!({
            "topic_id": topic.id,
            "agent_id": topic.agent_id,
            "title": topic.title,
            "status": if live.is_some() { "running" } else { "idle" },
            "run": topic.run,
        });
        if let Some(engine) = engine
            && let Ok(Answer::State(view)) = ask(&engine, Command::GetState).await
        {
            let model = view.model.as_ref();
            state["model"] = json!(model.map(|model| format!("{}/{}", model.provider, model.id)));
            state["thinking"] = json!(view.thinking_level);
            state["message_count"] = view.message_count.into();
            state["pending_message_count"] = view.pending_message_count.into();
            return Ok(state);
        }
        let clip = Arc::clone(self);
        blocking(move || {
            let store = clip.topics.look(&topic)?;
            let choices = store.as_ref().map(|store| store.choices());
            let model = choices.as_ref().and_then(|choices| choices.model.clone());
            let model = model.map(|(provider, id)| format!("{provider}/{id}"));
            state["model"] = json!(model);
            state["thinking"] = json!(choices.and_then(|choices| choices.thinking_level));
            let count = store.map_or(0, |store| store.context().messages.len());
            state["message_count"] = count.into();
            state["pending_message_count"] = 0.into();
            Ok(state)
        })
        .await
    }
}
