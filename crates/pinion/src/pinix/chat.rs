//! `pinix chat`: a conversation with the hub's agent, line by line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use pinion_hub_client::{AgentChat, ChatText};
use pinion_jsonl::{DEFAULT_LINE_LIMIT, Input, read_lines};

use crate::failure::Failure;
use crate::hub::caller::Caller;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinix", &tables::pinix::CHAT, talk);

fn talk(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let text = |flag: &str| line.value(flag).map(str::to_owned);
    let client = Caller::of(line)?.client().clone();
    let mut chat = Chat {
        agent: AgentChat::new(client, text("--agent-id"), text("--topic-id")),
        is_terminal: std::io::stdout().is_terminal(),
    };
    let is_typed = std::io::stdin().is_terminal();
    let runtime = crate::runtime::build()?;
    let done = runtime.block_on(chat.converse(is_typed));
    runtime.shutdown_background();
    done
}

struct Chat {
    agent: AgentChat,
    is_terminal: bool,
}

impl Chat {
    async fn converse(&mut self, is_typed: bool) -> Result<ExitCode, Failure> {
        let mut lines = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);
        let mut code = ExitCode::SUCCESS;
        loop {
            if is_typed {
                eprint!("> ");
            }
            let input = tokio::select! {
                input = lines.recv() => input,
                _ = tokio::signal::ctrl_c() => return Err(Failure::interrupted()),
            };
            let message = match input {
                Some(Input::Line(pinion_jsonl::InputLine::Complete(line))) => {
                    String::from_utf8_lossy(&line).trim().to_owned()
                }
                Some(Input::Line(pinion_jsonl::InputLine::TooLong { length })) => {
                    let problem = format!("a message of {length} bytes is too long.");
                    return Err(Failure::failed(problem));
                }
                Some(Input::End) | None => break,
            };
            if message.is_empty() {
                continue;
            }
            let answered = tokio::select! {
                answered = self.say(&message) => answered,
                _ = tokio::signal::ctrl_c() => Err(Failure::failed("Stopped.").bare()),
            };
            if let Err(failure) = answered {
                // A failed first message of a script ends the chat; a user can type the message again.
                if !is_typed && !self.agent.has_topic() {
                    return Err(failure);
                }
                failure.print();
                code = ExitCode::FAILURE;
            }
        }
        Ok(if is_typed { ExitCode::SUCCESS } else { code })
    }

    /// Sends a message and prints the answer as it arrives.
    async fn say(&mut self, message: &str) -> Result<(), Failure> {
        let mut text = ChatText::new(self.is_terminal);
        let mut answer = self.agent.send(message).await?;
        let ended = loop {
            match answer.next().await {
                Ok(Some(event)) => print(&text.next(event))?,
                Ok(None) => break Ok(()),
                Err(failure) => break Err(failure.into()),
            }
        };
        print(text.end())?;
        ended
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
    written.map_err(Failure::unwritten)
}
