//! A session from the side: what takes part in it may look and act at once, from any thread.

use std::sync::{Arc, Weak};

use pinion_message::{Block, CustomMessage, Message, Model, ThinkingLevel, UserMessage};
use pinion_session::{ContextUsage, Entry, NewEntry, Store};
use pinion_tools::Tool;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::error::QUEUE_LIMIT;
use crate::session::Order;
use crate::{Answer, Command, Delivery, EngineError, Event, Reply};

/// Reaches a session without keeping it alive. When the session is gone, looking gives nothing
/// and acting fails with [`EngineError::Dropped`].
#[derive(Clone)]
pub struct Desk {
    core: Weak<Core>,
    inbox: mpsc::WeakSender<Order>,
}

impl Desk {
    pub(crate) fn new(core: &Arc<Core>, inbox: mpsc::WeakSender<Order>) -> Self {
        Self {
            core: Arc::downgrade(core),
            inbox,
        }
    }

    fn core(&self) -> Result<Arc<Core>, EngineError> {
        self.core.upgrade().ok_or(EngineError::Dropped)
    }

    /// Whether no run is active.
    pub fn is_idle(&self) -> bool {
        self.core().is_ok_and(|core| !core.state().is_streaming())
    }

    /// Waits until the agent does nothing by itself.
    pub async fn idle(&self) {
        // A session that is gone is idle.
        let _ = self.ask(Command::WaitForIdle).await;
    }

    /// Whether messages of the user wait in a queue.
    pub fn has_pending(&self) -> bool {
        self.core().is_ok_and(|core| core.state().has_queued())
    }

    /// Looks at the session file.
    pub fn read<R>(&self, look: impl FnOnce(&Store) -> R) -> Result<R, EngineError> {
        let core = self.core()?;
        let state = core.state();
        Ok(look(&state.store))
    }

    /// The model that is asked.
    pub fn model(&self) -> Option<Arc<Model>> {
        self.core().ok()?.state().model.clone()
    }

    /// The conversation as the model will see it next.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.core()
            .map(|core| core.messages_view())
            .unwrap_or_default()
    }

    /// How full the context is; `None` without a model.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        self.core().ok()?.context_usage()
    }

    /// What the model is told first.
    pub fn system_prompt(&self) -> Option<Arc<str>> {
        Some(self.core().ok()?.effective_prompt())
    }

    /// Appends state that no model sees; the id of the entry.
    pub fn append_custom(
        &self,
        custom_type: String,
        data: Option<Value>,
    ) -> Result<String, EngineError> {
        let core = self.core()?;
        let entry = NewEntry::Custom { custom_type, data };
        let (id, appended) = {
            let mut state = core.state();
            let id = state.store.append(entry)?;
            let appended = state.store.entry(&id).and_then(Entry::value);
            (id, appended)
        };
        if let Some(entry) = appended {
            core.emit(Event::EntryAppended(Arc::new(entry)));
        }
        Ok(id.to_string())
    }

    /// Puts a message into a session that has just been made; nobody is told.
    pub fn append_message(&self, message: Message) -> Result<String, EngineError> {
        let core = self.core()?;
        let message = Arc::new(message);
        let mut state = core.state();
        let id = state
            .store
            .append(NewEntry::Message(Arc::clone(&message)))?;
        state.messages.push(message);
        Ok(id.to_string())
    }

    /// Names the session; without a name it is taken away.
    pub fn set_name(&self, name: &str) -> Result<(), EngineError> {
        let core = self.core()?;
        if !name.trim().is_empty() {
            return core.set_name(name).map(drop);
        }
        core.log(NewEntry::SessionInfo {
            name: String::new(),
        });
        core.emit(Event::SessionInfoChanged(None));
        Ok(())
    }

    /// Names an entry, or takes its name away.
    pub fn set_label(&self, entry_id: String, label: Option<String>) -> Result<(), EngineError> {
        self.core()?.set_label(entry_id, label).map(drop)
    }

    /// Sets the level, or the nearest one the model supports.
    pub fn set_thinking_level(&self, level: ThinkingLevel) -> Result<(), EngineError> {
        self.core()?.set_thinking_level(level);
        Ok(())
    }

    /// How hard the model thinks.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.core()
            .map_or(ThinkingLevel::Off, |core| core.state().thinking_level)
    }

    /// Every tool there is, active or not.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.core()
            .map(|core| core.toolbox().all())
            .unwrap_or_default()
    }

    /// The names of the tools the model may call.
    pub fn active_tools(&self) -> Vec<String> {
        self.core()
            .map(|core| core.toolbox().active_names())
            .unwrap_or_default()
    }

    /// Chooses the tools the model may call; unknown names are left out.
    pub fn set_active_tools(&self, names: &[String]) -> Result<(), EngineError> {
        self.core()?.change_tools(|tools| tools.activate(names));
        Ok(())
    }

    /// Adds tools, in the place of those with the same name, and makes them active.
    pub fn add_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), EngineError> {
        self.core()?.change_tools(|toolbox| toolbox.add(tools));
        Ok(())
    }

    /// Goes back to the tools of `Config` with `extra` added; `active` chooses among them, or all
    /// that are on by default.
    pub fn reset_tools(
        &self,
        extra: Vec<Arc<dyn Tool>>,
        active: Option<&[String]>,
    ) -> Result<(), EngineError> {
        self.core()?.change_tools(|toolbox| {
            toolbox.reset(extra);
            if let Some(names) = active {
                toolbox.activate(names);
            }
        });
        Ok(())
    }

    /// Makes the system prompt anew: what it is made of has changed.
    pub fn refresh_prompt(&self) -> Result<(), EngineError> {
        self.core()?.change_tools(|_| ());
        Ok(())
    }

    /// Tells everyone that something went wrong.
    pub fn fault(&self, source: String, during: String, error: String) {
        if let Ok(core) = self.core() {
            core.emit(Event::Fault {
                source,
                during: during.into(),
                error,
            });
        }
    }

    /// Queues something the user might have said.
    pub fn queue(&self, mut words: Vec<Block>, delivery: Delivery) -> Result<(), EngineError> {
        let core = self.core()?;
        core.mask.blocks(&mut words);
        core.queue(Arc::new(Message::User(UserMessage::now(words))), delivery)
    }

    /// Says something without starting a run.
    pub fn say(&self, message: CustomMessage, how: Saying) -> Result<(), EngineError> {
        let core = self.core()?;
        let message = core.said(message);
        match how {
            Saying::Aside => {
                // Only what belongs to a run is told to who takes part.
                let start = Event::MessageStart(Arc::clone(&message));
                core.outlet.tell_listeners(&start);
                core.keep(&message);
                core.outlet.tell_listeners(&Event::MessageEnd(message));
                Ok(())
            }
            Saying::Queued(delivery) => core.queue(message, delivery),
            Saying::NextTurn => {
                let mut state = core.state();
                if state.next_turn.len() >= QUEUE_LIMIT {
                    return Err(EngineError::QueueFull);
                }
                state.next_turn.push(message);
                Ok(())
            }
        }
    }

    /// Asks something and does not wait for the answer.
    pub fn post(&self, command: Command) -> Result<(), EngineError> {
        self.submit(command, Reply::new(|_| ()))
    }

    /// Asks something; `reply` is answered exactly once.
    pub fn submit(&self, command: Command, reply: Reply) -> Result<(), EngineError> {
        let inbox = self.inbox.upgrade().ok_or(EngineError::Dropped)?;
        inbox
            .try_send((command, reply))
            .map_err(|_| EngineError::Dropped)
    }

    /// Asks something and waits for the answer.
    pub async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        let inbox = self.inbox.upgrade().ok_or(EngineError::Dropped)?;
        let sent = inbox.send((command, reply)).await;
        drop(inbox);
        sent.map_err(|_| EngineError::Dropped)?;
        answer.await.unwrap_or(Err(EngineError::Dropped))
    }
}

/// When something said by who takes part is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying {
    /// At once, beside any run.
    Aside,
    /// By the run that is active, or the next one.
    Queued(Delivery),
    /// With the next prompt.
    NextTurn,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}
