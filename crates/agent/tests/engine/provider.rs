//! A provider whose answers are scripted, one turn per request.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream;
use pinion_llm::{EventStream, Provider, Request, StreamEvent};
use pinion_message::{AssistantMessage, Block, Message, StopReason, ToolCall, Usage};
use serde_json::Value;
use tokio::sync::Semaphore;

/// Gates by name. A step that waits at a gate continues when a test opens it.
#[derive(Debug, Clone, Default)]
pub struct Gates(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl Gates {
    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = self.0.lock().unwrap();
        let gate = gates.entry(name.to_owned());
        Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    /// Opens the gate for everyone who waits at it, now or later.
    pub fn open(&self, name: &str) {
        self.gate(name).close();
    }

    pub async fn pass(&self, name: &str) {
        let gate = self.gate(name);
        // A closed semaphore ends the wait with an error.
        let _ = gate.acquire().await;
    }
}

/// One step of a scripted answer.
#[derive(Debug, Clone)]
enum Step {
    Text(&'static str),
    Call(&'static str, Value),
    Wait(&'static str),
    Usage(Usage),
    Fail(&'static str),
    /// The output limit ends the answer.
    CutOff,
    /// The stream ends without an end.
    BreakOff,
    Panic,
}

/// A scripted answer.
#[derive(Debug, Clone, Default)]
pub struct Turn(Vec<Step>);

pub fn says(text: &'static str) -> Turn {
    Turn::default().says(text)
}

pub fn calls(tool: &'static str, arguments: Value) -> Turn {
    Turn::default().calls(tool, arguments)
}

pub fn fails(error: &'static str) -> Turn {
    Turn::default().fails(error)
}

/// An answer that sends nothing until the gate `never` opens, which no test does.
pub fn hangs() -> Turn {
    Turn::default().waits("never")
}

impl Turn {
    fn with(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Adds a delta of text.
    pub fn says(self, text: &'static str) -> Self {
        self.with(Step::Text(text))
    }

    pub fn calls(self, tool: &'static str, arguments: Value) -> Self {
        self.with(Step::Call(tool, arguments))
    }

    pub fn waits(self, gate: &'static str) -> Self {
        self.with(Step::Wait(gate))
    }

    pub fn hangs(self) -> Self {
        self.waits("never")
    }

    /// Ends the answer with an error.
    pub fn fails(self, error: &'static str) -> Self {
        self.with(Step::Fail(error))
    }

    pub fn cut_off(self) -> Self {
        self.with(Step::CutOff)
    }

    pub fn breaks_off(self) -> Self {
        self.with(Step::BreakOff)
    }

    pub fn panics(self) -> Self {
        self.with(Step::Panic)
    }

    /// Reports a prompt of `input` tokens.
    pub fn uses(self, input: u64) -> Self {
        self.with(Step::Usage(Usage {
            input,
            output: 10,
            total_tokens: input + 10,
            ..Usage::default()
        }))
    }
}

/// A request as the provider received it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `role: text` of each message.
    pub messages: Vec<String>,
    pub system_prompt: String,
    pub model: String,
    /// Requests for summaries offer no tools.
    pub tools: Vec<String>,
}

/// Answers each request with the next turn of its script.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    script: Mutex<VecDeque<Turn>>,
    asked: Mutex<Vec<Asked>>,
    gates: Gates,
}

impl ScriptedProvider {
    pub fn new(script: Vec<Turn>, gates: Gates) -> Self {
        Self {
            script: Mutex::new(script.into()),
            asked: Mutex::default(),
            gates,
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Returns `role: text` of a message.
pub fn described(message: &Message) -> String {
    let text = match message {
        Message::User(user) => user.content.joined_text(""),
        Message::Assistant(answer) => answer.joined_text(""),
        Message::ToolResult(result) => {
            let texts = result.content.iter().filter_map(Block::as_text);
            texts.collect()
        }
        _ => String::new(),
    };
    format!("{}: {text}", message.role())
}

impl Provider for ScriptedProvider {
    fn stream(&self, request: Request) -> EventStream {
        let messages = request.messages.iter().map(|message| described(message));
        self.asked.lock().unwrap().push(Asked {
            messages: messages.collect(),
            system_prompt: request.system_prompt.as_deref().unwrap_or_default().into(),
            model: request.model.id.clone(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        });
        // The session orders answers and compactions by wall time in milliseconds, which a paused clock does not stop.
        std::thread::sleep(Duration::from_millis(2));
        let turn = self.script.lock().unwrap().pop_front();
        let turn = turn.unwrap_or_else(|| fails("the script has no more turns"));
        let playback = Playback::new(request, turn, self.gates.clone());
        Box::pin(stream::unfold(playback, |mut playback| async {
            let event = playback.next().await?;
            Some((event, playback))
        }))
    }
}

/// One answer while it is played.
struct Playback {
    request: Request,
    gates: Gates,
    steps: VecDeque<Step>,
    ready: VecDeque<StreamEvent>,
    message: AssistantMessage,
    ended: bool,
}

impl Playback {
    fn new(request: Request, turn: Turn, gates: Gates) -> Self {
        let message = AssistantMessage {
            content: Vec::new(),
            api: request.model.api.clone(),
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            timestamp: pinion_message::now_millis(),
            response_id: None,
            response_model: None,
            error_message: None,
            raw_stop_reason: None,
            refused: false,
            duration_ms: None,
            thinking_level: None,
        };
        Self {
            request,
            gates,
            steps: turn.0.into(),
            ready: VecDeque::new(),
            message,
            ended: false,
        }
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.step().await;
        }
    }

    async fn step(&mut self) {
        match self.steps.pop_front() {
            Some(Step::Text(text)) => self.text(text),
            Some(Step::Call(tool, arguments)) => self.call(tool, arguments),
            Some(Step::Usage(usage)) => self.message.usage = usage,
            Some(Step::Wait(gate)) => {
                tokio::select! {
                    biased;
                    () = self.request.cancel.cancelled() => {
                        self.end(StopReason::Aborted, Some("Request was aborted."));
                    }
                    () = self.gates.pass(gate) => {}
                }
            }
            Some(Step::Fail(error)) => self.end(StopReason::Error, Some(error)),
            Some(Step::CutOff) => self.end(StopReason::Length, None),
            Some(Step::BreakOff) => self.ended = true,
            Some(Step::Panic) => panic!("a scripted panic"),
            None if self.message.tool_calls().next().is_some() => {
                self.end(StopReason::ToolUse, None);
            }
            None => self.end(StopReason::Stop, None),
        }
    }

    fn start(&mut self) {
        if self.message.content.is_empty() {
            let start = StreamEvent::Start(self.message.clone());
            self.ready.push_back(start);
        }
    }

    /// Adds a delta to the last block, or begins a block.
    fn text(&mut self, text: &'static str) {
        self.start();
        let is_open = matches!(self.message.content.last(), Some(Block::Text(_)));
        if !is_open {
            self.message.content.push(Block::text(""));
            let index = self.message.content.len() - 1;
            let block = Block::text("");
            self.ready
                .push_back(StreamEvent::BlockStart { index, block });
        }
        let index = self.message.content.len() - 1;
        if let Some(Block::Text(block)) = self.message.content.last_mut() {
            block.text.push_str(text);
        }
        let delta = text.into();
        self.ready.push_back(StreamEvent::Delta { index, delta });
    }

    fn call(&mut self, tool: &'static str, arguments: Value) {
        self.start();
        let index = self.message.content.len();
        let block = Block::ToolCall(ToolCall {
            id: format!("call-{index}"),
            name: tool.to_owned(),
            arguments,
            thought_signature: None,
            arguments_error: None,
        });
        self.message.content.push(block.clone());
        for event in [
            StreamEvent::BlockStart {
                index,
                block: block.clone(),
            },
            StreamEvent::BlockEnd { index, block },
        ] {
            self.ready.push_back(event);
        }
    }

    fn end(&mut self, reason: StopReason, error: Option<&str>) {
        self.message.stop_reason = reason;
        self.message.error_message = error.map(str::to_owned);
        let end = StreamEvent::End(self.message.clone());
        self.ready.push_back(end);
        self.ended = true;
    }
}
