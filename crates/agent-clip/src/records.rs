//! Requests that read or change topics, agents, events and sessions.

use pinion_access::Principal;
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

use super::request::Request;
use super::topics::{Topic, title_of};
use super::{AgentClip, record_file, runs, views};

impl AgentClip {
    /// Answers a request that only reads or changes files. Blocks.
    pub(super) fn look_up(&self, caller: &Principal, request: Request) -> Result<Value, Failure> {
        let owner = || match caller {
            Principal::Super => Ok(()),
            _ => Err(Failure::new(
                Code::PermissionDenied,
                "agents hold keys: only who owns the hub may change them",
            )),
        };
        let topics = |caller| -> Result<Vec<Topic>, Failure> {
            let all = self.topics.all(caller)?.into_iter();
            Ok(all.map(|topic| self.with_live_status(topic)).collect())
        };
        Ok(match request {
            Request::ListTopics => json!({"topics": topics(caller)?}),
            Request::GetTopic { id, limit } => {
                let topic = self.with_live_status(self.topics.get(caller, &id)?);
                let (messages, total) = match self.topics.look(&topic)? {
                    None => Default::default(),
                    Some(store) => views::messages(&topic.id, &store, limit),
                };
                let mut shown = json!(topic);
                shown["messages"] = messages.into();
                shown["message_count"] = total.into();
                shown
            }
            Request::CreateTopic(fields) => {
                let agent = self.agents.get(fields.agent_id.as_deref())?;
                json!(
                    self.topics
                        .create(caller, &agent.id, fields.title.as_deref())?
                )
            }
            Request::UpdateTopic { id, title } => {
                let named = |topic: &mut Topic| topic.title = title_of(&title);
                let topic = self.topics.change(caller, &id, named)?;
                json!(self.with_live_status(topic))
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
                        "created_at": record_file::time(info.created),
                        "updated_at": record_file::time(info.modified),
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
            Request::CreateAgent(fields) => {
                owner()?;
                self.agents.create(*fields)?.shown()
            }
            Request::UpdateAgent(id, fields) => {
                owner()?;
                self.agents.update(&id, *fields)?.shown()
            }
            Request::DeleteAgent(id) => {
                owner()?;
                self.agents.delete(&id)?;
                self.events.forget(|event| event.agent_id == id)?;
                json!({"id": id, "status": "deleted"})
            }
            Request::ListEvents { agent_id } => {
                let mut events = self.events.all(caller);
                events.retain(|event| agent_id.as_ref().is_none_or(|id| *id == event.agent_id));
                json!({"events": events})
            }
            Request::GetEvent(id) => json!(self.events.get(caller, &id)?),
            Request::CreateEvent(fields) => json!(self.create_event(caller, *fields)?),
            Request::UpdateEvent(id, fields) => json!(self.update_event(caller, &id, *fields)?),
            Request::CancelEvent(id) => json!(self.cancel_event(caller, &id)?),
            Request::GetConfig => json!({
                "model": self.defaults.model,
                "provider": self.defaults.provider,
                "thinking": self.defaults.thinking,
                "cwd": (*caller == Principal::Super).then_some(&self.cwd),
                "max_runs": runs::MAX_RUNS,
                "max_tools": pinion_clip_tools::MAX_CLIP_TOOLS,
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
