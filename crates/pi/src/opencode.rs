//! The engine's events as opencode's lines.
//!
//! Every line is `{"type", "timestamp", "sessionID", "part"}`; a failure has `error` in the place of `part`. A step is
//! one request to the model and its tools. A text is written when it is complete, a tool when it has finished, a
//! failure when pinion does not retry any more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener, ToolRun};
use pinion_jsonl::{Queue, json};
use pinion_message::{AssistantMessage, Block, StopReason};
use serde_json::{Value, json};

use crate::outgoing::Out;

/// The kinds of failures that opencode distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpencodeError {
    /// The key is missing, wrong or not permitted to use the model.
    ProviderAuth,
    /// The conversation exceeds the model's context window.
    ContextOverflow,
    /// The run was stopped.
    Aborted,
    /// The model's server rejected the request or was unreachable.
    Api {
        /// The HTTP status of the response, if there was one.
        status: Option<u16>,
        /// The cause is temporary.
        retryable: bool,
    },
    Unknown,
}

/// Puts opencode's lines into the queue of the writer.
pub struct OpencodeLines {
    queue: Queue<Out>,
    /// Derives the kind of a failure from its message.
    classify: fn(&str) -> OpencodeError,
    state: Mutex<OpencodeState>,
}

#[derive(Default)]
struct OpencodeState {
    session: String,
    /// The id of the answer that is being received.
    message: String,
    /// The time at which it started, in milliseconds since the epoch.
    began: u64,
    parts: u64,
    messages: u64,
    /// The start times of running tools, by call id.
    tools: Vec<(String, u64)>,
    /// The last answer, if it failed.
    failed: Option<(StopReason, String)>,
}

impl OpencodeLines {
    /// Creates a listener that writes to `queue`. `classify` derives the kind of a failure from its message.
    pub fn new(queue: Queue<Out>, classify: fn(&str) -> OpencodeError) -> Self {
        Self {
            queue,
            classify,
            state: Mutex::default(),
        }
    }

    /// Sets the session id of the lines. Must be called before the first event.
    pub fn set_session(&self, id: &str) {
        self.state().session = format!("ses_{id}");
    }

    fn state(&self) -> MutexGuard<'_, OpencodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &OpencodeState, kind: &str, name: &str, body: Value) {
        let line = json!({
            "type": kind,
            "timestamp": now(),
            "sessionID": state.session,
            name: body,
        });
        let mut bytes = Vec::new();
        json::append(&mut bytes, &line);
        bytes.push(b'\n');
        self.queue.push(Out::Record(bytes));
    }

    fn part(&self, state: &mut OpencodeState, kind: &str, part_type: &str, members: Value) {
        state.parts += 1;
        let mut part = json!({
            "id": format!("prt_{:08}", state.parts),
            "messageID": state.message,
            "sessionID": state.session,
            "type": part_type,
        });
        if let (Value::Object(part), Value::Object(members)) = (&mut part, members) {
            part.extend(members);
        }
        self.write(state, kind, "part", part);
    }

    fn answered(&self, state: &mut OpencodeState, answer: &AssistantMessage) {
        state.failed = match answer.stop_reason {
            StopReason::Error | StopReason::Aborted => {
                let words = answer.error_message.clone().unwrap_or_default();
                Some((answer.stop_reason, words))
            }
            _ => None,
        };
        for block in &answer.content {
            if let Block::Text(text) = block
                && !text.text.is_empty()
            {
                let time = json!({"start": state.began, "end": now()});
                self.part(
                    state,
                    "text",
                    "text",
                    json!({"text": text.text, "time": time}),
                );
            }
        }
    }

    fn tool(&self, state: &mut OpencodeState, run: &ToolRun, output: &[Block], is_error: bool) {
        let began = state
            .tools
            .iter()
            .position(|(call, _)| **call == *run.call_id);
        let start = began.map_or_else(now, |at| state.tools.swap_remove(at).1);
        let texts: Vec<&str> = output.iter().filter_map(Block::as_text).collect();
        let text = texts.join("\n");
        let time = json!({"start": start, "end": now()});
        let state_member = if is_error {
            json!({"status": "error", "input": run.arguments, "error": text, "time": time})
        } else {
            json!({"status": "completed", "input": run.arguments, "output": text,
                "metadata": {}, "title": run.name, "time": time})
        };
        let members = json!({"tool": run.name, "callID": &*run.call_id, "state": state_member});
        self.part(state, "tool_use", "tool", members);
    }

    fn finished(&self, state: &mut OpencodeState, answer: &AssistantMessage) {
        let reason = match answer.stop_reason {
            StopReason::ToolUse => "tool-calls",
            StopReason::Length => "length",
            // `settled` writes these as an error when pinion does not retry any more.
            StopReason::Error | StopReason::Aborted => return,
            _ => "stop",
        };
        let usage = &answer.usage;
        let tokens = json!({
            "total": usage.total_tokens,
            "input": usage.input,
            "output": usage.output,
            "reasoning": 0,
            "cache": {"write": usage.cache_write, "read": usage.cache_read},
        });
        let members = json!({"reason": reason, "tokens": tokens, "cost": usage.cost.total});
        self.part(state, "step_finish", "step-finish", members);
    }

    fn settled(&self, state: &mut OpencodeState) {
        let Some((reason, message)) = state.failed.take() else {
            return;
        };
        let kind = match reason {
            StopReason::Aborted => OpencodeError::Aborted,
            _ => (self.classify)(&message),
        };
        let mut data = json!({ "message": message });
        let name = match kind {
            OpencodeError::ProviderAuth => "ProviderAuthError",
            OpencodeError::ContextOverflow => "ContextOverflowError",
            OpencodeError::Aborted => "MessageAbortedError",
            OpencodeError::Unknown => "UnknownError",
            OpencodeError::Api { status, retryable } => {
                data["isRetryable"] = retryable.into();
                if let Some(status) = status {
                    data["statusCode"] = status.into();
                }
                "APIError"
            }
        };
        self.write(state, "error", "error", json!({"name": name, "data": data}));
    }
}

impl std::fmt::Debug for OpencodeLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpencodeLines")
    }
}

impl Listener for OpencodeLines {
    fn notice(&self, _ordinal: u64, event: &Event) {
        let mut state = self.state();
        let state = &mut *state;
        match event {
            Event::TurnStart => {
                state.messages += 1;
                state.message = format!("msg_{:08}", state.messages);
                state.began = now();
                self.part(state, "step_start", "step-start", json!({}));
            }
            Event::MessageEnd(message) => {
                if let Some(answer) = message.as_assistant() {
                    self.answered(state, answer);
                }
            }
            Event::ToolStart(run) => state.tools.push((run.call_id.to_string(), now())),
            Event::ToolEnd {
                run,
                output,
                is_error,
                ..
            } => self.tool(state, run, &output.content, *is_error),
            Event::TurnEnd { message, .. } => {
                if let Some(answer) = message.as_assistant() {
                    self.finished(state, answer);
                }
            }
            Event::Settled { .. } => self.settled(state),
            _ => {}
        }
    }

    fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.queue.room())
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
