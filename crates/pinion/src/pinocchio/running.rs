//! One run: an engine that answers one prompt after the messages before it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pinion_agent::{
    Answer, Command, Config, EngineSettings, Event, Expanded, Expander, Handle, Listener,
    Preferences, Prompt, Reply, Session, ToolFilter,
};
use pinion_config::Dirs;
use pinion_message::{Block, Content, CustomMessage, Mask, Message, ThinkingLevel};
use pinion_session::{NewEntry, NewSession, Store};
use pinion_tools::{Tool, ToolSettings};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::models::OneModel;

/// The parts that every run of a process shares.
pub(super) struct Runner {
    /// The name of the command's file, for errors.
    pub command: String,
    pub models: Arc<OneModel>,
    pub thinking_level: ThinkingLevel,
    /// The built-in tools the model may call.
    pub tools: Vec<String>,
    /// The commands of clips, as tools.
    pub clips: Vec<Arc<dyn Tool>>,
    pub shell: ToolSettings,
    pub settings: EngineSettings,
    pub dirs: Dirs,
    pub mask: Mask,
}

/// The system prompt and the messages before a run.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub system_prompt: Option<String>,
    pub messages: Vec<Arc<Message>>,
}

impl Runner {
    /// Starts the engine without a prompt.
    pub fn start(
        &self,
        past: Past,
        mut listeners: Vec<Arc<dyn Listener>>,
    ) -> Result<Running, String> {
        let mut store = Store::create(NewSession {
            cwd: self.dirs.cwd.clone(),
            directory: None,
            id: None,
            parent_session: None,
        })
        .map_err(|error| error.to_string())?;
        let before = past.messages.len();
        for message in past.messages {
            store
                .append(NewEntry::Message(message))
                .map_err(|error| error.to_string())?;
        }
        let system_prompt: Arc<str> = past.system_prompt.unwrap_or_default().into();
        let (settled, when_settled) = oneshot::channel();
        listeners.push(Arc::new(Settling(Mutex::new(Some(settled)))));
        let config = Config {
            store,
            cwd: self.dirs.cwd.clone(),
            session_directory: None::<PathBuf>,
            model: Some(self.models.model()),
            thinking_level: self.thinking_level,
            models: Arc::clone(&self.models) as _,
            tools: pinion_tools::builtin(&self.tools, self.shell.clone()),
            active_tools: self.tools.clone(),
            added_tools: self.clips.clone(),
            tool_filter: ToolFilter::default(),
            shell: self.shell.clone(),
            system_prompt: Arc::new(move |_: &[_]| Arc::clone(&system_prompt)),
            mask: self.mask.clone(),
            settings: self.settings.clone(),
            preferences: Arc::new(Forgetful),
            expander: Arc::new(Verbatim),
            listeners,
            hooks: None,
            gate: None,
        };
        // The engine ends by itself when the last handle to it is dropped.
        let (session, _task) = Session::spawn(config);
        Ok(Running {
            session,
            when_settled,
            before,
        })
    }
}

/// An engine that runs.
pub(super) struct Running {
    session: Handle,
    when_settled: oneshot::Receiver<()>,
    /// The number of messages before the run.
    before: usize,
}

impl Running {
    /// Returns a handle to the engine, to stop it.
    pub fn session(&self) -> Handle {
        self.session.clone()
    }

    /// Sends a prompt; the error is the reason why the engine refused it.
    pub async fn ask(&self, text: String, images: Vec<Block>) -> Result<(), String> {
        let prompt = Prompt {
            images,
            ..Prompt::new(text)
        };
        match ask(&self.session, Command::Prompt(prompt)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Asks the model without a new prompt; the error is the reason why the engine refused it.
    pub async fn go_on(&self) -> Result<(), String> {
        let message = CustomMessage {
            custom_type: "go-on".to_owned(),
            // Empty, so that the model receives nothing of it.
            content: Content::Blocks(Vec::new()),
            display: false,
            details: None,
            timestamp: 0,
        };
        match ask(&self.session, Command::CustomPrompt(message)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Waits until the run has settled; returns the messages since the engine was started.
    pub async fn finish(self) -> Vec<Arc<Message>> {
        // An engine that is gone has settled too.
        let _ = self.when_settled.await;
        match ask(&self.session, Command::GetMessages).await {
            Ok(Answer::Messages(messages)) => messages.into_iter().skip(self.before).collect(),
            _ => Vec::new(),
        }
    }
}

/// Sends a command to an engine and returns its one answer.
pub(super) async fn ask(
    session: &Handle,
    command: Command,
) -> Result<Answer, pinion_agent::EngineError> {
    let (sender, answer) = oneshot::channel();
    let reply = Reply::new(move |result| {
        // Fails only if the caller no longer waits.
        let _ = sender.send(result);
    });
    session.send(command, reply).await;
    answer
        .await
        .unwrap_or(Err(pinion_agent::EngineError::Dropped))
}

/// Reports that the run has settled.
struct Settling(Mutex<Option<oneshot::Sender<()>>>);

impl Listener for Settling {
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
struct Forgetful;

impl Preferences for Forgetful {
    fn remember(&self, _changes: Vec<(&'static str, Option<Value>)>) {}
}

/// Expands nothing: a prompt is what the command file made it.
struct Verbatim;

impl Expander for Verbatim {
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
