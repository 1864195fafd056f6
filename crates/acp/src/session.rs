//! One open session: the task that plays its turns, its options and its end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinion_agent::{
    Answer, Command, Companions, Config, Delivery, Disposition, EngineError, Handle, Models,
    Prompt, Reply, Session, StateView, Stopper,
};
use pinion_approval::{Approvals, Mode};
use pinion_message::{Model, ThinkingLevel};
use pinion_sync::lock;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::commands::{self, OwnCommand};
use crate::content::{self, EnginePrompt, PromptBlock};
use crate::error::AcpError;
use crate::host::BuiltSession;
use crate::options::{self, Choices};
use crate::turns::{Stop, Waiting};
use crate::view::SessionView;

/// Time for the engine to end a cancelled turn that has not started a run; then the turn is answered.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Time for the work of a session that is closed to settle.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(800);

/// An open session.
pub(crate) struct OpenSession {
    pub view: Arc<SessionView>,
    handle: Handle,
    task: Mutex<Option<JoinHandle<()>>>,
    stopper: Stopper,
    companions: Arc<dyn Companions>,
    approvals: Arc<Approvals>,
    models: Arc<dyn Models>,
    resizes_images: bool,
    /// Held while options change; a turn begins after the changes that were requested before it.
    order: Arc<tokio::sync::Mutex<()>>,
    selected: Mutex<Selected>,
    /// The commands that the client knows.
    known_commands: Mutex<Value>,
    /// Ends the tasks of the session.
    closed: CancellationToken,
}

/// The values that the client knows.
#[derive(Clone)]
struct Selected {
    model: Option<Arc<Model>>,
    level: ThinkingLevel,
    mode: Mode,
}

impl OpenSession {
    /// Starts the engine. Must be called inside the runtime.
    pub fn start(view: &Arc<SessionView>, built: BuiltSession) -> Arc<Self> {
        let BuiltSession {
            config,
            companions,
            approvals,
        } = built;
        let Config {
            model,
            thinking_level,
            models,
            ..
        } = &config;
        let selected = Selected {
            model: model.clone(),
            level: *thinking_level,
            mode: approvals.mode(),
        };
        let models = Arc::clone(models);
        let resizes_images = config.settings.resize_prompt_images;
        let (handle, task) = Session::spawn(config);
        let session = Arc::new(Self {
            view: Arc::clone(view),
            stopper: handle.stopper(),
            handle,
            task: Mutex::new(Some(task)),
            companions,
            approvals,
            models,
            resizes_images,
            order: Arc::default(),
            selected: Mutex::new(selected),
            known_commands: Mutex::default(),
            closed: CancellationToken::new(),
        });
        session.update_window();
        session
    }

    /// Starts the tasks of the session, when the client knows it. `reports_usage` sends the size of the context first.
    pub fn serve(self: &Arc<Self>, reports_usage: bool) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = session.closed.cancelled() => {}
                () = session.play() => {}
            }
        });
        let session = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = session.closed.cancelled() => {}
                () = session.stay_current(reports_usage) => {}
            }
        });
    }

    /// Plays turns, one after another.
    async fn play(&self) {
        if let Some(begin) = self.companions.begin() {
            begin.await;
        }
        self.view.stale.notify_one();
        loop {
            let changed = self.view.changed.notified();
            let order = self.order.lock().await;
            let turn = self.view.begin_turn();
            drop(order);
            match turn {
                Some(prompt) => self.turn(prompt).await,
                None => changed.await,
            }
        }
    }

    async fn turn(&self, prompt: Vec<PromptBlock>) {
        if let Some(PromptBlock::Text(text)) = prompt.first()
            && let Some(command) = OwnCommand::read(text)
        {
            let outcome = self.own_command(command).await;
            return self.view.end_turn(outcome);
        }
        let resizes = self.resizes_images;
        let converted =
            tokio::task::spawn_blocking(move || content::convert(prompt, resizes)).await;
        let prompt = match converted {
            Ok(Ok(prompt)) => prompt,
            Ok(Err(error)) => return self.view.end_turn(Err(error)),
            Err(_) => {
                let words = "The content of the prompt could not be read.";
                return self
                    .view
                    .end_turn(Err(AcpError::internal(words, "content_failed")));
            }
        };
        self.prompt(prompt).await;
    }

    async fn prompt(&self, prompt: EnginePrompt) {
        loop {
            if self.view.is_cancelled() {
                self.view.end_turn(Ok(Stop::Cancelled));
                return self.view.send_info();
            }
            let command = Command::Prompt(Prompt {
                images: prompt.blocks.clone(),
                ..Prompt::new(prompt.text.clone())
            });
            self.view.expect_message();
            let taken = tokio::select! {
                taken = self.ask(command) => taken,
                () = self.cancelled_too_long() => Err(EngineError::AbortedEarly),
            };
            if !matches!(taken, Ok(Answer::Taken(Disposition::Started))) {
                self.view.expect_no_message();
            }
            match taken {
                Ok(Answer::Taken(Disposition::Started)) => return self.run().await,
                // The engine works for an extension.
                Err(EngineError::Busy | EngineError::Compacting) => self.idle().await,
                Ok(_) => return self.view.end_turn(Ok(Stop::EndTurn)),
                Err(EngineError::AbortedEarly) => {
                    self.view.end_turn(Ok(Stop::Cancelled));
                    return self.view.send_info();
                }
                Err(error) => return self.view.end_turn(Err(acp_error(&error))),
            }
        }
    }

    /// Waits for the end of a run, which the events report.
    async fn run(&self) {
        if self.view.is_cancelled() {
            self.abort().await;
        }
        loop {
            let changed = self.view.changed.notified();
            if !self.view.state().turns.is_active() {
                // The wake-up belongs to the next turn too.
                self.view.changed.notify_one();
                return;
            }
            changed.await;
        }
    }

    async fn idle(&self) {
        // A session that has ended is idle.
        let _ = self.ask(Command::WaitForIdle).await;
    }

    /// Returns when the turn has been cancelled and its grace period is over.
    async fn cancelled_too_long(&self) {
        loop {
            let cancelled = self.view.cancelled.notified();
            if self.view.is_cancelled() {
                break;
            }
            cancelled.await;
        }
        tokio::time::sleep(CANCEL_GRACE).await;
    }

    /// Sends a command and waits for its answer.
    pub async fn ask(&self, command: Command) -> Result<Answer, EngineError> {
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        self.handle.send(command, reply).await;
        answer.await.unwrap_or(Err(EngineError::Dropped))
    }

    async fn abort(&self) {
        // The answer comes when the work has ended, which the events report.
        self.handle.send(Command::Abort, Reply::new(|_| ())).await;
    }

    /// Adds a prompt.
    pub fn add_prompt(
        &self,
        request: Option<Value>,
        prompt: Vec<PromptBlock>,
    ) -> Result<(), AcpError> {
        self.view.state().turns.add(Waiting { request, prompt })?;
        self.view.changed.notify_one();
        Ok(())
    }

    /// Cancels the active turn and those that wait.
    pub async fn cancel(&self) {
        let (answers, is_active) = {
            let mut state = self.view.state();
            (state.turns.cancel(), state.turns.is_active())
        };
        let had_waiting = !answers.is_empty();
        self.view.answer(answers, None);
        if had_waiting {
            self.view.send_info();
        }
        if is_active || self.view.is_running() {
            self.view.cancelled.notify_waiters();
            self.abort().await;
        }
    }

    /// Cancels the turn of one request; returns false if there is none.
    pub async fn cancel_request(&self, request: &Value) -> bool {
        let cancelled = self.view.state().turns.cancel_request(request);
        match cancelled {
            None => return false,
            Some(true) => {
                self.view.cancelled.notify_waiters();
                self.abort().await;
            }
            Some(false) => self
                .view
                .answer(vec![(request.clone(), Ok(Stop::Cancelled))], None),
        }
        true
    }

    /// Adds a message to the running turn; `None` if none runs.
    pub async fn steer(&self, prompt: Vec<PromptBlock>) -> Option<Result<(), AcpError>> {
        if !self.view.is_running() && !self.view.state().turns.is_busy() {
            return None;
        }
        let resizes = self.resizes_images;
        let converted =
            tokio::task::spawn_blocking(move || content::convert(prompt, resizes)).await;
        let EnginePrompt { text, blocks } = match converted {
            Ok(Ok(prompt)) => prompt,
            Ok(Err(error)) => return Some(Err(error)),
            Err(_) => {
                return Some(Err(AcpError::internal(
                    "The message could not be read.",
                    "content_failed",
                )));
            }
        };
        self.view.expect_message();
        let queued = self.ask(Command::Queue {
            text,
            images: blocks,
            delivery: Delivery::Steer,
        });
        Some(match queued.await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.view.expect_no_message();
                Err(acp_error(&error))
            }
        })
    }

    async fn own_command(&self, command: OwnCommand) -> Result<Stop, AcpError> {
        let words = match command {
            OwnCommand::Compact(instructions) => {
                return Ok(self.compact(instructions).await);
            }
            OwnCommand::Name(name) => match self.ask(Command::SetName(name.clone())).await {
                Ok(_) => format!("The session is named \"{name}\".\n"),
                Err(error) => format!("{error}. Write /name and a name.\n"),
            },
            OwnCommand::Session => match self.ask(Command::GetStats).await {
                Ok(Answer::Stats(stats)) => session_text(&stats),
                Ok(_) => String::new(),
                Err(error) => format!("{error}\n"),
            },
            OwnCommand::Export(path) => match self.ask(Command::ExportHtml { path }).await {
                Ok(Answer::Exported(path)) => format!("The session was written to {path}.\n"),
                Ok(_) => String::new(),
                Err(error) => format!("{error}\n"),
            },
            OwnCommand::AutoCompact(Some(enabled)) => {
                match self.ask(Command::SetAutoCompaction(enabled)).await {
                    Ok(_) if enabled => "Automatic summaries are on.\n".to_owned(),
                    Ok(_) => "Automatic summaries are off.\n".to_owned(),
                    Err(error) => format!("{error}\n"),
                }
            }
            OwnCommand::AutoCompact(None) => {
                "Write /autocompact on or /autocompact off.\n".to_owned()
            }
        };
        self.view.say(&words);
        Ok(Stop::EndTurn)
    }

    async fn compact(&self, instructions: Option<String>) -> Stop {
        let answer = self.ask(Command::Compact { instructions }).await;
        let client = self.view.client();
        match answer {
            Ok(_) if !client.compaction => self.view.say("The conversation was summarised.\n"),
            Ok(_) => {}
            Err(error) if !self.view.is_cancelled() => {
                // Without the capability the events tell nothing.
                if !client.compaction {
                    self.view.say(&format!("{error}\n"));
                }
            }
            Err(_) => {}
        }
        Stop::EndTurn
    }

    async fn engine_state(&self) -> Option<StateView> {
        match self.ask(Command::GetState).await {
            Ok(Answer::State(state)) => Some(*state),
            _ => None,
        }
    }

    fn choices(&self) -> Choices {
        let selected = lock(&self.selected).clone();
        let scoped = self.models.scoped();
        let models = if scoped.is_empty() {
            self.models.available()
        } else {
            scoped.into_iter().map(|(model, _)| model).collect()
        };
        Choices {
            mode: selected.mode,
            model: selected.model,
            level: selected.level,
            models,
        }
    }

    /// Returns all options as the client sees them.
    pub fn options(&self) -> Value {
        options::options(&self.choices())
    }

    /// Returns the members of a response about the session.
    pub fn described(&self) -> Value {
        let choices = self.choices();
        json!({
            "modes": options::modes(choices.mode),
            "configOptions": options::options(&choices),
        })
    }

    /// Takes over what the engine has selected. Reports whether anything differs.
    async fn refresh(&self) -> bool {
        let Some(state) = self.engine_state().await else {
            return false;
        };
        let has_changed = {
            let mut selected = lock(&self.selected);
            let value = |model: &Option<Arc<Model>>| model.as_deref().map(options::value_of);
            let has_changed = value(&selected.model) != value(&state.model)
                || selected.level != state.thinking_level;
            selected.model = state.model;
            selected.level = state.thinking_level;
            has_changed
        };
        self.update_window();
        has_changed
    }

    fn update_window(&self) {
        let window = lock(&self.selected)
            .model
            .as_ref()
            .map(|model| model.context_window);
        self.view
            .state()
            .projection
            .set_window(window.unwrap_or_default());
    }

    /// Returns the guard under which options change in the order of the requests.
    pub fn order(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.order)
    }

    /// Sets an option. Call it with [`Self::order`] held.
    pub async fn set_option(&self, id: &str, value: &str) -> Result<(), AcpError> {
        self.view.state().is_changing = true;
        let set = match id {
            "mode" => self.set_mode(value, "value"),
            "model" => self.set_model(value).await,
            "thinking" => self.set_level(value).await,
            _ => Err(AcpError::invalid_params(format_args!(
                "there is no option \"{id}\""
            ))),
        };
        self.refresh().await;
        self.view.state().is_changing = false;
        set
    }

    /// Sets the mode; `what` names it in the error.
    pub fn set_mode(&self, name: &str, what: &str) -> Result<(), AcpError> {
        let unknown = || AcpError::invalid_params(format_args!("there is no {what} \"{name}\""));
        let mode = Mode::named(name).ok_or_else(unknown)?;
        self.approvals.set_mode(mode);
        lock(&self.selected).mode = mode;
        Ok(())
    }

    async fn set_model(&self, value: &str) -> Result<(), AcpError> {
        let unknown = || AcpError::invalid_params(format_args!("there is no model \"{value}\""));
        let (provider, id) = value.split_once('/').ok_or_else(unknown)?;
        let set = self.ask(Command::SetModel {
            provider: provider.to_owned(),
            id: id.to_owned(),
        });
        match set.await {
            Ok(_) => Ok(()),
            Err(EngineError::ModelNotFound { .. } | EngineError::NoKeyForModel { .. }) => {
                Err(unknown())
            }
            Err(error) => Err(acp_error(&error)),
        }
    }

    async fn set_level(&self, value: &str) -> Result<(), AcpError> {
        let unknown =
            || AcpError::invalid_params(format_args!("there is no thinking level \"{value}\""));
        let level: ThinkingLevel = value.parse().map_err(|_| unknown())?;
        let model = lock(&self.selected).model.clone();
        let levels = model
            .map(|model| model.thinking_levels())
            .unwrap_or_default();
        if !levels.contains(&level) {
            return Err(unknown());
        }
        let set = self.ask(Command::SetThinkingLevel(Some(level))).await;
        set.map(|_| ()).map_err(|error| acp_error(&error))
    }

    /// Sends the mode in its older form.
    pub fn send_mode(&self) {
        let mode = lock(&self.selected).mode;
        self.view.state().projection.mode(mode.name());
    }

    /// Sends all options.
    pub fn send_options(&self) {
        let options = self.options();
        self.view.state().projection.options(&options);
    }

    /// Sends commands and options whenever they differ from those that the client knows.
    async fn stay_current(&self, mut reports_usage: bool) {
        loop {
            self.view.stale.notified().await;
            if let Ok(Answer::Commands(list)) = self.ask(Command::GetCommands).await {
                let list = commands::list(&list);
                let mut known = lock(&self.known_commands);
                if *known != list {
                    self.view.send_commands(&list);
                    *known = list;
                }
            }
            let order = self.order.lock().await;
            let has_changed = self.refresh().await;
            drop(order);
            if has_changed {
                self.send_options();
            }
            if std::mem::take(&mut reports_usage) {
                self.send_usage().await;
            }
        }
    }

    /// Sends the size of the context, if it is known.
    async fn send_usage(&self) {
        if let Ok(Answer::Stats(stats)) = self.ask(Command::GetStats).await {
            let tokens = stats.context_usage.and_then(|usage| usage.tokens);
            let mut state = self.view.state();
            state.projection.spent(stats.cost);
            if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
                state.projection.context(tokens);
            }
        }
    }

    /// Stops all work, answers every prompt, and ends the session and its companions.
    pub async fn close(&self) {
        self.view.state().turns.close();
        self.cancel().await;
        if self.view.state().turns.is_busy() {
            let settled = async {
                while self.view.state().turns.is_busy() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            // A turn that does not settle in time is answered as cancelled.
            let _ = tokio::time::timeout(SETTLE_TIMEOUT, settled).await;
        }
        for participant in self.companions.participants() {
            participant.hang_up();
        }
        self.companions.end().await;
        self.stopper.stop();
        let task = lock(&self.task).take();
        if let Some(task) = task {
            // A session that does not settle in time is abandoned; its file is valid at any moment.
            let _ = tokio::time::timeout(SETTLE_TIMEOUT, task).await;
        }
        self.closed.cancel();
        let mut state = self.view.state();
        if state.turns.is_active() {
            let answers = state.turns.end(Ok(Stop::Cancelled));
            drop(state);
            self.view.answer(answers, None);
        }
    }
}

impl std::fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenSession").field(&self.view).finish()
    }
}

fn session_text(stats: &pinion_agent::Stats) -> String {
    let tokens = &stats.tokens;
    let mut text = format!(
        "- Session: {}\n- Messages: {}\n- Tool calls: {}\n- Tokens: {} in, {} out, {} read from caches\n- Cost: ${:.4}\n",
        stats.session_id,
        stats.total_messages,
        stats.tool_calls,
        tokens.input,
        tokens.output,
        tokens.cache_read,
        stats.cost
    );
    if let Some(file) = &stats.session_file {
        text.push_str(&format!("- File: {file}\n"));
    }
    text
}

/// Converts an error of the engine.
fn acp_error(error: &EngineError) -> AcpError {
    match error {
        EngineError::NoModel | EngineError::Credentials(_) | EngineError::NoKeyForModel { .. } => {
            AcpError::authentication_required(error)
        }
        error => AcpError::internal(error.to_string(), error.code()),
    }
}
