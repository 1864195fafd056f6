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
use crate::outgoing::Out;
use crate::response::Asked;

/// A client's connection: where its lines come from and where responses go.
pub struct Rpc {
    /// How the client speaks.
    pub dialect: Dialect,
    /// The engine.
    pub session: Handle,
    /// The queue of the writer.
    pub out: Queue<Out>,
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

impl Rpc {
    /// Serves until the client closes its end or stops reading.
    pub async fn serve(mut self, mut input: mpsc::Receiver<Input>) -> RpcEnd {
        let out = self.out.clone();
        let broken = out.broken();
        let asked = Arc::new(Notify::new());
        tokio::pin!(broken);
        let mut held = VecDeque::new();
        let mut beginning = self.beginning.take();
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                () = asked.notified() => return RpcEnd::Asked,
                () = begun(&mut beginning), if beginning.is_some() => {
                    beginning = None;
                    for decoded in held.drain(..) {
                        self.take(decoded, &asked).await;
                    }
                }
                received = input.recv(), if held.len() < HELD => match received {
                    Some(Input::Line(line)) => {
                        let decoded = decode(&line, self.dialect);
                        if beginning.is_some() && !matches!(decoded, Decoded::Choice(..)) {
                            held.push_back(decoded);
                            continue;
                        }
                        self.take(decoded, &asked).await;
                        self.out.room_for_answers().await;
                    }
                    Some(Input::End) | None => return RpcEnd::EndOfInput,
                },
            }
        }
    }

    async fn take(&self, decoded: Decoded, end: &Arc<Notify>) {
        match decoded {
            Decoded::Choice(id, choice) => {
                if let Some(Value::String(id)) = id {
                    for participant in &self.participants {
                        participant.choice(&id, &choice);
                    }
                }
            }
            Decoded::Ignored => {}
            Decoded::Attached(asked, prompt, attachments) => {
                self.attached(asked, prompt, attachments, end).await;
            }
            Decoded::Refused(line) => {
                // By way of the engine, so that answers come in the order of the lines.
                let out = self.out.clone();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                self.session.send(Command::Nothing, reply).await;
            }
            Decoded::Command(asked, command) => {
                let reply = self.reply(asked, end);
                self.session.send(command, reply).await;
            }
        }
    }

    /// Reads what is attached to a prompt, then says it.
    async fn attached(
        &self,
        asked: Asked,
        prompt: Prompt,
        attachments: Vec<Value>,
        end: &Arc<Notify>,
    ) {
        let read = tokio::task::spawn_blocking(move || {
            let blocks = early::attached_blocks(&attachments);
            (blocks, attachments)
        });
        let Ok((blocks, attachments)) = read.await else {
            return;
        };
        let (command, reply) = match blocks {
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
                (Command::Nothing, reply)
            }
        };
        self.session.send(command, reply).await;
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

impl std::fmt::Debug for Rpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}
