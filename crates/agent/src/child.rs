//! Sessions that a hook starts inside another session.
//!
//! A child runs like any session, within what its parent may do: the parent's tools and tool filter, its models, its
//! gate, its limits and its masks. It stores no preferences, ends with its parent, and its usage counts as the parent's.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use pinion_message::{Message, Model, ThinkingLevel};
use pinion_session::{NewEntry, NewSession, Store};
use pinion_tools::Tool;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::config::{Preferences, SystemPrompt};
use crate::core::Core;
use crate::gate::{Admission, Gate, Verdict};
use crate::{Config, EngineError, Event, Handle, Hooks, Listener, Session, SessionApi};

/// The most children of one session that exist at the same time.
const MAX_CHILDREN: usize = 32;

/// The parts of a child that differ from its parent.
#[allow(missing_docs)]
pub struct ChildSpec {
    /// The parent's model if `None`.
    pub model: Option<Arc<Model>>,
    /// The parent's level if `None`.
    pub thinking_level: Option<ThinkingLevel>,
    /// The parent's directory if `None`.
    pub cwd: Option<PathBuf>,
    /// The parent's tools that the child has, by name. Names that the parent does not have are ignored.
    pub tools: Vec<String>,
    /// The tools of `tools` that are active at the start.
    pub active_tools: Vec<String>,
    /// Further tools; they start active.
    pub added_tools: Vec<Arc<dyn Tool>>,
    /// The parent's system prompt for the active tools if `None`.
    pub system_prompt: Option<Arc<dyn SystemPrompt>>,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    pub auto_compaction: bool,
    pub auto_retry: bool,
    pub listener: Arc<dyn Listener>,
    /// They must pass each tool call to the parent's hooks.
    pub hooks: Arc<dyn Hooks>,
}

impl std::fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildSpec")
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl SessionApi {
    /// Starts a child of this session. It ends when its handles are dropped and its work is done, or with this session.
    pub fn start_child(&self, spec: ChildSpec) -> Result<(Handle, JoinHandle<()>), EngineError> {
        let core = self.core()?;
        let place = ChildPlace::take(&core.children).ok_or(EngineError::TooManyChildren)?;
        let (tools, tool_filter) = {
            let toolbox = core.toolbox();
            let mut tools = toolbox.all();
            tools.retain(|tool| spec.tools.contains(&tool.spec().name));
            (tools, toolbox.filter())
        };
        let (model, level) = {
            let state = core.state();
            (state.model.clone(), state.thinking_level)
        };
        let cwd = spec.cwd.unwrap_or_else(|| core.cwd.to_path_buf());
        let mut store = Store::create(NewSession {
            cwd: cwd.clone(),
            ..NewSession::default()
        })?;
        for message in &spec.messages {
            store.push(NewEntry::Message(Arc::clone(message)))?;
        }
        let mut settings = core.settings.clone();
        settings.auto_compaction = spec.auto_compaction;
        settings.auto_retry = spec.auto_retry;
        let gate = core.gate.clone();
        let config = Config {
            store,
            messages: spec.messages,
            cwd,
            session_directory: None,
            model: spec.model.or(model),
            thinking_level: spec.thinking_level.unwrap_or(level),
            models: Arc::clone(&core.models),
            tools,
            active_tools: spec.active_tools,
            added_tools: spec.added_tools,
            tool_filter,
            shell: core.shell.clone(),
            system_prompt: spec.system_prompt.unwrap_or_else(|| core.prompt()),
            mask: core.mask.clone(),
            tool_supply: None,
            settings,
            preferences: Arc::new(NoPreferences),
            expander: Arc::clone(&core.expander),
            listeners: vec![Arc::new(CountingListener {
                parent: Arc::downgrade(&core),
                listener: spec.listener,
            })],
            hooks: Some(spec.hooks),
            gate: gate.map(|gate| Arc::new(ChildGate(gate)) as Arc<dyn Gate>),
        };
        let (handle, task) = Session::spawn_within(config, core.stop.child_token());
        let living = async move {
            // A panic of the child ends it; the parent continues.
            let _ = task.await;
            drop(place);
        };
        Ok((handle, tokio::spawn(living)))
    }
}

/// One of the places for children; dropping it frees the place.
struct ChildPlace(Arc<AtomicUsize>);

impl ChildPlace {
    fn take(children: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = children.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < MAX_CHILDREN).then_some(count + 1)
        });
        taken.ok().map(|_| Self(Arc::clone(children)))
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Adds the usage of a child's answers to that of its parent.
struct CountingListener {
    parent: Weak<Core>,
    listener: Arc<dyn Listener>,
}

impl Listener for CountingListener {
    fn notice(&self, ordinal: u64, event: &Event) {
        if let Event::MessageEnd(message) = event
            && let Some(answer) = message.as_assistant()
            && let Some(parent) = self.parent.upgrade()
        {
            parent.count_child_usage(&answer.usage);
        }
        self.listener.notice(ordinal, event);
    }

    fn has_room(&self) -> bool {
        self.listener.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        self.listener.room()
    }
}

/// The parent's gate, without the beginnings and ends of the child's prompts.
struct ChildGate(Arc<dyn Gate>);

impl Gate for ChildGate {
    fn begin(&self) {}

    fn settled(&self) {}

    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict> {
        self.0.admit(call)
    }
}

struct NoPreferences;

impl Preferences for NoPreferences {
    fn remember(&self, _changes: Vec<(&'static str, Option<Value>)>) {}
}
