//! The built-in clip `agent`: agents that any client of the hub can run.
//!
//! | command | input | output |
//! |---|---|---|
//! | `chat` | `{message, agent_id?, topic_id?, detach?}` | events, then `{"status":"done",…}` |
//! | `steer`, `follow_up` | `{topic_id, message}` | `{"status":"queued",…}` |
//! | `abort` | `{topic_id}` | `{"status":"aborted"}` or `{"status":"idle"}` |
//! | `state` | `{topic_id}` | how it stands |
//!
//! and records: `topic …`, `agent …`, `run …`, `sessions …`, `config get`. A topic is a session on disk. While something is
//! said in it, it has an engine; afterwards nothing of it stays in memory. Events are objects with a `type`: `start` (ours, first),
//! `text`, `thinking`, `tool_call`, `tool_result`, `usage`, `error`, `done`.

mod agents;
mod build;
mod chat;
mod feed;
mod keep;
mod manifest;
mod request;
mod runs;
mod topics;
mod views;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use pinion_access::Principal;
use pinion_agent::{Answer, Command, Delivery};
use pinion_clip::logs::{Level, Origin};
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, Snapshot};
use pinion_config::Dirs;
use pinion_hub::{Answers, Call, Endpoint, Hub, failed};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

use self::agents::Agents;
use self::chat::{ask, blocking};
use self::request::Request;
use self::runs::Runs;
use self::topics::{Run, Status as RunStatus, Topic, Topics, title_of};
use crate::cli::Flags;
use crate::engine::Shared;
use crate::program::Program;

/// The alias the agent goes by.
pub(crate) const ALIAS: &str = "agent";

/// What agents are run with.
pub(crate) struct AgentOptions {
    /// Model, provider, approvals, thinking: what holds unless an agent says otherwise.
    pub flags: Flags,
    /// Where agents and topics are kept: the data directory of the clip.
    pub directory: PathBuf,
    /// Where tools work; the directory the program was started in unless said.
    pub cwd: Option<PathBuf>,
}

/// The agent as a clip of `hub`.
pub(crate) fn agent_clip(
    hub: &Arc<Hub>,
    options: AgentOptions,
) -> Result<Arc<dyn Endpoint>, Failure> {
    let AgentOptions {
        flags,
        directory,
        cwd,
    } = options;
    std::fs::create_dir_all(&directory)
        .map_err(|error| Failure::io(directory.display(), &error))?;
    let here = Dirs::from_env().map_err(|error| Failure::io("the working directory", &error))?;
    let dirs = match cwd {
        None => here,
        Some(cwd) => here.at(std::path::absolute(&cwd).unwrap_or(cwd)),
    };
    Ok(Arc::new(AgentClip {
        alias: ALIAS.to_owned(),
        manifest: Arc::new(manifest::manifest(ALIAS)),
        agents: Agents::open(&directory)?,
        topics: Topics::open(&directory)?,
        runs: Runs::default(),
        shared: Shared::new(&dirs),
        hub: Arc::downgrade(hub),
        program: Program::Pinion,
        flags,
        dirs,
    }))
}

/// The agent.
struct AgentClip {
    alias: String,
    manifest: Arc<Manifest>,
    agents: Agents,
    topics: Topics,
    runs: Runs,
    /// What all engines have in common.
    shared: Shared,
    /// Whose clips are tools; it owns us.
    hub: Weak<Hub>,
    program: Program,
    flags: Flags,
    dirs: Dirs,
}

impl std::fmt::Debug for AgentClip {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AgentClip").finish_non_exhaustive()
    }
}

impl Endpoint for AgentClip {
    fn snapshot(&self) -> Snapshot {
        Snapshot::running(Arc::clone(&self.manifest))
    }

    fn accepts(&self, command: &str) -> bool {
        request::is_known(command)
    }

    fn invoke(self: Arc<Self>, call: Call) -> Answers {
        let refused = |failure| failed(CallError::Answered(failure));
        if let Principal::Guest | Principal::Anonymous = call.caller {
            let message = "the agent works for those who show a token";
            return refused(Failure::new(Code::Unauthenticated, message));
        }
        match Request::read(&call.command, &call.input) {
            Err(failure) => refused(failure),
            Ok(Request::Chat(chat)) => self.chat(call.caller, chat, call.deadline),
            Ok(request) => Box::pin(futures_util::stream::once(async move {
                let answer = self.answer(&call.caller, request).await;
                let answer = answer.map(|value| value.to_string().into());
                answer.map_err(CallError::Answered)
            })),
        }
    }
}

impl AgentClip {
    /// Says in the log of the hub what nobody else is told.
    fn complain(&self, message: &str) {
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
                self.say_into(&topic, said, Delivery::Steer).await
            }
            Request::FollowUp(said) => {
                let topic = self.topic(caller, &said.topic_id).await?;
                self.say_into(&topic, said, Delivery::FollowUp).await
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
                .map(|topic| clip.true_to_life(topic))
        })
        .await
    }

    /// A run that nobody knows of any more ended with the hub it was in.
    fn true_to_life(&self, mut topic: Topic) -> Topic {
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

    /// The run of this id, or the last one of the topic of this id.
    async fn run(self: &Arc<Self>, caller: &Principal, id: &str) -> Result<Run, Failure> {
        let (clip, caller, id) = (Arc::clone(self), caller.clone(), id.to_owned());
        blocking(move || {
            let topics = clip.topics.all(&caller)?.into_iter();
            let runs = topics.filter_map(|topic| clip.true_to_life(topic).run);
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

    /// Everything that only looks at files, or changes them.
    fn look_up(&self, caller: &Principal, request: Request) -> Result<Value, Failure> {
        let owner = || match caller {
            Principal::Super => Ok(()),
            _ => Err(Failure::new(
                Code::PermissionDenied,
                "agents hold keys: only who owns the hub may change them",
            )),
        };
        let topics = |caller| -> Result<Vec<Topic>, Failure> {
            let all = self.topics.all(caller)?.into_iter();
            Ok(all.map(|topic| self.true_to_life(topic)).collect())
        };
        Ok(match request {
            Request::ListTopics => json!({"topics": topics(caller)?}),
            Request::GetTopic { id, limit } => {
                let topic = self.true_to_life(self.topics.get(caller, &id)?);
                let (messages, total) = match self.topics.look(&topic)? {
                    None => Default::default(),
                    Some(store) => views::messages(&topic.id, &store, limit),
                };
                let mut shown = json!(topic);
                shown["messages"] = messages.into();
                shown["message_count"] = total.into();
                shown
            }
            Request::CreateTopic(wishes) => {
                let agent = self.agents.get(wishes.agent_id.as_deref())?;
                json!(
                    self.topics
                        .create(caller, &agent.id, wishes.title.as_deref())?
                )
            }
            Request::UpdateTopic { id, title } => {
                let named = |topic: &mut Topic| topic.title = title_of(&title);
                let topic = self.topics.change(caller, &id, named)?;
                json!(self.true_to_life(topic))
            }
            Request::SearchTopics(query) => {
                let wanted = query.to_lowercase();
                let found = topics(caller)?.into_iter().filter(|topic| {
                    let said = || {
                        let file = self.topics.session(topic)?;
                        pinion_session::all_text(&file).ok()
                    };
                    topic.title.to_lowercase().contains(&wanted)
                        || said().is_some_and(|said| said.to_lowercase().contains(&wanted))
                });
                json!({"topics": found.collect::<Vec<_>>()})
            }
            Request::ListSessions => {
                let mut infos = self.topics.contents();
                let known = topics(caller)?;
                infos.retain(|info| known.iter().any(|topic| topic.id == info.id));
                let shown = infos.iter().map(|info| {
                    let topic = known.iter().find(|topic| topic.id == info.id);
                    json!({
                        "topic_id": info.id,
                        "title": topic.map(|topic| &topic.title),
                        "created_at": keep::time(info.created),
                        "updated_at": keep::time(info.modified),
                        "message_count": info.message_count,
                        "first_message": info.first_message,
                    })
                });
                json!({"sessions": shown.collect::<Vec<_>>()})
            }
            Request::GetSession(id) => {
                let topic = self.topics.get(caller, &id)?;
                match self.topics.look(&topic)? {
                    None => json!({"topic_id": id, "entries": []}),
                    Some(store) => {
                        let mut shown = views::entries(&store);
                        shown["topic_id"] = id.into();
                        shown
                    }
                }
            }
            Request::ListAgents => {
                let agents = self.agents.all();
                json!({"agents": agents.iter().map(|agent| agent.shown()).collect::<Vec<_>>()})
            }
            Request::GetAgent(id) => self.agents.get(Some(&id))?.shown(),
            Request::CreateAgent(wishes) => {
                owner()?;
                self.agents.create(*wishes)?.shown()
            }
            Request::UpdateAgent(id, wishes) => {
                owner()?;
                self.agents.update(&id, *wishes)?.shown()
            }
            Request::DeleteAgent(id) => {
                owner()?;
                self.agents.delete(&id)?;
                json!({"id": id, "status": "deleted"})
            }
            Request::GetConfig => json!({
                "model": self.flags.model,
                "provider": self.flags.provider,
                "thinking": self.flags.thinking,
                "cwd": (*caller == Principal::Super).then_some(&self.dirs.cwd),
                "max_runs": runs::MOST,
                "max_tools": crate::clip_tools::MOST_TOOLS,
                "version": env!("CARGO_PKG_VERSION"),
            }),
            Request::Help => json!({"commands": self.manifest.commands}),
            other => {
                let message = format!("{other:?} is not answered here");
                return Err(Failure::new(Code::Internal, message));
            }
        })
    }
}
