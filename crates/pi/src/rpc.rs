//! The RPC loop: lines in, commands to the engine, one response each.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::{Command, Handle, Prompt, Reply};
use pinion_jsonl::{Input, Queue};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};

use crate::Dialect;
use crate::decode::{Decoded, decode};
use crate::early::{self, EarlyLine};
use crate::echo::Echo;
use crate::outgoing::{Out, Sink};
use crate::response::Asked;

/// A client's connection: where its lines come from and where responses go.
pub struct Rpc<S: Sink = Queue<Out>> {
    /// How the client speaks.
    pub dialect: Dialect,
    /// The engine.
    pub session: Handle,
    /// The way to the writer.
    pub out: S,
    /// Who asks the user things, and may ask to end.
    pub participants: Vec<Arc<dyn Participant>>,
    /// Commands wait until this is done; what the user chooses in dialogs does not.
    pub beginning: Option<BoxFuture<'static, ()>>,
}

/// How many commands wait for the beginning before no more are read.
const HELD: usize = 256;

/// Someone beside the engine who talks with the client.
pub trait Participant: Send + Sync {
    /// What the user chose in the dialog `id`. Unknown, late and repeated ids are ignored.
    fn choice(&self, id: &str, choice: &Map<String, Value>);

    /// Whether the program should end once the command at hand is answered.
    fn wants_to_end(&self) -> bool;

    /// The client will choose nothing any more.
    fn hang_up(&self) {}
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcEnd {
    /// The client closed its end.
    EndOfInput,
    /// Nobody reads what we write.
    OutputClosed,
    /// A participant asked for it.
    Asked,
}

/// A command and the duty to answer it, which is done also when it is dropped.
type Order = (Command, Reply);

impl<S: Sink> Rpc<S> {
    /// Serves until the client closes its end or stops reading.
    pub async fn serve(&mut self, input: &mut mpsc::Receiver<Input>) -> RpcEnd {
        let out = self.out.clone();
        let broken = out.broken();
        let asked = Arc::new(Notify::new());
        tokio::pin!(broken);
        let mut held = VecDeque::new();
        let mut open = true;
        let mut beginning = self.beginning.take();
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                () = asked.notified() => return RpcEnd::Asked,
                () = begun(&mut beginning), if beginning.is_some() => {
                    beginning = None;
                    for (command, reply) in held.drain(..) {
                        self.session.send(command, reply).await;
                    }
                }
                received = input.recv(), if open && held.len() < HELD => match received {
                    Some(Input::Line(line)) => {
                        let decoded = decode(&line, self.dialect);
                        match self.order(decoded, &asked).await {
                            None => {}
                            Some(order) if beginning.is_some() => {
                                held.push_back(order);
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
            if !open && beginning.is_none() {
                return RpcEnd::EndOfInput;
            }
        }
    }

    /// Answers what has come and is not served any more, and takes no more.
    pub async fn refuse(&mut self, input: &mut mpsc::Receiver<Input>) {
        input.close();
        let end = Arc::new(Notify::new());
        while let Some(received) = input.recv().await {
            if let Input::Line(line) = received {
                drop(self.order(decode(&line, self.dialect), &end).await);
            }
        }
    }

    async fn order(&mut self, decoded: Decoded, end: &Arc<Notify>) -> Option<Order> {
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
            Decoded::Attached(asked, prompt, attachments) => {
                self.attached(asked, prompt, attachments, end).await
            }
            Decoded::Refused(line) => {
                // By way of the engine, so that answers come in the order of the lines.
                let out = self.out.clone();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                Some((Command::Noop, reply))
            }
            Decoded::Command(asked, mut command) => {
                if let Command::Bash { follower, .. } = &mut command
                    && self.dialect == Dialect::Modern
                {
                    *follower = Some(Arc::new(Echo::new(self.out.clone(), asked.id.clone())));
                }
                Some((command, self.reply(asked, end)))
            }
        }
    }

    /// Reads what is attached to a prompt.
    async fn attached(
        &mut self,
        asked: Asked,
        prompt: Prompt,
        attachments: Vec<Value>,
        end: &Arc<Notify>,
    ) -> Option<Order> {
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
                (Command::Prompt(prompt), self.reply(asked, end))
            }
            Err(error) => {
                let out = self.out.clone();
                let line = EarlyLine::Error { error: &error }.to_vec();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                (Command::Noop, reply)
            }
        })
    }

    fn reply(&self, asked: Asked, end: &Arc<Notify>) -> Reply {
        let out = self.out.clone();
        let participants = self.participants.clone();
        let dialect = self.dialect;
        let end = Arc::clone(end);
        Reply::new(move |result| {
            if let Some(line) = asked.answer(result, dialect) {
                out.push(Out::Record(line));
            }
            if participants.iter().any(|one| one.wants_to_end()) {
                end.notify_one();
            }
        })
    }
}

async fn begun(beginning: &mut Option<BoxFuture<'static, ()>>) {
    match beginning {
        Some(beginning) => beginning.await,
        None => std::future::pending().await,
    }
}

impl<S: Sink> std::fmt::Debug for Rpc<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}
