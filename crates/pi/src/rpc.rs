//! The RPC loop: lines in, commands to the engine, one response each.

use std::sync::Arc;

use pinion_agent::{Command, Handle, Reply};
use pinion_jsonl::{Input, Queue};
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc};

use crate::decode::{Decoded, decode};
use crate::outgoing::Out;
use crate::response::Asked;

/// A client's connection: where its lines come from and where responses go.
pub struct Rpc {
    /// The engine.
    pub session: Handle,
    /// The queue of the writer.
    pub out: Queue<Out>,
    /// Who asks the user things, and may ask to end.
    pub participant: Option<Arc<dyn Participant>>,
}

/// Someone beside the engine who talks with the client.
pub trait Participant: Send + Sync {
    /// What the user chose in the dialog `id`. Unknown, late and repeated ids are ignored.
    fn choice(&self, id: &str, choice: Map<String, Value>);

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
    pub async fn serve(self, mut input: mpsc::Receiver<Input>) -> RpcEnd {
        let out = self.out.clone();
        let broken = out.broken();
        let asked = Arc::new(Notify::new());
        tokio::pin!(broken);
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                () = asked.notified() => return RpcEnd::Asked,
                received = input.recv() => match received {
                    Some(Input::Line(line)) => {
                        self.take(decode(&line), &asked).await;
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
                if let (Some(participant), Some(Value::String(id))) = (&self.participant, id) {
                    participant.choice(&id, choice);
                }
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

    fn reply(&self, asked: Asked, end: &Arc<Notify>) -> Reply {
        let out = self.out.clone();
        let participant = self.participant.clone();
        let end = Arc::clone(end);
        Reply::new(move |result| {
            out.push(Out::Record(asked.answer(result)));
            if participant.is_some_and(|participant| participant.wants_to_end()) {
                end.notify_one();
            }
        })
    }
}

impl std::fmt::Debug for Rpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}
