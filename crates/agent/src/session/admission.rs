//! How something said enters a session: past who takes part in it, into a run or a queue.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Block, CustomMessage, Message, UserMessage, now_millis};
use serde_json::Value;

use super::{Actor, Waiting};
use crate::hooks::{Input, InputOutcome, Moment, Opening, OpeningChanges, Origin};
use crate::state::Phase;
use crate::{Answer, Command, Delivery, Disposition, EngineError, Event, Prompt, Reply};

/// Something who takes part must see first.
pub(super) enum Arrival {
    Prompt(Prompt, Reply),
    /// A change of session.
    Replace(Command, Reply),
}

/// What who takes part made of it.
pub(super) enum Admitted {
    /// It is said, perhaps in other words.
    Said(Prompt, Reply),
    /// It was dealt with.
    Handled(Reply),
    /// The run may start.
    Opened(Start, Reply),
    /// The session may be replaced, or not.
    Replace(Command, Reply, bool),
}

/// How a run starts.
pub(super) struct Start {
    messages: Vec<Arc<Message>>,
    system_prompt: Option<Arc<str>>,
}

impl Actor {
    pub(super) fn prompt(&mut self, prompt: Prompt, reply: Reply) {
        if self.core.hooks.is_none() {
            return self.said(prompt, reply);
        }
        if prompt.origin == Origin::Client
            && let Some(command) = self.command(&prompt.text)
        {
            self.beside.push(Box::pin(async move {
                command.await;
                // What it asked of the session begins before it is answered.
                tokio::task::yield_now().await;
                reply.send(Ok(Answer::Taken(Disposition::Handled)));
            }));
            return;
        }
        self.arrivals.push_back(Arrival::Prompt(prompt, reply));
        self.next_arrival();
    }

    /// The command of who takes part that `text` calls.
    fn command(&self, text: &str) -> Option<BoxFuture<'static, ()>> {
        let (name, arguments) = split_command(text)?;
        self.core.hooks.as_ref()?.command(name, arguments)
    }

    /// Asks first whether the session may be replaced, then stops what goes on for it.
    pub(super) fn replace_if_permitted(&mut self, command: Command, reply: Reply) {
        if self.core.hooks.is_none() {
            return self.replace_if_possible(command, reply);
        }
        self.arrivals.push_back(Arrival::Replace(command, reply));
        self.next_arrival();
    }

    fn replace_if_possible(&mut self, command: Command, reply: Reply) {
        match self.core.can_replace(&command) {
            Ok(()) => self.exclusively(Waiting::Replace(command, reply)),
            Err(error) => reply.send(Err(error)),
        }
    }

    fn next_arrival(&mut self) {
        while self.arriving.is_none() {
            match self.arrivals.pop_front() {
                None => return,
                Some(Arrival::Prompt(prompt, reply)) => self.hear(prompt, reply),
                Some(Arrival::Replace(command, reply)) => self.ask_to_replace(command, reply),
            }
        }
    }

    fn hear(&mut self, prompt: Prompt, reply: Reply) {
        let hooks = self.core.hook(Moment::Input).cloned();
        // Those who take part have heard their own words.
        let Some(hooks) = hooks.filter(|_| prompt.origin == Origin::Client) else {
            return self.said(prompt, reply);
        };
        self.arriving = Some(Box::pin(async move {
            let mut prompt = prompt;
            let input = Input {
                text: std::mem::take(&mut prompt.text),
                images: std::mem::take(&mut prompt.images),
            };
            match hooks.input(input).await {
                InputOutcome::Handled => Admitted::Handled(reply),
                InputOutcome::Continue { text, images } => Admitted::Said(
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

    fn ask_to_replace(&mut self, command: Command, reply: Reply) {
        let change = self.core.replacement(&command);
        let hooks = self.core.hook(Moment::BeforeReplace).cloned();
        let (Some(hooks), Some(change)) = (hooks, change) else {
            return self.replace_if_possible(command, reply);
        };
        self.arriving = Some(Box::pin(async move {
            let permitted = hooks.before_replace(&change).await;
            Admitted::Replace(command, reply, permitted)
        }));
    }

    pub(super) fn admit(&mut self, admitted: Admitted) {
        self.arriving = None;
        match admitted {
            Admitted::Handled(reply) => reply.send(Ok(Answer::Taken(Disposition::Handled))),
            Admitted::Said(prompt, reply) => self.said(prompt, reply),
            Admitted::Opened(start, reply) => self.start_when_free(start, reply),
            Admitted::Replace(command, reply, true) => self.replace_if_possible(command, reply),
            Admitted::Replace(command, reply, false) => reply.send(Ok(match command {
                Command::Fork { .. } => Answer::Forked {
                    text: None,
                    cancelled: true,
                },
                _ => Answer::Cancelled(true),
            })),
        }
        self.next_arrival();
    }

    /// Queues what was said, or starts a run with it.
    fn said(&mut self, prompt: Prompt, reply: Reply) {
        let Prompt {
            text,
            images,
            mut attachments,
            when_busy,
            origin,
        } = prompt;
        let blocks = match origin {
            Origin::Client => self.expand(&text, images),
            Origin::Hook => self.masked(text, images),
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
            // The prompt takes the place of the retry, which ends first.
            wait.cancel();
        }
        match self.core.hook(Moment::BeforeRun).cloned() {
            None => {
                let message = user(blocks, attachments);
                let start = opened(&self.core, message, OpeningChanges::default());
                self.start_when_free(start, reply);
            }
            Some(hooks) => {
                let opening = Opening {
                    prompt: joined_text(&blocks),
                    images: blocks.iter().skip(1).cloned().collect(),
                    system_prompt: self.core.toolbox().system_prompt(),
                };
                let core = Arc::clone(&self.core);
                self.arriving = Some(Box::pin(async move {
                    let changes = hooks.before_run(opening).await;
                    let message = user(blocks, attachments);
                    Admitted::Opened(opened(&core, message, changes), reply)
                }));
            }
        }
    }

    fn start_when_free(&mut self, start: Start, reply: Reply) {
        if self.work.is_some() {
            self.waiting.push_back(Waiting::Prompt(start, reply));
        } else {
            self.start_prompt(start, reply);
        }
    }

    pub(super) fn start_prompt(&mut self, start: Start, reply: Reply) {
        self.answer_what_is_over();
        self.core.release_held_bash();
        reply.send(Ok(Answer::Taken(Disposition::Started)));
        let mut messages = start.messages;
        {
            let mut state = self.core.state();
            let at = messages.len().min(1);
            messages.splice(at..at, state.next_turn.drain(..));
            state.run_prompt = start.system_prompt;
            // From here on a second prompt is told that the agent is busy.
            state.phase = Phase::Running;
        }
        let core = Arc::clone(&self.core);
        self.start_work(|cancel| async move { core.live(messages, cancel).await });
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
        let blocks = self.expand(text, images);
        self.queue(user(blocks, None), delivery, reply);
    }

    fn queue(&mut self, message: Arc<Message>, delivery: Delivery, reply: Reply) {
        let queued = self.core.queue(message, delivery);
        reply.send(queued.map(|()| Answer::Taken(Disposition::Queued)));
    }

    /// Runs with something said by who takes part.
    pub(super) fn say_and_run(&mut self, message: CustomMessage, reply: Reply) {
        if let Err(error) = self.core.ready_to_ask() {
            return reply.send(Err(error));
        }
        let message = self.core.said(message);
        if self.core.state().is_streaming() {
            return self.queue(message, Delivery::Steer, reply);
        }
        let start = Start {
            messages: vec![message],
            system_prompt: None,
        };
        self.start_when_free(start, reply);
    }
}

fn opened(core: &crate::core::Core, message: Arc<Message>, changes: OpeningChanges) -> Start {
    let mut messages = vec![message];
    for mut message in changes.messages {
        message.timestamp = now_millis();
        core.mask.content(&mut message.content);
        messages.push(Arc::new(Message::Custom(message)));
    }
    Start {
        messages,
        system_prompt: changes.system_prompt.map(Into::into),
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

/// `/name arguments`: the name ends at the first space, the arguments stay as they are.
fn split_command(text: &str) -> Option<(&str, &str)> {
    let call = text.strip_prefix('/')?;
    Some(call.split_once(' ').unwrap_or((call, "")))
}
