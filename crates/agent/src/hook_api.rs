//! The API of a session for hooks: reading and changing it from any thread, also while a run is active.
//!
//! Functions that append to the session or read its file block at most five seconds; the engine's own thread must
//! not call them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use pinion_message::{Block, CustomMessage, Message, Model, ThinkingLevel, UserMessage};
use pinion_session::{ContextUsage, Entry, NewEntry, Store};
use pinion_tools::Tool;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::error::QUEUE_LIMIT;
use crate::session::PendingCommand;
use crate::{Answer, Command, Delivery, EngineError, Event, Reply};

/// Access to a session that does not prevent its end. After the session has ended, reads return nothing and changes
/// fail with [`EngineError::Dropped`].
#[derive(Clone)]
pub struct SessionApi {
    core: Weak<Core>,
    inbox: mpsc::WeakSender<PendingCommand>,
}

impl SessionApi {
    pub(crate) fn new(core: &Arc<Core>, inbox: mpsc::WeakSender<PendingCommand>) -> Self {
        Self {
            core: Arc::downgrade(core),
            inbox,
        }
    }

    pub(crate) fn core(&self) -> Result<Arc<Core>, EngineError> {
        self.core.upgrade().ok_or(EngineError::Dropped)
    }

    /// Reports whether no run is active.
    pub fn is_idle(&self) -> bool {
        self.core().is_ok_and(|core| !core.state().is_streaming())
    }

    /// Waits until the session is idle.
    pub async fn idle(&self) {
        // A session that has ended is idle.
        let _ = self.ask(Command::WaitForIdle).await;
    }

    /// Returns the messages that wait in a queue, in the order in which they enter the conversation.
    pub fn queued(&self) -> Vec<Arc<Message>> {
        self.core().map_or_else(
            |_| Vec::new(),
            |core| {
                let state = core.state();
                let queued = state.steering.iter().chain(&state.follow_up);
                queued.chain(&state.next_turn).cloned().collect()
            },
        )
    }

    /// Sets whether changes of the thinking level are emitted.
    pub fn emit_levels(&self, emits: bool) {
        if let Ok(core) = self.core() {
            core.emits_levels.store(emits, Ordering::Relaxed);
        }
    }

    /// Reports whether messages wait in a queue.
    pub fn has_pending(&self) -> bool {
        self.core().is_ok_and(|core| core.state().has_queued())
    }

    /// Calls `look` with the session as it is now.
    pub fn read<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Store) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        self.core()?.read_session_blocking(look)
    }

    /// Returns the current model.
    pub fn model(&self) -> Option<Arc<Model>> {
        self.core().ok()?.state().model.clone()
    }

    /// Returns the conversation as the model will see it next.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.core()
            .map(|core| core.messages_view())
            .unwrap_or_default()
    }

    /// Returns the size of the context; `None` without a model.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        self.core().ok()?.context_usage()
    }

    /// Returns the system prompt of the active run, or the default one.
    pub fn system_prompt(&self) -> Option<Arc<str>> {
        Some(self.core().ok()?.effective_prompt())
    }

    /// Appends data that the model does not see. Returns the id of the entry.
    pub fn append_custom(
        &self,
        custom_type: String,
        data: Option<Value>,
    ) -> Result<String, EngineError> {
        let core = self.core()?;
        let entry = NewEntry::Custom { custom_type, data };
        let id = core.state().store.push(entry)?;
        core.wait_until_saved_blocking(&id)?;
        let appended = core.state().store.entry(&id).and_then(Entry::value);
        if let Some(entry) = appended {
            core.emit(Event::EntryAppended(Arc::new(entry)));
        }
        Ok(id.to_string())
    }

    /// Appends a message to a session that was just created, without emitting events. Returns the id of the entry.
    pub fn append_message(&self, message: Message) -> Result<String, EngineError> {
        let core = self.core()?;
        let message = Arc::new(message);
        let entry = NewEntry::Message(Arc::clone(&message));
        let id = core.state().store.push(entry)?;
        core.wait_until_saved_blocking(&id)?;
        core.state().messages.push(message);
        Ok(id.to_string())
    }

    /// Sets the name of the session; an empty one removes it.
    pub fn set_name(&self, name: &str) -> Result<(), EngineError> {
        let core = self.core()?;
        let name = core.mask.text(name.trim()).into_owned();
        core.log_blocking(NewEntry::SessionInfo { name: name.clone() });
        core.emit_name(name);
        Ok(())
    }

    /// Sets the label of an entry; `None` removes it.
    pub fn set_label(&self, entry_id: String, label: Option<String>) -> Result<(), EngineError> {
        let core = self.core()?;
        core.entry_exists(&entry_id)?;
        core.log_blocking(NewEntry::Label {
            target_id: entry_id,
            label,
        });
        Ok(())
    }

    /// Sets the thinking level, or the nearest one that the model supports.
    pub fn set_thinking_level(&self, level: ThinkingLevel) -> Result<(), EngineError> {
        let core = self.core()?;
        let change = core.change_level(level);
        if let Some(id) = change.as_ref().and_then(|change| change.entry.as_ref()) {
            core.save_blocking(id);
        }
        core.announce_level(change);
        Ok(())
    }

    /// Returns the thinking level; `Off` after the session has ended.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.core()
            .map_or(ThinkingLevel::Off, |core| core.state().thinking_level)
    }

    /// Returns every tool, active or not.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.core()
            .map(|core| core.toolbox().all())
            .unwrap_or_default()
    }

    /// Returns the names of the tools that the model may call.
    pub fn active_tools(&self) -> Vec<String> {
        self.core()
            .map(|core| core.toolbox().active_names())
            .unwrap_or_default()
    }

    /// Makes exactly these tools active; unknown names are ignored.
    pub fn set_active_tools(&self, names: &[String]) -> Result<(), EngineError> {
        self.core()?.change_tools(|tools| tools.activate(names));
        Ok(())
    }

    /// Adds active tools. A tool replaces one with the same name.
    pub fn add_tools(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), EngineError> {
        self.core()?.change_tools(|toolbox| toolbox.add(tools));
        Ok(())
    }

    /// Returns the tools that other tools may call.
    pub fn callable_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.core()
            .map(|core| core.toolbox().callable_tools())
            .unwrap_or_default()
    }

    /// Replaces the tools of the [`ToolSupply`](crate::ToolSupply). `wanted` names tools of the session to activate;
    /// each is activated once.
    pub fn supply_tools(
        &self,
        tools: Vec<Arc<dyn Tool>>,
        wanted: &[&str],
    ) -> Result<(), EngineError> {
        self.core()?
            .change_tools(|toolbox| toolbox.supply(tools, wanted));
        Ok(())
    }

    /// Restores the tools of [`Config`](crate::Config) and adds `extra`. `active` names the active ones; `None`
    /// activates the default tools and `extra`.
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

    /// Composes the system prompt again, because its sources have changed.
    pub fn refresh_prompt(&self) -> Result<(), EngineError> {
        self.core()?.change_tools(|_| ());
        Ok(())
    }

    /// Emits [`Event::Fault`].
    pub fn fault(&self, source: String, during: String, error: String) {
        if let Ok(core) = self.core() {
            core.emit(Event::Fault {
                source,
                during: during.into(),
                error,
            });
        }
    }

    /// Queues a user message.
    pub fn queue(&self, mut blocks: Vec<Block>, delivery: Delivery) -> Result<(), EngineError> {
        let core = self.core()?;
        core.mask.blocks(&mut blocks);
        core.queue(Arc::new(Message::User(UserMessage::now(blocks))), delivery)
    }

    /// Adds a message to the conversation without starting a run.
    pub fn send_message(
        &self,
        message: CustomMessage,
        timing: MessageTiming,
    ) -> Result<(), EngineError> {
        let core = self.core()?;
        let message = core.stamped(message);
        match timing {
            MessageTiming::Immediate => {
                // Hooks receive only events of runs.
                let start = Event::MessageStart(Arc::clone(&message));
                core.emitter.emit_to_listeners(&start);
                if let Some(id) = core.push_message(&message) {
                    core.save_blocking(&id);
                }
                core.emitter.emit_to_listeners(&Event::MessageEnd(message));
                Ok(())
            }
            MessageTiming::Queued(delivery) => core.queue(message, delivery),
            MessageTiming::NextPrompt => {
                let mut state = core.state();
                if state.next_turn.len() >= QUEUE_LIMIT {
                    return Err(EngineError::QueueFull);
                }
                state.next_turn.push(message);
                Ok(())
            }
        }
    }

    /// Sends a command and ignores its answer. Fails if the inbox is full.
    pub fn post(&self, command: Command) -> Result<(), EngineError> {
        self.submit(command, Reply::new(|_| ()))
    }

    /// Sends a command; `reply` is answered exactly once. Fails if the inbox is full.
    pub fn submit(&self, command: Command, reply: Reply) -> Result<(), EngineError> {
        let inbox = self.inbox.upgrade().ok_or(EngineError::Dropped)?;
        inbox
            .try_send((command, reply))
            .map_err(|_| EngineError::Dropped)
    }

    /// Sends a command and waits for its answer.
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

/// The moment at which a message of a hook enters the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageTiming {
    /// At once, independent of any run.
    Immediate,
    /// From a queue of the active run, or of the next one.
    Queued(Delivery),
    /// After the next prompt.
    NextPrompt,
}

impl std::fmt::Debug for SessionApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionApi")
    }
}
