//! Child sessions that extensions start in the program, for `createAgentSession`.
//!
//! A script starts a child, fetches its events in batches, answers the questions among them, and closes it. The engine
//! limits a child to what the session itself may do; see [`pinion_agent::ChildSpec`].

mod hooks;
mod outbox;
mod tool;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pinion_agent::{
    Answer, ChildSpec, Command, Delivery, EngineError, Handle, Origin, Prompt, Reply, SessionApi,
};
use pinion_message::{Message, ThinkingLevel};
use pinion_tools::Tool;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::actions::error_message;
use super::bridge::{text, value};
use super::extensions::Inner;
use super::payload;
use hooks::ChildHooks;
use outbox::Outbox;
use tool::ChildTool;

/// The children of all instances, by number.
#[derive(Default)]
pub(super) struct Children {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Child>>>,
}

/// A child session. Dropping it stops the session.
pub(super) struct Child {
    generation: u64,
    handle: Handle,
    outbox: Arc<Outbox>,
    desk: Arc<OnceLock<SessionApi>>,
}

impl Drop for Child {
    fn drop(&mut self) {
        self.outbox.close();
        self.handle.stopper().stop();
    }
}

/// A script's description of a child.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    provider: Option<String>,
    model: Option<String>,
    level: Option<ThinkingLevel>,
    cwd: Option<PathBuf>,
    tools: Vec<String>,
    active_tools: Vec<String>,
    custom_tools: Vec<Value>,
    system_prompt: Option<String>,
    messages: Vec<Value>,
    auto_compaction: bool,
    auto_retry: bool,
    /// The questions that handlers of the child answer.
    asks: Vec<String>,
}

impl Children {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Child>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, arguments: &[Value]) -> Result<Arc<Child>, String> {
        let number = value(arguments, 0).as_u64().unwrap_or_default();
        let found = self.open().get(&number).cloned();
        found.ok_or_else(|| "The session is disposed".to_owned())
    }

    /// Ends the children of an instance.
    pub fn close_generation(&self, generation: u64) {
        let ended: Vec<_> = self
            .open()
            .extract_if(|_, child| child.generation == generation)
            .collect();
        drop(ended);
    }
}

impl Child {
    async fn ask(&self, command: Command) -> Result<Answer, String> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.handle.send(command, reply).await;
        let answer = answer.await.unwrap_or(Err(EngineError::Dropped));
        answer.map_err(error_message)
    }
}

impl Inner {
    /// Answers a request about a child immediately.
    pub(super) fn child_now(
        &self,
        method: &str,
        arguments: &[Value],
    ) -> Result<Option<Value>, String> {
        if method == "child.close" {
            let number = value(arguments, 0).as_u64().unwrap_or_default();
            let closed = self.children.open().remove(&number);
            drop(closed);
            return Ok(None);
        }
        let child = self.children.get(arguments)?;
        let question = value(arguments, 1).as_u64().unwrap_or_default();
        match method {
            "child.reply" => child.outbox.reply(question, value(arguments, 2).clone()),
            "child.update" => child
                .outbox
                .update(question, payload::output_from(value(arguments, 2))),
            "child.activeTools" => {
                return Ok(child.desk.get().map(|desk| json!(desk.active_tools())));
            }
            "child.allTools" => {
                let tools = child.desk.get().map(SessionApi::tools).unwrap_or_default();
                let tools: Vec<_> = tools.iter().map(super::actions::tool_summary).collect();
                return Ok(Some(tools.into()));
            }
            "child.systemPrompt" => {
                let prompt = child.desk.get().and_then(SessionApi::system_prompt);
                return Ok(prompt.map(|prompt| json!(&*prompt)));
            }
            "child.messages" => {
                let messages = child.desk.get().map(SessionApi::messages);
                let messages = messages.unwrap_or_default();
                let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
                return Ok(Some(json!(messages)));
            }
            "child.contextUsage" => {
                let usage = child.desk.get().and_then(SessionApi::context_usage);
                return Ok(usage.map(|usage| json!(usage)));
            }
            "child.setActiveTools" => {
                let names: Vec<String> =
                    serde_json::from_value(value(arguments, 1).clone()).unwrap_or_default();
                if let Some(desk) = child.desk.get() {
                    desk.set_active_tools(&names).map_err(error_message)?;
                }
            }
            "child.setLevel" => {
                let level = serde_json::from_value(value(arguments, 1).clone());
                if let Some(desk) = child.desk.get() {
                    desk.set_thinking_level(level.unwrap_or(ThinkingLevel::Off))
                        .map_err(error_message)?;
                }
            }
            _ => return Err(format!("Unknown request: {method}")),
        }
        Ok(None)
    }

    /// Answers a request about a child asynchronously.
    pub(super) async fn child_later(
        self: &Arc<Self>,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, String> {
        if method == "child.start" {
            return self.start_child(generation, value(arguments, 0)).await;
        }
        let child = self.children.get(arguments)?;
        match method {
            "child.next" => {
                let outbox = Arc::clone(&child.outbox);
                // The child may be closed while the script waits.
                drop(child);
                Ok(outbox.next().await.map_or(Value::Null, Value::Array))
            }
            "child.prompt" => {
                let options = value(arguments, 2);
                let command = Command::Prompt(Prompt {
                    images: payload::blocks_from(&options["images"]),
                    when_busy: match options["streamingBehavior"].as_str() {
                        Some("steer") => Some(Delivery::Steer),
                        Some("followUp") => Some(Delivery::FollowUp),
                        _ => None,
                    },
                    origin: Origin::Hook,
                    ..Prompt::new(text(arguments, 1))
                });
                child.ask(command).await.map(|_| Value::Null)
            }
            "child.message" => {
                let message = serde_json::from_value(value(arguments, 1).clone())
                    .map_err(|error| error.to_string())?;
                let command = Command::CustomPrompt(message);
                child.ask(command).await.map(|_| Value::Null)
            }
            "child.queue" => {
                let command = Command::Queue {
                    text: text(arguments, 1).to_owned(),
                    images: payload::blocks_from(value(arguments, 3)),
                    delivery: match text(arguments, 2) {
                        "steer" => Delivery::Steer,
                        _ => Delivery::FollowUp,
                    },
                };
                child.ask(command).await.map(|_| Value::Null)
            }
            "child.idle" => child.ask(Command::WaitForIdle).await.map(|_| Value::Null),
            "child.abort" => child.ask(Command::Abort).await.map(|_| Value::Null),
            "child.compact" => {
                let instructions = value(arguments, 1).as_str().map(str::to_owned);
                match child.ask(Command::Compact { instructions }).await? {
                    Answer::Compacted(result) => Ok(json!(*result)),
                    _ => Ok(Value::Null),
                }
            }
            "child.setModel" => {
                let model = value(arguments, 1);
                let command = Command::SetModel {
                    provider: model["provider"].as_str().unwrap_or_default().to_owned(),
                    id: model["id"].as_str().unwrap_or_default().to_owned(),
                };
                child.ask(command).await.map(|_| Value::Null)
            }
            _ => Err(format!("Unknown request: {method}")),
        }
    }

    async fn start_child(
        self: &Arc<Self>,
        generation: u64,
        request: &Value,
    ) -> Result<Value, String> {
        let session = self.desk().ok_or("The session has not begun.")?.clone();
        let instance = self.instance(generation);
        let instance = instance.ok_or("The session of this extension is over.")?;
        let request: Request =
            serde_json::from_value(request.clone()).map_err(|error| error.to_string())?;
        let model = match (&request.provider, &request.model) {
            (Some(provider), Some(id)) => {
                let found = self.options.services.find_model(provider, id);
                Some(found.ok_or_else(|| format!("Model not found: {provider}/{id}"))?)
            }
            _ => None,
        };
        let messages = request
            .messages
            .into_iter()
            .map(|message| serde_json::from_value::<Message>(message).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let outbox = Arc::new(Outbox::default());
        let added_tools = request
            .custom_tools
            .into_iter()
            .map(|card| ChildTool::shared(card, &outbox))
            .collect::<Result<Vec<Arc<dyn Tool>>, _>>()?;
        let desk = Arc::new(OnceLock::new());
        let hooks = ChildHooks::new(self, &outbox, &request.asks, Arc::clone(&desk));
        let system_prompt = request.system_prompt.map(|prompt| {
            let prompt: Arc<str> = prompt.into();
            let compose = move |_: &[Arc<dyn Tool>]| Arc::clone(&prompt);
            Arc::new(compose) as Arc<dyn pinion_agent::SystemPrompt>
        });
        let spec = ChildSpec {
            model,
            thinking_level: request.level,
            cwd: request.cwd,
            tools: request.tools,
            active_tools: request.active_tools,
            added_tools,
            system_prompt,
            messages,
            auto_compaction: request.auto_compaction,
            auto_retry: request.auto_retry,
            listener: Arc::clone(&outbox) as _,
            hooks: Arc::new(hooks),
        };
        let (handle, task) = session.start_child(spec).map_err(error_message)?;
        let ended = Arc::downgrade(&outbox);
        self.runtime.spawn(async move {
            // The child has ended, with or without a failure.
            let _ = task.await;
            if let Some(outbox) = ended.upgrade() {
                outbox.close();
            }
        });
        let child = Child {
            generation: instance.number,
            handle,
            outbox,
            desk,
        };
        let number = self.children.next.fetch_add(1, Ordering::Relaxed);
        self.children.open().insert(number, Arc::new(child));
        // The instance may have been closed meanwhile; then nothing would close the child.
        if self.instance(generation).is_none() {
            self.children.close_generation(generation);
            return Err("The session of this extension is over.".to_owned());
        }
        Ok(number.into())
    }
}
