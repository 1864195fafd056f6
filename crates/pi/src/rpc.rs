//! The RPC loop: reads lines, sends commands to the engine, and writes one response for each.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Participant, Prompt, Reply};
use pinion_jsonl::{Input, Queue};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::Dialect;
use crate::command_output::CommandOutput;
use crate::decode::{Decoded, decode};
use crate::early::{self, EarlyLine};
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
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                () = end.notified() => return RpcEnd::Requested,
                () = started(&mut startup), if startup.is_some() => {
                    startup = None;
                    for (command, reply) in held.drain(..) {
                        self.session.send(command, reply).await;
                    }
                }
                received = input.recv(), if open && held.len() < HELD_LIMIT => match received {
                    Some(Input::Line(line)) => {
                        let decoded = decode(&line, self.dialect);
                        match self.pending_command(decoded, &end).await {
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
                        self.participants.iter().for_each(|one| one.hang_up());
                    }
                },
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
        while let Some(received) = input.recv().await {
            if let Input::Line(line) = received {
                drop(
                    self.pending_command(decode(&line, self.dialect), &end)
                        .await,
                );
            }
        }
    }

    async fn pending_command(
        &mut self,
        decoded: Decoded,
        end: &Arc<Notify>,
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
                Some((command, self.reply(request, end)))
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
                (Command::Prompt(prompt), self.reply(request, end))
            }
            Err(error) => {
                let out = self.out.clone();
                let line = EarlyLine::Error { error: &error }.to_vec();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                (Command::Noop, reply)
            }
        })
    }

    fn reply(&self, request: Request, end: &Arc<Notify>) -> Reply {
        let out = self.out.clone();
        let participants = self.participants.clone();
        let dialect = self.dialect;
        let end = Arc::clone(end);
        Reply::new(move |result| {
            if let Some(line) = request.answer(result, dialect) {
                out.push(Out::Record(line));
            }
            if participants.iter().any(|one| one.wants_to_end()) {
                end.notify_one();
            }
        })
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
