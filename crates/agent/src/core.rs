//! What the parts of a session share: its state, its seams, and the ways to tell and to log.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_message::{CustomMessage, Mask, Message, now_millis};
use pinion_session::NewEntry;
use pinion_tools::ToolSettings;
use tokio_util::sync::CancellationToken;

use crate::config::{EngineSettings, Expander, Models, Preferences, SystemPrompt};
use crate::error::QUEUE_LIMIT;
use crate::gate::Gate;
use crate::hooks::{Hooks, Moment};
use crate::outlet::{LineEnd, Outlet};
use crate::state::{Phase, State};
use crate::toolbox::Toolbox;
use crate::{Delivery, EngineError, Event};

/// What the parts of a session share.
pub(crate) struct Core {
    state: Mutex<State>,
    toolbox: Mutex<Toolbox>,
    prompt: Arc<dyn SystemPrompt>,
    pub outlet: Arc<Outlet>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub gate: Option<Arc<dyn Gate>>,
    /// The session is stopped for good.
    pub stop: CancellationToken,
    pub models: Arc<dyn Models>,
    pub shell: ToolSettings,
    pub cwd: Arc<PathBuf>,
    pub mask: Mask,
    pub settings: EngineSettings,
    pub preferences: Arc<dyn Preferences>,
    pub expander: Arc<dyn Expander>,
}

impl Core {
    pub fn new(config: crate::Config, stop: CancellationToken) -> (Self, Option<LineEnd>) {
        let context = config.store.context();
        let state = State {
            store: config.store,
            session_directory: config.session_directory,
            model: config.model,
            thinking_level: config.thinking_level,
            messages: context.messages,
            steering: Default::default(),
            follow_up: Default::default(),
            next_turn: Vec::new(),
            steering_mode: config.settings.steering_mode.clone(),
            follow_up_mode: config.settings.follow_up_mode.clone(),
            auto_compaction: config.settings.auto_compaction,
            auto_retry: config.settings.auto_retry,
            phase: Phase::Idle,
            run_prompt: None,
            held_bash: Vec::new(),
            retry_attempt: 0,
            overflow_handled: false,
        };
        let mut toolbox = Toolbox::new(config.tools, config.active_tools, config.tool_filter);
        toolbox.add(config.added_tools);
        toolbox.renew(&*config.system_prompt);
        let (outlet, line) = Outlet::new(config.listeners, config.hooks.clone());
        let core = Self {
            state: Mutex::new(state),
            toolbox: Mutex::new(toolbox),
            prompt: config.system_prompt,
            outlet: Arc::new(outlet),
            hooks: config.hooks,
            gate: config.gate,
            stop,
            models: config.models,
            shell: config.shell,
            cwd: Arc::new(config.cwd),
            mask: config.mask,
            settings: config.settings,
            preferences: config.preferences,
            expander: config.expander,
        };
        (core, line)
    }

    /// The state, for a moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before the lock is given back, also when a caller panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools, for a moment.
    pub fn toolbox(&self) -> MutexGuard<'_, Toolbox> {
        self.toolbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the tools, and what the model is told of them.
    pub fn change_tools(&self, change: impl FnOnce(&mut Toolbox)) {
        let mut toolbox = self.toolbox();
        change(&mut toolbox);
        toolbox.renew(&*self.prompt);
    }

    /// What the model is told first, in the run that is active.
    pub fn effective_prompt(&self) -> Arc<str> {
        let of_run = self.state().run_prompt.clone();
        of_run.unwrap_or_else(|| self.toolbox().system_prompt())
    }

    /// Who takes part in `moment`, if anyone does.
    pub fn hook(&self, moment: Moment) -> Option<&Arc<dyn Hooks>> {
        self.hooks.as_ref().filter(|hooks| hooks.wants(moment))
    }

    /// What who takes part answers, once everything before has been told; `None` when nobody
    /// does, or the work is stopped first.
    pub async fn ask_hook<'a, T>(
        &'a self,
        moment: Moment,
        cancel: &CancellationToken,
        ask: impl FnOnce(&'a Arc<dyn Hooks>) -> BoxFuture<'a, T>,
    ) -> Option<T> {
        let hooks = self.hook(moment)?;
        self.outlet.drained(cancel).await;
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = ask(hooks) => Some(answer),
        }
    }

    /// Tells everyone what happened.
    pub fn emit(&self, event: Event) {
        self.outlet.emit(event);
    }

    /// Waits until every listener can take more progress, or the work is stopped.
    pub async fn room(&self, cancel: &CancellationToken) {
        self.outlet.room(cancel).await;
    }

    pub fn set_phase(&self, phase: Phase) {
        self.state().phase = phase;
    }

    /// Appends to the session log; a failure is told and the session goes on in memory.
    pub fn log(&self, entry: NewEntry) {
        let result = self.state().store.append(entry);
        if let Err(error) = result {
            self.emit(Event::Fault {
                source: "session".into(),
                during: "append".into(),
                error: error.to_string(),
            });
        }
    }

    /// Puts a message into the conversation, on disk first, and tells everyone. Gives the message
    /// as it was taken in.
    pub async fn take_in(&self, message: Arc<Message>, cancel: &CancellationToken) -> Arc<Message> {
        self.emit(Event::MessageStart(Arc::clone(&message)));
        self.complete(message, cancel).await
    }

    /// The rest of [`Core::take_in`], for a message whose beginning was told.
    pub async fn complete(
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
        self.keep(&message);
        self.emit(Event::MessageEnd(Arc::clone(&message)));
        message
    }

    /// Puts a message into the conversation and on disk.
    pub fn keep(&self, message: &Arc<Message>) {
        self.log(NewEntry::Message(Arc::clone(message)));
        self.state().messages.push(Arc::clone(message));
    }

    /// What who takes part says, as it is kept.
    pub fn said(&self, message: CustomMessage) -> Arc<Message> {
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

    /// Puts a message into a queue; everyone hears of the user's at once.
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
            self.tell_queues();
        }
        Ok(())
    }

    /// What waits in the queues, with `taken` still in front of `delivery`.
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

    /// Tells at once what waits in the queues.
    pub fn tell_queues(&self) {
        let update = self.queue_update(&[], Delivery::Steer);
        self.outlet.tell_listeners(&update);
    }
}
