//! The host of the chat: answers its commands and runs its prompts, one at a time, each a turn after those before.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Answer, Command, Disposition, EngineError, Prompt, Reply, StateView};
use pinion_message::{AssistantMessage, Block, StopReason};
use pinion_pinocchio::{Closing, RunEnd, Text, with_prompt_and_images};
use pinion_session::{ContextUsage, SessionInfo, Stats};
use pinion_tui::{Abilities, Host, SessionScope};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::events::ChatEvents;
use crate::conversation::Conversation;
use crate::engine::Engine;

/// The largest number of commands of the chat that may wait.
const WAITING_COMMANDS: usize = 256;

/// The chat's end of the channel to its session. Dropping it ends the session.
pub(super) struct ChatHost(mpsc::Sender<(Command, Reply)>);

/// The session's end of the channel.
pub(super) struct ChatCommands(mpsc::Receiver<(Command, Reply)>);

pub(super) fn channel() -> (ChatHost, ChatCommands) {
    let (sender, receiver) = mpsc::channel(WAITING_COMMANDS);
    (ChatHost(sender), ChatCommands(receiver))
}

impl Host for ChatHost {
    fn send(&self, command: Command, reply: Reply) {
        // A reply that is dropped answers by itself.
        let _ = self.0.try_send((command, reply));
    }

    /// Ignores the response: no extension asks anything in such a chat.
    fn answer(&self, _id: &str, _response: Map<String, Value>) {}

    fn sessions(
        &self,
        _scope: SessionScope,
    ) -> BoxFuture<'static, Result<Vec<SessionInfo>, String>> {
        Box::pin(std::future::ready(Err(ONE_CONVERSATION.to_owned())))
    }

    fn abilities(&self) -> Abilities {
        Abilities::Turns
    }
}

/// The conversation behind a chat.
pub(super) struct ChatSession<'a> {
    engine: &'a Engine,
    events: Arc<ChatEvents>,
    /// The conversation, while no run uses it.
    idle: Option<Conversation>,
    active: Option<Active<'a>>,
    session_id: Text,
    /// The replies that wait for the end of the run.
    waiting: Vec<Reply>,
    last_run: Option<RunEnd>,
}

/// A prompt that is being answered.
struct Active<'a> {
    stop: CancellationToken,
    run: BoxFuture<'a, (Conversation, RunEnd)>,
    prompt: Vec<Block>,
}

impl<'a> ChatSession<'a> {
    pub fn new(
        engine: &'a Engine,
        events: Arc<ChatEvents>,
        mut conversation: Conversation,
    ) -> Self {
        conversation.listeners = vec![Arc::clone(&events) as _];
        Self {
            engine,
            events,
            session_id: conversation.session_id.clone(),
            idle: Some(conversation),
            active: None,
            waiting: Vec::new(),
            last_run: None,
        }
    }

    /// Answers commands until the host is dropped, then stops the active run. Returns the end of the last run.
    pub async fn serve(mut self, mut commands: ChatCommands) -> Option<RunEnd> {
        loop {
            tokio::select! {
                (conversation, end) = ended(&mut self.active) => self.settle(conversation, end),
                received = commands.0.recv() => match received {
                    Some((command, reply)) => self.answer(command, reply),
                    None => break,
                },
            }
        }
        if let Some(active) = &mut self.active {
            active.stop.cancel();
            let (conversation, end) = (&mut active.run).await;
            self.settle(conversation, end);
        }
        self.last_run
    }

    /// Ends a run whose turn is stored.
    fn settle(&mut self, conversation: Conversation, end: RunEnd) {
        self.idle = Some(conversation);
        let active = self.active.take();
        let prompt = active.map(|active| active.prompt).unwrap_or_default();
        self.events.end(prompt, &end);
        self.last_run = Some(end);
        for reply in self.waiting.drain(..) {
            reply.done();
        }
    }

    fn answer(&mut self, command: Command, reply: Reply) {
        match command {
            Command::Prompt(prompt) => self.prompt(prompt, reply),
            Command::Abort => {
                if let Some(active) = &self.active {
                    active.stop.cancel();
                }
                self.when_settled(reply);
            }
            Command::WaitForIdle => self.when_settled(reply),
            Command::Noop => reply.done(),
            command => reply.send(self.view(&command)),
        }
    }

    fn when_settled(&mut self, reply: Reply) {
        match self.active {
            Some(_) => self.waiting.push(reply),
            None => reply.done(),
        }
    }

    fn prompt(&mut self, prompt: Prompt, reply: Reply) {
        let Prompt { text, images, .. } = prompt;
        if text.trim().is_empty() && images.is_empty() {
            return reply.send(Err(refused("There is nothing in the prompt to send.")));
        }
        let Some(mut conversation) = self.idle.take() else {
            return reply.send(Err(refused(ONE_AT_A_TIME)));
        };
        let turn = with_prompt_and_images(&conversation.base, &text, &images);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let engine = self.engine;
        let run = async move {
            let request = Text::default();
            let end = conversation
                .run(engine, turn, request, Closing::Nothing, stopped)
                .await;
            (conversation, end)
        };
        let mut prompt = vec![Block::text(text)];
        prompt.extend(images);
        self.events.begin();
        self.active = Some(Active {
            stop,
            run: Box::pin(run),
            prompt,
        });
        reply.send(Ok(Answer::Taken(Disposition::Started)));
    }

    /// Answers the commands that need no run.
    fn view(&self, command: &Command) -> Result<Answer, EngineError> {
        Ok(match command {
            Command::GetMessages => Answer::Messages(self.events.messages()),
            Command::GetState => Answer::State(Box::new(self.state())),
            Command::GetStats => Answer::Stats(Box::new(self.stats())),
            Command::GetLastAssistantText => Answer::Text(self.last_text()),
            Command::GetAvailableModels => Answer::Models(vec![Arc::clone(self.events.model())]),
            Command::GetThinkingLevels => Answer::Levels(vec![self.engine.thinking_level]),
            Command::GetCommands => Answer::Commands(json!([])),
            Command::ClearQueue => Answer::Queues {
                steering: Vec::new(),
                follow_up: Vec::new(),
            },
            other => return Err(refused(unsupported(other))),
        })
    }

    fn state(&self) -> StateView {
        StateView {
            model: Some(Arc::clone(self.events.model())),
            thinking_level: self.engine.thinking_level,
            is_streaming: self.active.is_some(),
            is_compacting: false,
            steering_mode: None,
            follow_up_mode: None,
            session_file: None,
            session_id: self.session_id.to_string(),
            session_name: None,
            auto_compaction_enabled: false,
            message_count: self.events.messages().len(),
            pending_message_count: 0,
        }
    }

    fn stats(&self) -> Stats {
        let messages = self.events.messages();
        let counted = |answer: &&AssistantMessage| {
            let is_whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            is_whole && answer.usage.context_tokens() > 0
        };
        let mut answers = messages.iter().rev().filter_map(|it| it.as_assistant());
        let last = answers.find(counted);
        let tokens = last.map(|answer| answer.usage.context_tokens());
        let window = self.events.model().context_window;
        Stats {
            session_id: self.session_id.to_string(),
            context_usage: Some(ContextUsage::new(tokens, window)),
            ..pinion_session::stats(messages.iter().map(|message| &**message))
        }
    }

    fn last_text(&self) -> Option<String> {
        let messages = self.events.messages();
        let answers = messages.iter().rev().filter_map(|it| it.as_assistant());
        let mut texts = answers.map(|answer| answer.joined_text("").trim().to_owned());
        texts.find(|text| !text.is_empty())
    }
}

const ONE_AT_A_TIME: &str =
    "One prompt at a time: the last one is still being answered. Wait, or stop it with Esc.";
const ONE_CONVERSATION: &str = "The chat of a command is one conversation without branches. Start the command again with another --session-id, or with --resume to go on.";

/// Returns the reason why such a chat cannot run a command.
fn unsupported(command: &Command) -> &'static str {
    match command {
        Command::Queue { .. } | Command::CustomPrompt { .. } => ONE_AT_A_TIME,
        Command::SetModel { .. } | Command::CycleModel => {
            "The model is chosen when the command starts: leave, and start it with another --profile or --ai-engine."
        }
        Command::SetThinkingLevel(_) | Command::CycleThinkingLevel => {
            "How much the model thinks is chosen when the command starts: leave, and start it with another profile or --inference-reasoning-effort."
        }
        Command::NewSession { .. }
        | Command::SwitchSession { .. }
        | Command::Fork { .. }
        | Command::CloneSession
        | Command::GetForkMessages
        | Command::Navigate(_)
        | Command::SetLabel { .. }
        | Command::SetName(_)
        | Command::GetEntries { .. }
        | Command::GetTree => ONE_CONVERSATION,
        Command::Compact { .. } => {
            "The chat of a command keeps its turns as they were said and does not compact them."
        }
        Command::Bash { .. } | Command::AbortBash => {
            "The chat of a command runs no shell commands for you. With --tools bash the model can."
        }
        Command::ExportHtml { .. } => {
            "Turns are exported from their database: pinion turns export --turns-db FILE --session ID -o talk.html"
        }
        _ => "The chat of a command has nothing of the kind.",
    }
}

fn refused(reason: &str) -> EngineError {
    EngineError::Unsupported(reason.to_owned())
}

/// Waits for the end of the active run; never completes if there is none.
async fn ended(active: &mut Option<Active<'_>>) -> (Conversation, RunEnd) {
    match active {
        Some(active) => active.run.as_mut().await,
        None => std::future::pending().await,
    }
}
