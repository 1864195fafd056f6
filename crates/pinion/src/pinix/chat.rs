//! `pinix chat`: a conversation with the hub's agent, line by line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use pinion_jsonl::{DEFAULT_LINE_LIMIT, Input, read_lines};
use pinion_proto::hub::{InvokeRequest, InvokeResponse};
use pinion_text::harmless;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::hub::caller::Caller;
use crate::invoke::refusal;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

const VERB: Verb = Verb::new("pinix", &tables::pinix::CHAT, talk);

pub(super) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    VERB.run(arguments)
}

fn talk(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let mut chat = Chat {
        caller: Caller::of(line)?,
        agent: line.value("--agent-id").map(str::to_owned),
        topic: line.value("--topic-id").map(str::to_owned),
        is_terminal: std::io::stdout().is_terminal(),
    };
    let is_typed = std::io::stdin().is_terminal();
    let runtime = crate::runtime::build()?;
    let done = runtime.block_on(chat.converse(is_typed));
    runtime.shutdown_background();
    done
}

struct Chat {
    caller: Caller,
    agent: Option<String>,
    topic: Option<String>,
    is_terminal: bool,
}

/// The members of an agent's event that the chat shows.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    topic_id: Option<String>,
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
                    let words = format!("Error: a message of {length} bytes is too long.");
                    return Err(Failure::failed(words));
                }
                Some(Input::End) | None => break,
            };
            if message.is_empty() {
                continue;
            }
            let answered = tokio::select! {
                answered = self.say(&message) => answered,
                _ = tokio::signal::ctrl_c() => Err(Failure::failed("Stopped.")),
            };
            if let Err(failure) = answered {
                // A failed first message of a script ends the chat; a user can type the message again.
                if !is_typed && self.topic.is_none() {
                    return Err(failure);
                }
                let _ = failure.report();
                code = ExitCode::FAILURE;
            }
        }
        Ok(match is_typed {
            true => ExitCode::SUCCESS,
            false => code,
        })
    }

    /// Sends a message and prints the answer as it arrives.
    async fn say(&mut self, message: &str) -> Result<(), Failure> {
        let members = [
            ("agent_id", self.agent.as_deref()),
            ("topic_id", self.topic.as_deref()),
            ("message", Some(message)),
        ];
        let members = members.into_iter();
        let input: Map<String, Value> = members
            .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
            .collect();
        let request = InvokeRequest {
            clip_name: pinion_agent_clip::ALIAS.to_owned().into(),
            command: "chat".to_owned().into(),
            input: Value::Object(input).to_string().into(),
            ..InvokeRequest::default()
        };
        let mut answers = self.caller.follow("Invoke", &request).await?;
        let mut last = String::new();
        let told = loop {
            let answer: Option<InvokeResponse> = match answers.next().await {
                Ok(answer) => answer,
                Err(refused) => break Err(self.caller.explain(refused)),
            };
            let Some(answer) = answer else { break Ok(()) };
            if let Some(error) = &answer.error {
                break Err(self.caller.explain(refusal(error)));
            }
            if let Ok(event) = serde_json::from_slice(&answer.output) {
                self.show(event, &mut last)?;
            }
        };
        if !last.is_empty() && !last.ends_with('\n') {
            self.print("\n")?;
        }
        told
    }

    fn show(&mut self, event: Event, last: &mut String) -> Result<(), Failure> {
        if event.topic_id.is_some() {
            self.topic = event.topic_id;
        }
        match event.kind.as_str() {
            "text" if !event.content.is_empty() => {
                self.print(&event.content)?;
                *last = event.content;
            }
            "tool_call" if self.is_terminal => {
                let start = if last.is_empty() || last.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                self.print(&format!("{start}[{}]\n", event.name))?;
                "\n".clone_into(last);
            }
            _ => {}
        }
        Ok(())
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let shown = match self.is_terminal {
            true => harmless(text),
            false => text.to_owned(),
        };
        let written = stdout
            .write_all(shown.as_bytes())
            .and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::quiet()),
            other => Ok(other?),
        }
    }
}
