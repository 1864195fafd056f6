//! The engine of a command: each run is a new one that answers one prompt after the messages before it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{
    Answer, Command, Config, EngineBehaviour, EngineError, EngineSettings, Event, Expanded,
    Expander, Handle, Listener, Preferences, Prompt, Reply, Session, StatsScope, ToolFilter,
    ToolOrder,
};
use pinion_message::{Block, Content, CustomMessage, Mask, Message, ThinkingLevel};
use pinion_session::{NewEntry, NewSession, Store};
use pinion_tools::{Tool, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::host::EngineParts;
use crate::model::OneModel;

/// The behaviour that Pinocchio's clients expect: malformed calls fail, and an answer that failed before its first byte
/// is announced as failed.
const BEHAVIOUR: EngineBehaviour = EngineBehaviour {
    reject_malformed_arguments: true,
    retry_summaries: true,
    reject_empty_compaction: true,
    store_summary_usage: true,
    count_retry_wait_as_streaming: true,
    stats_scope: StatsScope::Session,
    ..EngineBehaviour::PLAIN
};

/// The parts that every run of a process shares.
pub(crate) struct Engine {
    /// The name of the command's file, for errors.
    pub command: String,
    pub models: Arc<OneModel>,
    pub thinking_level: ThinkingLevel,
    cwd: PathBuf,
    /// The built-in tools the model may call.
    tools: Vec<String>,
    /// The commands of clips, as tools.
    clip_tools: Vec<Arc<dyn Tool>>,
    tool_settings: ToolSettings,
    settings: EngineSettings,
    mask: Mask,
}

/// The system prompt and the messages before a run.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub system_prompt: Option<String>,
    pub messages: Vec<Arc<Message>>,
}

impl Engine {
    pub fn new(command: String, cwd: PathBuf, tools: Vec<String>, parts: EngineParts) -> Self {
        let EngineParts {
            chosen,
            registry,
            providers,
            clip_tools,
            tool_settings,
            settings,
            mask,
        } = parts;
        let models = OneModel::new(chosen, registry, providers, mask.clone());
        Self {
            command,
            thinking_level: models.thinking_level(),
            models: Arc::new(models),
            cwd,
            tools,
            clip_tools,
            tool_settings,
            settings: EngineSettings {
                // A turn must hold the messages themselves, not a summary of them.
                auto_compaction: false,
                tool_order: ToolOrder::Parallel,
                behaviour: BEHAVIOUR,
                ..settings
            },
            mask,
        }
    }

    /// Starts the engine without a prompt.
    pub fn start(
        &self,
        history: History,
        mut listeners: Vec<Arc<dyn Listener>>,
    ) -> Result<EngineRun, String> {
        let mut store = Store::create(NewSession {
            cwd: self.cwd.clone(),
            directory: None,
            id: None,
            parent_session: None,
        })
        .map_err(|error| error.to_string())?;
        let before = history.messages.len();
        for message in history.messages {
            store
                .append(NewEntry::Message(message))
                .map_err(|error| error.to_string())?;
        }
        let system_prompt: Arc<str> = history.system_prompt.unwrap_or_default().into();
        let (sender, settled) = oneshot::channel();
        listeners.push(Arc::new(SettledListener(Mutex::new(Some(sender)))));
        let config = Config {
            messages: store.context().messages,
            store,
            cwd: self.cwd.clone(),
            session_directory: None::<PathBuf>,
            model: Some(self.models.model()),
            thinking_level: self.thinking_level,
            models: Arc::clone(&self.models) as _,
            tools: pinion_tools::builtin(&self.tools, self.tool_settings.clone()),
            active_tools: self.tools.clone(),
            added_tools: self.clip_tools.clone(),
            tool_supply: None,
            tool_filter: ToolFilter::default(),
            shell: self.tool_settings.clone(),
            system_prompt: Arc::new(move |_: &[_]| Arc::clone(&system_prompt)),
            mask: self.mask.clone(),
            settings: self.settings.clone(),
            preferences: Arc::new(NoPreferences),
            expander: Arc::new(NoExpansion),
            listeners,
            hooks: None,
            gate: None,
        };
        // The engine ends by itself when the last handle to it is dropped.
        let (session, _task) = Session::spawn(config);
        Ok(EngineRun {
            session,
            settled,
            before,
        })
    }
}

/// The engine of one run.
pub(crate) struct EngineRun {
    session: Handle,
    settled: oneshot::Receiver<()>,
    /// The number of messages before the run.
    before: usize,
}

impl EngineRun {
    /// Returns a handle to the engine, to stop it.
    pub fn session(&self) -> Handle {
        self.session.clone()
    }

    /// Sends a prompt; the error is the reason why the engine refused it.
    pub async fn submit(&self, text: String, images: Vec<Block>) -> Result<(), String> {
        let prompt = Prompt {
            images,
            ..Prompt::new(text)
        };
        let accepted = send(&self.session, Command::Prompt(prompt)).await;
        accepted.map(drop).map_err(|error| error.to_string())
    }

    /// Asks the model without a new prompt; the error is the reason why the engine refused it.
    pub async fn submit_nothing(&self) -> Result<(), String> {
        let message = CustomMessage {
            custom_type: "go-on".to_owned(),
            // Empty, so that the model receives nothing of it.
            content: Content::Blocks(Vec::new()),
            display: false,
            details: None,
            timestamp: 0,
        };
        let accepted = send(&self.session, Command::CustomPrompt(message)).await;
        accepted.map(drop).map_err(|error| error.to_string())
    }

    /// Waits until the run has settled; returns the messages since the engine was started.
    pub async fn finish(self) -> Vec<Arc<Message>> {
        // An engine that is gone has settled too.
        let _ = self.settled.await;
        match send(&self.session, Command::GetMessages).await {
            Ok(Answer::Messages(messages)) => messages.into_iter().skip(self.before).collect(),
            _ => Vec::new(),
        }
    }
}

/// Sends a command to an engine and returns its one answer.
pub(crate) async fn send(session: &Handle, command: Command) -> Result<Answer, EngineError> {
    let (sender, answer) = oneshot::channel();
    let reply = Reply::new(move |result| {
        // Fails only if the caller no longer waits.
        let _ = sender.send(result);
    });
    session.send(command, reply).await;
    answer.await.unwrap_or(Err(EngineError::Dropped))
}

/// Reports that the run has settled.
struct SettledListener(Mutex<Option<oneshot::Sender<()>>>);

impl Listener for SettledListener {
    fn notice(&self, _ordinal: u64, event: &Event) {
        if let Event::Settled { .. } = event {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(waiting) = waiting.take() {
                // A signal may have ended the receiver.
                let _ = waiting.send(());
            }
        }
    }
}

/// Stores no preferences: a command changes nothing for the next one.
struct NoPreferences;

impl Preferences for NoPreferences {
    fn remember(&self, _changes: Vec<(&'static str, Option<Value>)>) {}
}

/// Expands nothing: a prompt is what the command file made it.
struct NoExpansion;

impl Expander for NoExpansion {
    fn expand(&self, text: &str) -> Expanded {
        Expanded {
            text: text.to_owned(),
            fault: None,
        }
    }

    fn commands(&self) -> Value {
        json!([])
    }
}
