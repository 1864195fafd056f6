//! A chat's conversation: prompts, one at a time, each a turn after those before.

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

use super::screen::Screen;
use crate::pinocchio::conversation::Conversation;
use crate::pinocchio::running::Runner;

/// The largest number of commands of the chat that may wait.
const INBOX: usize = 256;

type Order = (Command, Reply);

/// The chat's connection to the conversation. Dropping it ends the conversation.
pub(super) struct Line {
    inbox: mpsc::Sender<Order>,
}

/// The other end of a [`Line`].
pub(super) struct Orders(mpsc::Receiver<Order>);

/// Makes a line and its other end.
pub(super) fn line() -> (Line, Orders) {
    let (inbox, orders) = mpsc::channel(INBOX);
    (Line { inbox }, Orders(orders))
}

impl Host for Line {
    fn send(&self, command: Command, reply: Reply) {
        // A reply that is dropped answers by itself.
        let _ = self.inbox.try_send((command, reply));
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
pub(super) struct Talk<'a> {
    runner: &'a Runner,
    screen: Arc<Screen>,
    /// The conversation, while no run uses it.
    idle: Option<Conversation>,
    active: Option<Active<'a>>,
    session_id: Text,
    /// The replies that wait for the end of the run.
    waiting: Vec<Reply>,
    /// The end of the last run.
    last: Option<RunEnd>,
}

/// A prompt that is being answered.
struct Active<'a> {
    stop: CancellationToken,
    run: BoxFuture<'a, (Conversation, RunEnd)>,
    prompt: Vec<Block>,
}

impl<'a> Talk<'a> {
    pub fn new(runner: &'a Runner, screen: Arc<Screen>, mut conversation: Conversation) -> Self {
        conversation.listeners = vec![Arc::clone(&screen) as _];
        Self {
            runner,
            screen,
            session_id: conversation.session_id.clone(),
            idle: Some(conversation),
            active: None,
            waiting: Vec::new(),
            last: None,
        }
    }

    /// Answers commands until the line is dropped, then stops the active run. Returns the end of the last run.
    pub async fn live(mut self, mut orders: Orders) -> Option<RunEnd> {
        loop {
            tokio::select! {
                (conversation, end) = ended(&mut self.active) => self.settle(conversation, end),
                order = orders.0.recv() => match order {
                    Some((command, reply)) => self.order(command, reply),
                    None => break,
                },
            }
        }
        if let Some(active) = &mut self.active {
            active.stop.cancel();
            let (conversation, end) = (&mut active.run).await;
            self.settle(conversation, end);
        }
        self.last
    }

    /// Ends a run whose turn is stored.
    fn settle(&mut self, conversation: Conversation, end: RunEnd) {
        self.idle = Some(conversation);
        let active = self.active.take();
        let prompt = active.map(|active| active.prompt).unwrap_or_default();
        self.screen.end(prompt, &end);
        self.last = Some(end);
        for reply in self.waiting.drain(..) {
            reply.done();
        }
    }

    fn order(&mut self, command: Command, reply: Reply) {
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
        let runner = self.runner;
        let run = async move {
            let request = Text::default();
            let end = conversation
                .run(runner, turn, request, Closing::Nothing, stopped)
                .await;
            (conversation, end)
        };
        let mut said = vec![Block::text(text)];
        said.extend(images);
        self.screen.begin();
        self.active = Some(Active {
            stop,
            run: Box::pin(run),
            prompt: said,
        });
        reply.send(Ok(Answer::Taken(Disposition::Started)));
    }

    /// Answers the commands that need no run.
    fn view(&self, command: &Command) -> Result<Answer, EngineError> {
        Ok(match command {
            Command::GetMessages => Answer::Messages(self.screen.messages()),
            Command::GetState => Answer::State(Box::new(self.state())),
            Command::GetStats => Answer::Stats(Box::new(self.stats())),
            Command::GetLastAssistantText => Answer::Text(self.last_text()),
            Command::GetAvailableModels => Answer::Models(vec![Arc::clone(self.screen.model())]),
            Command::GetThinkingLevels => Answer::Levels(vec![self.runner.thinking_level]),
            Command::GetCommands => Answer::Commands(json!([])),
            Command::ClearQueue => Answer::Queues {
                steering: Vec::new(),
                follow_up: Vec::new(),
            },
            other => return Err(refused(not_here(other))),
        })
    }

    fn state(&self) -> StateView {
        StateView {
            model: Some(Arc::clone(self.screen.model())),
            thinking_level: self.runner.thinking_level,
            is_streaming: self.active.is_some(),
            is_compacting: false,
            steering_mode: None,
            follow_up_mode: None,
            session_file: None,
            session_id: self.session_id.to_string(),
            session_name: None,
            auto_compaction_enabled: false,
            message_count: self.screen.messages().len(),
            pending_message_count: 0,
        }
    }

    fn stats(&self) -> Stats {
        let messages = self.screen.messages();
        let counted = |answer: &&AssistantMessage| {
            let is_whole = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            is_whole && answer.usage.context_tokens() > 0
        };
        let mut answers = messages.iter().rev().filter_map(|it| it.as_assistant());
        let last = answers.find(counted);
        let tokens = last.map(|answer| answer.usage.context_tokens());
        let window = self.screen.model().context_window;
        Stats {
            session_id: self.session_id.to_string(),
            context_usage: Some(ContextUsage::new(tokens, window)),
            ..pinion_session::stats(messages.iter().map(|message| &**message))
        }
    }

    fn last_text(&self) -> Option<String> {
        let messages = self.screen.messages();
        let answers = messages.iter().rev().filter_map(|it| it.as_assistant());
        let mut texts = answers.map(|answer| answer.joined_text("").trim().to_owned());
        texts.find(|text| !text.is_empty())
    }
}

const ONE_AT_A_TIME: &str =
    "One prompt at a time: the last one is still being answered. Wait, or stop it with Esc.";
const ONE_CONVERSATION: &str = "The chat of a command is one conversation without branches. Start the command again with another --session-id, or with --resume to go on.";

/// Returns the reason why such a chat cannot run a command.
fn not_here(command: &Command) -> &'static str {
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

fn refused(words: &str) -> EngineError {
    EngineError::Unsupported(words.to_owned())
}

/// Waits for the end of the active run; never completes if there is none.
async fn ended(active: &mut Option<Active<'_>>) -> (Conversation, RunEnd) {
    match active {
        Some(active) => active.run.as_mut().await,
        None => std::future::pending().await,
    }
}
