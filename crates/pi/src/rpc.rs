//! The RPC loop: lines in, commands to the engine, one response each.

use pinion_agent::{Command, Handle, Reply};
use pinion_jsonl::{Input, Queue};
use tokio::sync::mpsc;

use crate::decode::{Decoded, decode};
use crate::outgoing::Out;
use crate::response::Asked;

/// A client's connection: where its lines come from and where responses go.
pub struct Rpc {
    /// The engine.
    pub session: Handle,
    /// The queue of the writer.
    pub out: Queue<Out>,
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcEnd {
    /// The client closed its end.
    EndOfInput,
    /// Nobody reads what we write.
    OutputClosed,
}

impl Rpc {
    /// Serves until the client closes its end or stops reading.
    pub async fn serve(self, mut input: mpsc::Receiver<Input>) -> RpcEnd {
        let out = self.out.clone();
        let broken = out.broken();
        tokio::pin!(broken);
        loop {
            tokio::select! {
                biased;
                () = &mut broken => return RpcEnd::OutputClosed,
                received = input.recv() => match received {
                    Some(Input::Line(line)) => {
                        self.take(decode(&line)).await;
                        self.out.room_for_answers().await;
                    }
                    Some(Input::End) | None => return RpcEnd::EndOfInput,
                },
            }
        }
    }

    async fn take(&self, decoded: Decoded) {
        match decoded {
            Decoded::Silent => {}
            Decoded::Refused(line) => {
                // By way of the engine, so that answers come in the order of the lines.
                let out = self.out.clone();
                let reply = Reply::new(move |_| out.push(Out::Record(line)));
                self.session.send(Command::Nothing, reply).await;
            }
            Decoded::Command(asked, command) => {
                let reply = self.reply(asked);
                self.session.send(command, reply).await;
            }
        }
    }

    fn reply(&self, asked: Asked) -> Reply {
        let out = self.out.clone();
        Reply::new(move |result| out.push(Out::Record(asked.answer(result))))
    }
}

impl std::fmt::Debug for Rpc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rpc")
    }
}
