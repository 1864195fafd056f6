//! The RPC loop: reads lines, sends commands to the engine, and writes one response for each.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Participant, Prompt, Reply};
use pinion_jsonl::{Input, Queue};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::Dialect;
use crate::command_output::CommandOutput;
use crate::decode::{Decoded, decode};
use crate::early::{self, EarlyLine};
use crate::late_answers::{LateAnswers, TOGETHER};
use crate::outgoing::{Out, Sink};
use crate::prompt_images::{has_images, with_fitting_images};
use crate::response::Request;

/// A client's connection to one session.
pub struct Rpc<S: Sink = Queue<Out>> {
    /// The dialect of the client.
    pub dialect: Dialect,
    /// Images of prompts that are too large for models are scaled down.
    pub resizes_images: bool,
    pub session: Handle,
    /// The output queue.
    pub out: S,
    /// The parts of the program that show dialogs to the client.
    pub participants: Vec<Arc<dyn Participant>>,
    /// Work that must end before commands are run. Choices in dialogs do not wait for it.
    pub startup: Option<BoxFuture<'static, ()>>,
}

/// Limit on the commands that wait for the startup; above it no more lines are read.
const HELD_LIMIT: usize = 256;

/// The reason why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcEnd {
    /// The client closed its input.
    EndOfInput,
    /// The client no longer reads.
    OutputClosed,
    /// A participant requested it.
    Requested,
}

/// A command and its reply; dropping the reply answers it.
type PendingCommand = (Command, Reply);

/// The place of a response among those of commands that arrive together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerOrder {
    /// After those of commands that are answered at once.
    Late,
    /// Before late ones.
    AtOnce,
    /// After all responses to earlier commands.
    InTurn,
}

impl AnswerOrder {
    fn of(decoded: &Decoded, dialect: Dialect) -> Self {
        match decoded {
            _ if dialect != Dialect::Modern => Self::InTurn,
            Decoded::Command(_, Command::Queue { .. } | Command::Abort) => Self::Late,
            Decoded::Command(
                _,
                Command::GetState
                | Command::GetMessages
                | Command::GetLastAssistantText
                | Command::GetCommands,
            )
            | Decoded::Rejected(_) => Self::AtOnce,
            _ => Self::InTurn,
        }
    }
}

impl<S: Sink> Rpc<S> {
    /// Serves until the client closes its input or stops reading.
    pub async fn serve(&mut self, input: &mut mpsc::Receiver<Input>) -> RpcEnd {
        let out = self.out.clone();
        let broken = out.broken();
        let end = Arc::new(Notify::new());
        tokio::pin!(broken);
        let mut held = VecDeque::new();
        let mut open = true;
        let mut startup = self.startup.take();
        if startup.is_none() {
            self.out.push(Out::Begun);
        }
        let late = LateAnswers::new(self.out.clone());
        let mut release = None;
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                () = end.notified() => {
                    late.release();
                    return RpcEnd::Requested;
                }
                () = started(&mut startup), if startup.is_some() => {
                    startup = None;
                    self.out.push(Out::Begun);
                    for (command, reply) in held.drain(..) {
                        self.session.send(command, reply).await;
                    }
                }
                received = input.recv(), if open && held.len() < HELD_LIMIT => match received {
                    Some(Input::Line(line)) => {
                        let decoded = decode(&line, self.dialect);
                        match AnswerOrder::of(&decoded, self.dialect) {
                            AnswerOrder::Late => {
                                late.hold();
                                release = Some(Instant::now() + TOGETHER);
                            }
                            AnswerOrder::AtOnce => {}
                            AnswerOrder::InTurn => {
                                late.release();
                                release = None;
                            }
                        }
                        match self.pending_command(decoded, &end, &late).await {
                            None => {}
                            Some(pending) if startup.is_some() => {
                                held.push_back(pending);
                                continue;
                            }
                            Some((command, reply)) => self.session.send(command, reply).await,
                        }
                        self.out.room_for_answers().await;
                    }
                    Some(Input::End) | None => {
                        open = false;
                        late.release();
                        self.participants.iter().for_each(|one| one.hang_up());
                    }
                },
                () = until(release), if release.is_some() => {
                    release = None;
                    late.release();
                }
            }
            if !open && startup.is_none() {
                return RpcEnd::EndOfInput;
            }
        }
    }

    /// Rejects the lines that were received but not served, and closes the input.
    pub async fn refuse(&mut self, input: &mut mpsc::Receiver<Input>) {
        input.close();
        let end = Arc::new(Notify::new());
        let late = LateAnswers::new(self.out.clone());
        while let Some(received) = input.recv().await {
            if let Input::Line(line) = received {
                let decoded = decode(&line, self.dialect);
                drop(self.pending_command(decoded, &end, &late).await);
            }
        }
    }

    async fn pending_command(
        &mut self,
        decoded: Decoded,
        end: &Arc<Notify>,
        late: &LateAnswers<S>,
    ) -> Option<PendingCommand> {
        match decoded {
            Decoded::Choice(id, choice) => {
                if let Some(Value::String(id)) = id {
                    for participant in &self.participants {
                        participant.choice(&id, &choice);
                    }
                }
                None
            }
            Decoded::Ignored => None,
            Decoded::WithAttachments(request, prompt, attachments) => {
                self.read_attachments(request, prompt, attachments, end)
                    .await
            }
            Decoded::Rejected(line) => {
                // Sent through the engine, so that answers come in the order of the lines.
                let out = self.out.clone();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                Some((Command::Noop, reply))
            }
            Decoded::Command(request, mut command) => {
                if let Command::Bash { follower, .. } = &mut command
                    && self.dialect == Dialect::Modern
                {
                    *follower = Some(Arc::new(CommandOutput::new(
                        self.out.clone(),
                        request.id.clone(),
                    )));
                }
                if self.resizes_images && has_images(&command) {
                    let fitted = tokio::task::spawn_blocking(|| with_fitting_images(command));
                    command = fitted.await.ok()?;
                }
                let is_late = matches!(command, Command::Queue { .. } | Command::Abort);
                let late = is_late.then(|| late.clone());
                Some((command, self.reply(request, end, late)))
            }
        }
    }

    /// Converts the attachments of a prompt on a blocking thread.
    async fn read_attachments(
        &mut self,
        request: Request,
        prompt: Prompt,
        attachments: Vec<Value>,
        end: &Arc<Notify>,
    ) -> Option<PendingCommand> {
        let read = tokio::task::spawn_blocking(move || {
            let blocks = early::attached_blocks(&attachments);
            (blocks, attachments)
        });
        let (blocks, attachments) = read.await.ok()?;
        Some(match blocks {
            Ok(images) => {
                let attachments = Some(Value::Array(attachments));
                let prompt = Prompt {
                    images,
                    attachments,
                    ..prompt
                };
                (Command::Prompt(prompt), self.reply(request, end, None))
            }
            Err(error) => {
                let out = self.out.clone();
                let line = EarlyLine::Error { error: &error }.to_vec();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                (Command::Noop, reply)
            }
        })
    }

    fn reply(&self, request: Request, end: &Arc<Notify>, late: Option<LateAnswers<S>>) -> Reply {
        let out = self.out.clone();
        let participants = self.participants.clone();
        let dialect = self.dialect;
        let end = Arc::clone(end);
        Reply::new(move |result| {
            if let Some(line) = request.answer(result, dialect) {
                match &late {
                    Some(late) => late.push(line),
                    None => out.push(Out::Record(line)),
                }
            }
            if participants.iter().any(|one| one.wants_to_end()) {
                end.notify_one();
            }
        })
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn started(startup: &mut Option<BoxFuture<'static, ()>>) {
    match startup {
        Some(startup) => startup.await,
        None => std::future::pending().await,
    }
}

impl<S: Sink> std::fmt::Debug for Rpc<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}
