//! What the parts of a session share: its state, its outlet, and the rest of the program.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_message::{Mask, Message, ToolSpec};
use pinion_session::NewEntry;
use pinion_tools::{Tool, ToolSettings};
use tokio_util::sync::CancellationToken;

use crate::config::{EngineSettings, Expander, Models, Preferences};
use crate::state::{Phase, State};
use crate::{Delivery, Event, Listener};

/// What the parts of a session share.
pub(crate) struct Core {
    state: Mutex<State>,
    /// The number of the last event; holding it orders events from several threads.
    ordinal: Mutex<u64>,
    listeners: Vec<Arc<dyn Listener>>,
    pub models: Arc<dyn Models>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub specs: Arc<[ToolSpec]>,
    pub shell: ToolSettings,
    pub cwd: Arc<PathBuf>,
    pub system_prompt: Arc<str>,
    pub mask: Mask,
    pub settings: EngineSettings,
    pub preferences: Arc<dyn Preferences>,
    pub expander: Arc<dyn Expander>,
}

impl Core {
    pub fn new(config: crate::Config) -> Self {
        let context = config.store.context();
        let state = State {
            store: config.store,
            session_directory: config.session_directory,
            model: config.model,
            thinking_level: config.thinking_level,
            messages: context.messages,
            steering: Default::default(),
            follow_up: Default::default(),
            steering_mode: config.settings.steering_mode.clone(),
            follow_up_mode: config.settings.follow_up_mode.clone(),
            auto_compaction: config.settings.auto_compaction,
            auto_retry: config.settings.auto_retry,
            phase: Phase::Idle,
            held_bash: Vec::new(),
            retry_attempt: 0,
            overflow_handled: false,
        };
        let specs = config
            .tools
            .iter()
            .map(|tool| tool.spec().clone())
            .collect();
        Self {
            state: Mutex::new(state),
            ordinal: Mutex::new(0),
            listeners: config.listeners,
            models: config.models,
            tools: config.tools,
            specs,
            shell: config.shell,
            cwd: Arc::new(config.cwd),
            system_prompt: config.system_prompt,
            mask: config.mask,
            settings: config.settings,
            preferences: config.preferences,
            expander: config.expander,
        }
    }

    /// The state, for a moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before the lock is given back, also when a caller panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everyone what happened.
    pub fn emit(&self, event: Event) {
        let mut ordinal = self.ordinal.lock().unwrap_or_else(PoisonError::into_inner);
        *ordinal += 1;
        for listener in &self.listeners {
            listener.notice(*ordinal, &event);
        }
    }

    /// Waits until every listener can take more progress, or the work is stopped.
    pub async fn room(&self, cancel: &CancellationToken) {
        for listener in &self.listeners {
            if !listener.has_room() {
                tokio::select! {
                    () = listener.room() => {}
                    () = cancel.cancelled() => return,
                }
            }
        }
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
                during: "append",
                error: error.to_string(),
            });
        }
    }

    /// Puts a message into the conversation, on disk first, and tells everyone.
    pub fn take_in(&self, message: &Arc<Message>) {
        self.emit(Event::MessageStart(Arc::clone(message)));
        self.keep(message);
        self.emit(Event::MessageEnd(Arc::clone(message)));
    }

    /// Puts a message into the conversation and on disk.
    pub fn keep(&self, message: &Arc<Message>) {
        self.log(NewEntry::Message(Arc::clone(message)));
        self.state().messages.push(Arc::clone(message));
    }

    /// Takes the messages that are due from a queue and tells that it changed.
    pub fn take_queued(&self, delivery: Delivery) -> Vec<Arc<Message>> {
        let taken = self.state().take_queued(delivery);
        if !taken.is_empty() {
            self.emit_queues();
        }
        taken
    }

    /// Tells what waits in the queues.
    pub fn emit_queues(&self) {
        let state = self.state();
        let steering = state.queued_texts(Delivery::Steer);
        let follow_up = state.queued_texts(Delivery::FollowUp);
        drop(state);
        self.emit(Event::QueueUpdate {
            steering,
            follow_up,
        });
    }
}
