//! The shared core of a session: its state, its collaborators, and the functions that emit events and write entries.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_message::{CustomMessage, Mask, Message, Usage, now_millis};
use pinion_session::{EntryId, NewEntry, SaveListener, Stats};
use pinion_tools::ToolSettings;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{Span, debug};

use crate::config::{EngineSettings, Expander, Models, Preferences, SystemPrompt};
use crate::emitter::{ABORT_GRACE, Emitter, HookQueueReceiver};
use crate::error::QUEUE_LIMIT;
use crate::gate::Gate;
use crate::hooks::{Hooks, Moment};
use crate::spans;
use crate::state::{Phase, SessionState};
use crate::toolbox::Toolbox;
use crate::{Delivery, EngineError, Event, ToolSupply};

/// The state and the collaborators that all parts of a session share.
pub(crate) struct Core {
    state: Mutex<SessionState>,
    toolbox: Mutex<Toolbox>,
    prompt: Arc<dyn SystemPrompt>,
    pub emitter: Arc<Emitter>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub gate: Option<Arc<dyn Gate>>,
    pub tool_supply: Option<Arc<dyn ToolSupply>>,
    /// Cancelled when the whole session is stopped.
    pub stop: CancellationToken,
    pub models: Arc<dyn Models>,
    pub shell: ToolSettings,
    pub cwd: Arc<PathBuf>,
    pub mask: Mask,
    pub settings: EngineSettings,
    pub preferences: Arc<dyn Preferences>,
    pub expander: Arc<dyn Expander>,
    /// Notified when a save of the session file has ended.
    pub save_ended: Arc<Notify>,
    /// Notifies `save_ended`.
    pub save_listener: SaveListener,
    /// Changes of the thinking level are emitted. They are not while the hooks of a new process start.
    pub emits_levels: AtomicBool,
    /// The span of the session in the diagnostic log.
    pub span: Span,
    /// The number of children that exist.
    pub children: Arc<AtomicUsize>,
    /// The usage of children, and the id of the session that they belong to.
    child_usage: Mutex<(String, Stats)>,
}

impl Core {
    pub fn new(
        config: crate::Config,
        stop: CancellationToken,
    ) -> (Self, Option<HookQueueReceiver>) {
        let span = spans::session(config.store.id());
        let state = SessionState {
            store: config.store,
            session_directory: config.session_directory,
            model: config.model,
            thinking_level: config.thinking_level,
            messages: Vec::new(),
            steering: Default::default(),
            follow_up: Default::default(),
            next_turn: Vec::new(),
            steering_mode: config.settings.steering_mode.clone(),
            follow_up_mode: config.settings.follow_up_mode.clone(),
            auto_compaction: config.settings.auto_compaction,
            auto_retry: config.settings.auto_retry,
            phase: Phase::Idle,
            run_prompt: None,
            hidden_tools: Vec::new(),
            held_bash: Vec::new(),
            retry_attempt: 0,
            overflow_handled: false,
            last_answer: None,
            retry_aborts: Vec::new(),
            slow_saves: Default::default(),
            reading_commands: 0,
        };
        let save_ended = Arc::new(Notify::new());
        let ended = Arc::clone(&save_ended);
        let records_prompt = config.settings.behaviour.record_system_prompt;
        let mut toolbox = Toolbox::new(
            config.tools,
            config.active_tools,
            config.tool_filter,
            records_prompt,
        );
        toolbox.add(config.added_tools);
        toolbox.renew(&*config.system_prompt);
        let (emitter, hook_queue) = Emitter::new(config.listeners, config.hooks.clone());
        let core = Self {
            state: Mutex::new(state),
            toolbox: Mutex::new(toolbox),
            prompt: config.system_prompt,
            emitter: Arc::new(emitter),
            hooks: config.hooks,
            gate: config.gate,
            tool_supply: config.tool_supply,
            stop,
            models: config.models,
            shell: config.shell,
            cwd: Arc::new(config.cwd),
            mask: config.mask,
            settings: config.settings,
            preferences: config.preferences,
            expander: config.expander,
            save_ended,
            save_listener: Arc::new(move || ended.notify_waiters()),
            emits_levels: AtomicBool::new(true),
            span,
            children: Arc::default(),
            child_usage: Mutex::default(),
        };
        core.state().messages = core.shown(config.messages);
        (core, hook_queue)
    }

    /// Locks the state. The lock must not be held across an await.
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        // Every change is complete before the lock is released, also when a caller panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tools.
    pub fn toolbox(&self) -> MutexGuard<'_, Toolbox> {
        self.toolbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Composes the default system prompt.
    pub fn prompt(&self) -> Arc<dyn SystemPrompt> {
        Arc::clone(&self.prompt)
    }

    /// Adds the usage of one request of a child.
    pub fn count_child_usage(&self, usage: &Usage) {
        let session = self.state().store.id().to_owned();
        let mut counted = self
            .child_usage
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Children end with the session that they were started in, so its usage is not that of the next one.
        if counted.0 != session {
            *counted = (session, Stats::default());
        }
        counted.1.add_usage(usage);
    }

    /// Adds the usage of the children of the session that `stats` are about.
    pub fn with_child_usage(&self, mut stats: Stats) -> Stats {
        let counted = self
            .child_usage
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if counted.0 == stats.session_id {
            stats.add_totals(&counted.1);
        }
        stats
    }

    /// Changes the tools and composes the system prompt again.
    pub fn change_tools(&self, change: impl FnOnce(&mut Toolbox)) {
        let mut toolbox = self.toolbox();
        change(&mut toolbox);
        toolbox.renew(&*self.prompt);
    }

    /// Returns the system prompt of the active run, or the default one.
    pub fn effective_prompt(&self) -> Arc<str> {
        let of_run = self.state().run_prompt.clone();
        of_run.unwrap_or_else(|| self.toolbox().system_prompt())
    }

    /// Returns the hooks if they want `moment`.
    pub fn hook(&self, moment: Moment) -> Option<&Arc<dyn Hooks>> {
        self.hooks.as_ref().filter(|hooks| hooks.wants(moment))
    }

    /// Asks the hooks about `moment` after earlier events are delivered. `None` if they do not want it or `cancel` is
    /// cancelled first.
    pub async fn ask_hook<'a, T>(
        &'a self,
        moment: Moment,
        cancel: &CancellationToken,
        ask: impl FnOnce(&'a Arc<dyn Hooks>) -> BoxFuture<'a, T>,
    ) -> Option<T> {
        let hooks = self.hook(moment)?;
        self.emitter.drained(cancel).await;
        debug!(?moment, "asking the hooks");
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = ask(hooks) => Some(answer),
        }
    }

    /// Like [`Core::ask_hook`], for hooks that also learn about aborted work: they get some time after `cancel` is
    /// cancelled.
    pub async fn tell_hook<'a, T>(
        &'a self,
        moment: Moment,
        cancel: &CancellationToken,
        tell: impl FnOnce(&'a Arc<dyn Hooks>) -> BoxFuture<'a, T>,
    ) -> Option<T> {
        let hooks = self.hook(moment)?;
        self.emitter.drained(cancel).await;
        let overdue = async {
            cancel.cancelled().await;
            tokio::time::sleep(ABORT_GRACE).await;
        };
        tokio::select! {
            answer = tell(hooks) => Some(answer),
            () = overdue => None,
        }
    }

    /// Sends an event to the hooks and then to the listeners.
    pub fn emit(&self, event: Event) {
        self.emitter.emit(event);
    }

    /// Waits until every listener has room for more progress, or until `cancel` is cancelled.
    pub async fn room(&self, cancel: &CancellationToken) {
        self.emitter.room(cancel).await;
    }

    pub fn set_phase(&self, phase: Phase) {
        self.state().phase = phase;
    }

    /// Emits the start of a message, appends it to the session file and the conversation, and emits its end. Returns
    /// the message, which hooks may have changed.
    pub async fn append_message(
        &self,
        message: Arc<Message>,
        cancel: &CancellationToken,
    ) -> Arc<Message> {
        self.emit(Event::MessageStart(Arc::clone(&message)));
        self.finish_message(message, cancel).await
    }

    /// Does the rest of [`Core::append_message`] for a message whose start was emitted.
    pub async fn finish_message(
        &self,
        message: Arc<Message>,
        cancel: &CancellationToken,
    ) -> Arc<Message> {
        let original = Arc::clone(&message);
        let changed = self
            .ask_hook(Moment::MessageEnd, cancel, |hooks| {
                hooks.message_end(original)
            })
            .await;
        let message = changed.unwrap_or(message);
        let id = self.push_message(&message);
        if message.as_assistant().is_some() {
            self.state().last_answer.clone_from(&id);
        }
        self.save(id, cancel).await;
        self.emit(Event::MessageEnd(Arc::clone(&message)));
        message
    }

    /// Appends a message to the session and to the conversation, in memory; see [`Core::save`].
    pub fn push_message(&self, message: &Arc<Message>) -> Option<EntryId> {
        let id = self.push(NewEntry::Message(Arc::clone(message)));
        self.state().messages.push(Arc::clone(message));
        id
    }

    /// Removes the answer at the end of the conversation, so that the model does not see it again. It stays in the
    /// session file; see [`EngineBehaviour::record_omitted_answers`](crate::EngineBehaviour::record_omitted_answers).
    pub async fn omit_last_answer(&self, cancel: &CancellationToken) {
        let target_id = {
            let mut state = self.state();
            let last = state.messages.last();
            if last.is_none_or(|message| message.as_assistant().is_none()) {
                return;
            }
            state.messages.pop();
            state.last_answer.take()
        };
        let target_id = target_id.filter(|_| self.settings.behaviour.record_omitted_answers);
        let Some(target_id) = target_id.map(|id| id.to_string()) else {
            return;
        };
        let id = self.push(NewEntry::ContextEdit {
            target_id,
            replacement: None,
        });
        let entry = self.leaf_entry();
        self.save(id, cancel).await;
        self.emit(Event::EntryAppended(Arc::new(entry)));
    }

    /// Returns a message of a hook with the current time and with keys masked.
    pub fn stamped(&self, message: CustomMessage) -> Arc<Message> {
        let mut message = CustomMessage {
            timestamp: now_millis(),
            ..message
        };
        self.mask.content(&mut message.content);
        if let Some(details) = &mut message.details {
            self.mask.value(details);
        }
        Arc::new(Message::Custom(message))
    }

    /// Puts a message into a queue. A user's message emits the new queues at once.
    pub fn queue(&self, message: Arc<Message>, delivery: Delivery) -> Result<(), EngineError> {
        let of_user = matches!(*message, Message::User(_));
        {
            let mut state = self.state();
            let queue = match delivery {
                Delivery::Steer => &mut state.steering,
                Delivery::FollowUp => &mut state.follow_up,
            };
            if queue.len() >= QUEUE_LIMIT {
                return Err(EngineError::QueueFull);
            }
            queue.push_back(message);
        }
        if of_user {
            self.emit_queues();
        }
        Ok(())
    }

    /// Returns an event with the texts in the queues, with `taken` in front of the queue `delivery`.
    pub fn queue_update(&self, taken: &[Arc<Message>], delivery: Delivery) -> Event {
        let state = self.state();
        let texts = |queue: Delivery| {
            let before: &[_] = if queue == delivery { taken } else { &[] };
            state.queued_texts(queue, before)
        };
        Event::QueueUpdate {
            steering: texts(Delivery::Steer),
            follow_up: texts(Delivery::FollowUp),
        }
    }

    /// Emits the texts in the queues to the listeners, without waiting for hooks.
    pub fn emit_queues(&self) {
        let update = self.queue_update(&[], Delivery::Steer);
        self.emitter.emit_to_listeners(&update);
    }
}
