//! The way of a prompt or a session change through the hooks into a run, a queue or a replacement.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, CustomMessage, Message, UserMessage, now_millis};
use serde_json::Value;
use tracing::Instrument;

use super::{Actor, WaitingWork};
use crate::hooks::{Input, InputOutcome, Moment, Origin, RunStart, RunStartChanges};
use crate::spans;
use crate::state::Phase;
use crate::{Answer, Command, Delivery, Disposition, EngineError, Event, Prompt, Reply};

/// A command that the hooks decide about first.
pub(super) enum HookedCommand {
    Prompt(Prompt, Reply),
    Queue(QueuedInput, Reply),
    /// A message of a hook that starts a run.
    CustomRun(Arc<Message>, Reply),
    Replace(Command, Reply),
}

/// A message of a client for a queue.
pub(super) struct QueuedInput {
    pub text: String,
    pub images: Vec<Block>,
    pub delivery: Delivery,
}

/// The hooks' decision about a command.
pub(super) enum HookDecision {
    /// The prompt continues; hooks may have changed it.
    Prompt(Prompt, Reply),
    /// The message enters its queue; hooks may have changed it.
    Queue(QueuedInput, Reply),
    /// A hook has handled the prompt.
    Handled(Reply),
    /// The run starts.
    Run(RunInput, Reply),
    /// The session may be replaced (`true`), or a hook refused.
    Replace(Command, Reply, bool),
}

/// The messages and the system prompt of a run.
pub(super) struct RunInput {
    messages: Vec<Arc<Message>>,
    system_prompt: Option<Arc<str>>,
    hidden_tools: Vec<String>,
}

impl Actor {
    pub(super) fn prompt(&mut self, prompt: Prompt, reply: Reply) {
        if self.core.hooks.is_none() {
            return self.accept_prompt(prompt, reply);
        }
        if (prompt.origin == Origin::Client || prompt.expands)
            && let Some(command) = self.command(&prompt.text)
        {
            self.background.push(Box::pin(async move {
                command.await;
                // Commands that the hook sent start before the prompt is answered.
                tokio::task::yield_now().await;
                reply.send(Ok(Answer::Taken(Disposition::Handled)));
            }));
            return;
        }
        self.hooked_commands
            .push_back(HookedCommand::Prompt(prompt, reply));
        self.ask_next_hook();
    }

    /// Returns the hook command that `text` calls.
    fn command(&self, text: &str) -> Option<BoxFuture<'static, ()>> {
        let (name, arguments) = split_command(text)?;
        self.core.hooks.as_ref()?.command(name, arguments)
    }

    /// Asks the hooks whether the session may be replaced, and only then stops the current work.
    pub(super) fn ask_to_replace_first(&mut self, command: Command, reply: Reply) {
        if self.core.hooks.is_none() {
            return self.replace_if_possible(command, reply);
        }
        self.hooked_commands
            .push_back(HookedCommand::Replace(command, reply));
        self.ask_next_hook();
    }

    fn replace_if_possible(&mut self, command: Command, reply: Reply) {
        match self.core.can_replace(&command) {
            Ok(()) => self.run_exclusively(WaitingWork::Replace(command, reply)),
            Err(error) => reply.send(Err(error)),
        }
    }

    fn ask_next_hook(&mut self) {
        while self.hook_decision.is_none() {
            match self.hooked_commands.pop_front() {
                None => return,
                Some(HookedCommand::Prompt(prompt, reply)) => self.ask_input_hook(prompt, reply),
                Some(HookedCommand::Queue(input, reply)) => self.ask_about_queued(input, reply),
                Some(HookedCommand::CustomRun(message, reply)) => {
                    self.ask_before_custom_run(message, reply);
                }
                Some(HookedCommand::Replace(command, reply)) => self.ask_to_replace(command, reply),
            }
        }
    }

    fn ask_input_hook(&mut self, prompt: Prompt, reply: Reply) {
        let hooks = self.core.hook(Moment::Input).cloned();
        // Hooks do not see prompts of hooks.
        let Some(hooks) = hooks.filter(|_| prompt.origin == Origin::Client) else {
            return self.accept_prompt(prompt, reply);
        };
        let is_streaming = self.core.state().is_streaming();
        self.hook_decision = Some(Box::pin(async move {
            let mut prompt = prompt;
            let input = Input {
                text: std::mem::take(&mut prompt.text),
                images: std::mem::take(&mut prompt.images),
                delivery: prompt.when_busy.filter(|_| is_streaming),
            };
            match hooks.input(input).await {
                InputOutcome::Handled => HookDecision::Handled(reply),
                InputOutcome::Continue { text, images } => HookDecision::Prompt(
                    Prompt {
                        text,
                        images,
                        ..prompt
                    },
                    reply,
                ),
            }
        }));
    }

    fn ask_about_queued(&mut self, input: QueuedInput, reply: Reply) {
        let Some(hooks) = self.core.hook(Moment::Input).cloned() else {
            return self.queue_input(input, reply);
        };
        self.hook_decision = Some(Box::pin(async move {
            let QueuedInput {
                text,
                images,
                delivery,
            } = input;
            let asked = Input {
                text,
                images,
                delivery: Some(delivery),
            };
            match hooks.input(asked).await {
                InputOutcome::Handled => HookDecision::Handled(reply),
                InputOutcome::Continue { text, images } => {
                    let input = QueuedInput {
                        text,
                        images,
                        delivery,
                    };
                    HookDecision::Queue(input, reply)
                }
            }
        }));
    }

    fn ask_before_custom_run(&mut self, message: Arc<Message>, reply: Reply) {
        if self.core.state().is_streaming() {
            return self.queue(message, Delivery::Steer, reply);
        }
        let hooks = self.core.hook(Moment::BeforeRun).cloned();
        let (Some(hooks), Message::Custom(custom)) = (hooks, &*message) else {
            let start = run_input(&self.core, message, RunStartChanges::default());
            return self.start_when_free(start, reply);
        };
        let opening = RunStart {
            prompt: String::new(),
            images: Vec::new(),
            custom: Some(custom.clone()),
            system_prompt: self.core.toolbox().system_prompt(),
        };
        let core = Arc::clone(&self.core);
        self.hook_decision = Some(Box::pin(async move {
            let changes = hooks.before_run(opening).await;
            HookDecision::Run(run_input(&core, message, changes), reply)
        }));
    }

    fn ask_to_replace(&mut self, command: Command, reply: Reply) {
        let change = self.core.replacement(&command);
        let hooks = self.core.hook(Moment::BeforeReplace).cloned();
        let (Some(hooks), Some(change)) = (hooks, change) else {
            return self.replace_if_possible(command, reply);
        };
        self.hook_decision = Some(Box::pin(async move {
            let permitted = hooks.before_replace(&change).await;
            HookDecision::Replace(command, reply, permitted)
        }));
    }

    pub(super) fn admit(&mut self, admitted: HookDecision) {
        self.hook_decision = None;
        match admitted {
            HookDecision::Handled(reply) => reply.send(Ok(Answer::Taken(Disposition::Handled))),
            HookDecision::Prompt(prompt, reply) => self.accept_prompt(prompt, reply),
            HookDecision::Queue(input, reply) => self.queue_input(input, reply),
            HookDecision::Run(start, reply) => self.start_when_free(start, reply),
            HookDecision::Replace(command, reply, true) => self.replace_if_possible(command, reply),
            HookDecision::Replace(command, reply, false) => reply.send(Ok(match command {
                Command::Fork { .. } => Answer::Forked {
                    text: None,
                    cancelled: true,
                },
                _ => Answer::Cancelled(true),
            })),
        }
        self.ask_next_hook();
    }

    /// Queues a prompt, or starts a run with it.
    fn accept_prompt(&mut self, prompt: Prompt, reply: Reply) {
        let Prompt {
            text,
            images,
            mut attachments,
            when_busy,
            origin,
            expands,
        } = prompt;
        let blocks = if origin == Origin::Client || expands {
            self.expand(&text, images)
        } else {
            self.masked(text, images)
        };
        if let Some(attachments) = &mut attachments {
            self.core.mask.value(attachments);
        }
        let phase = self.core.state().phase.clone();
        match (&phase, when_busy) {
            (Phase::Running, Some(delivery)) => {
                return self.queue(user(blocks, attachments), delivery, reply);
            }
            (Phase::Running, None) => return reply.send(Err(EngineError::Busy)),
            (Phase::Compacting, _) => return reply.send(Err(EngineError::Compacting)),
            (Phase::RetryWait(_) | Phase::Between | Phase::AutoCompacting | Phase::Idle, _) => {}
        }
        if let Err(error) = self.core.ready_to_ask() {
            return reply.send(Err(error));
        }
        if let Phase::RetryWait(wait) = phase {
            // The prompt replaces the retry, which ends first.
            wait.cancel();
        }
        match self.core.hook(Moment::BeforeRun).cloned() {
            None => {
                let message = user(blocks, attachments);
                let start = run_input(&self.core, message, RunStartChanges::default());
                self.start_when_free(start, reply);
            }
            Some(hooks) => {
                let opening = RunStart {
                    prompt: joined_text(&blocks),
                    images: blocks.iter().skip(1).cloned().collect(),
                    custom: None,
                    system_prompt: self.core.toolbox().system_prompt(),
                };
                let core = Arc::clone(&self.core);
                self.hook_decision = Some(Box::pin(async move {
                    let changes = hooks.before_run(opening).await;
                    let message = user(blocks, attachments);
                    HookDecision::Run(run_input(&core, message, changes), reply)
                }));
            }
        }
    }

    fn start_when_free(&mut self, start: RunInput, reply: Reply) {
        if self.work.is_some() {
            self.waiting.push_back(WaitingWork::Prompt(start, reply));
        } else {
            self.start_prompt(start, reply);
        }
    }

    pub(super) fn start_prompt(&mut self, start: RunInput, reply: Reply) {
        self.finish_background();
        let held = self.core.release_held_bash();
        let span = spans::run();
        // The trace of the caller continues in the run; the log shows the session only.
        span.follows_from(reply.caller());
        reply.send(Ok(Answer::Taken(Disposition::Started)));
        let mut messages = start.messages;
        {
            let mut state = self.core.state();
            let at = messages.len().min(1);
            messages.splice(at..at, state.next_turn.drain(..));
            state.run_prompt = start.system_prompt;
            state.hidden_tools = start.hidden_tools;
            // From here on a second prompt is rejected as busy.
            state.phase = Phase::Running;
        }
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| {
            let run = async move {
                core.save(held, &cancel).await;
                core.process_prompt(messages, cancel).await;
            };
            run.instrument(span)
        });
    }

    fn expand(&self, text: &str, images: Vec<Block>) -> Vec<Block> {
        let expanded = self.core.expander.expand(text);
        if let Some((source, error)) = expanded.fault {
            self.core.emit(Event::Fault {
                source,
                during: "skill_expansion".into(),
                error,
            });
        }
        self.masked(expanded.text, images)
    }

    fn masked(&self, text: String, images: Vec<Block>) -> Vec<Block> {
        let mut blocks = vec![Block::text(text)];
        blocks.extend(images);
        self.core.mask.blocks(&mut blocks);
        blocks
    }

    pub(super) fn queue_text(
        &mut self,
        text: &str,
        images: Vec<Block>,
        delivery: Delivery,
        reply: Reply,
    ) {
        if self.command(text).is_some() {
            let (name, _) = split_command(text).unwrap_or_default();
            return reply.send(Err(EngineError::CommandQueued(name.to_owned())));
        }
        let input = QueuedInput {
            text: text.to_owned(),
            images,
            delivery,
        };
        if self.core.hooks.is_none()
            || !self.core.settings.behaviour.ask_hooks_about_queued_messages
        {
            return self.queue_input(input, reply);
        }
        self.hooked_commands
            .push_back(HookedCommand::Queue(input, reply));
        self.ask_next_hook();
    }

    fn queue_input(&mut self, input: QueuedInput, reply: Reply) {
        let blocks = self.expand(&input.text, input.images);
        self.queue(user(blocks, None), input.delivery, reply);
    }

    fn queue(&mut self, message: Arc<Message>, delivery: Delivery, reply: Reply) {
        let queued = self.core.queue(message, delivery);
        reply.send(queued.map(|()| Answer::Taken(Disposition::Queued)));
    }

    /// Starts a run with a message of a hook, or steers the active run with it.
    pub(super) fn run_custom_message(&mut self, message: CustomMessage, reply: Reply) {
        if let Err(error) = self.core.ready_to_ask() {
            return reply.send(Err(error));
        }
        let message = self.core.stamped(message);
        if self.core.state().is_streaming() {
            return self.queue(message, Delivery::Steer, reply);
        }
        if self.core.settings.behaviour.ask_hooks_about_custom_runs {
            self.hooked_commands
                .push_back(HookedCommand::CustomRun(message, reply));
            return self.ask_next_hook();
        }
        let start = run_input(&self.core, message, RunStartChanges::default());
        self.start_when_free(start, reply);
    }
}

fn run_input(
    core: &crate::core::Core,
    message: Arc<Message>,
    changes: RunStartChanges,
) -> RunInput {
    let mut messages = vec![message];
    for mut message in changes.messages {
        message.timestamp = now_millis();
        core.mask.content(&mut message.content);
        messages.push(Arc::new(Message::Custom(message)));
    }
    RunInput {
        messages,
        system_prompt: changes.system_prompt.map(Into::into),
        hidden_tools: changes.hidden_tools,
    }
}

fn user(blocks: Vec<Block>, attachments: Option<Value>) -> Arc<Message> {
    Arc::new(Message::User(UserMessage {
        attachments,
        ..UserMessage::now(blocks)
    }))
}

fn joined_text(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

/// Splits `/name arguments`. The name ends at the first space; the arguments are not changed.
fn split_command(text: &str) -> Option<(&str, &str)> {
    let call = text.strip_prefix('/')?;
    Some(call.split_once(' ').unwrap_or((call, "")))
}
