//! The RPC loop: lines in, commands to the engine, one response each.

use std::sync::Arc;

use pinion_agent::{Handle, Reply};
use pinion_jsonl::{Input, Queue};
use serde_json::Value;
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
    /// Makes the list of slash commands; called when a client asks for it.
    pub commands: Arc<dyn Fn() -> Value + Send + Sync>,
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
                    Some(Input::Line(line)) => self.take(decode(&line)).await,
                    Some(Input::End) | None => return RpcEnd::EndOfInput,
                },
            }
        }
    }

    async fn take(&self, decoded: Decoded) {
        match decoded {
            Decoded::Silent => {}
            Decoded::Refused(line) => self.out.push(Out::Record(line)),
            Decoded::GetCommands(asked) => {
                let line = asked.data(&(self.commands)());
                self.out.push(Out::Record(line));
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
