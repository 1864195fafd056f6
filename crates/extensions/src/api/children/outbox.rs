//! The events of a child session on their way to a script, and the script's answers to the questions among them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_agent::{Event, Listener, ToolOutput};
use pinion_tools::UpdateSink;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::api::partial_answer::PartialAnswer;
use crate::api::payload;

/// Events that may wait before the engine holds progress back.
const BACKLOG: usize = 256;

/// The queue of one child.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Notified when an event was added or the child ended.
    filled: Notify,
    /// Notified when events were taken.
    taken: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Value>,
    partial_answer: PartialAnswer,
    turn: u64,
    next: u64,
    questions: HashMap<u64, oneshot::Sender<Value>>,
    updates: HashMap<u64, UpdateSink>,
    closed: bool,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Value) {
        let mut state = self.state();
        if !state.closed {
            state.events.push_back(event);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Sends the script something that needs no answer.
    pub fn notify(&self, kind: &str, given: Value) {
        self.push(json!({ "type": kind, "given": given }));
    }

    /// Returns the events so far, or waits for the next one; `None` when the child has ended and all were returned.
    pub async fn next(&self) -> Option<Vec<Value>> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.state();
                if !state.events.is_empty() {
                    let events = state.events.drain(..).collect();
                    drop(state);
                    self.taken.notify_waiters();
                    return Some(events);
                }
                if state.closed {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Ends the queue. Questions without an answer fail.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.questions.clear();
        state.updates.clear();
        drop(state);
        self.filled.notify_one();
        self.taken.notify_waiters();
    }

    /// Asks the script; `None` if the child ends first.
    pub async fn ask(
        &self,
        kind: &str,
        question: Value,
        updates: Option<UpdateSink>,
    ) -> Option<Value> {
        let (number, answer) = {
            let mut state = self.state();
            if state.closed {
                return None;
            }
            state.next += 1;
            let number = state.next;
            let (sender, answer) = oneshot::channel();
            state.questions.insert(number, sender);
            if let Some(updates) = updates {
                state.updates.insert(number, updates);
            }
            (number, answer)
        };
        let asked = Asked {
            outbox: self,
            number,
        };
        self.push(
            json!({ "type": "question", "question": number, "kind": kind, "given": question }),
        );
        let answer = answer.await.ok();
        drop(asked);
        answer
    }

    /// Passes the script's answer to the question `number`.
    pub fn reply(&self, number: u64, answer: Value) {
        if let Some(sender) = self.state().questions.remove(&number) {
            // The question may have been given up.
            let _ = sender.send(answer);
        }
    }

    /// Passes on the progress of a tool call.
    pub fn update(&self, number: u64, output: ToolOutput) {
        let sink = self.state().updates.get(&number).cloned();
        if let Some(sink) = sink {
            sink(output);
        }
    }
}

/// A question that waits for its answer. Dropping it sends the script the request to give it up.
struct Asked<'a> {
    outbox: &'a Outbox,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut state = self.outbox.state();
        state.updates.remove(&self.number);
        let is_open = state.questions.remove(&self.number).is_some();
        drop(state);
        if is_open {
            self.outbox
                .push(json!({ "type": "withdrawn", "question": self.number }));
        }
    }
}

impl Listener for Outbox {
    fn notice(&self, _ordinal: u64, event: &Event) {
        let mut state = self.state();
        if matches!(event, Event::AgentStart) {
            state.turn = 0;
        }
        let turn = state.turn;
        if matches!(event, Event::TurnEnd { .. }) {
            state.turn += 1;
        }
        let update = state.partial_answer.take(event);
        drop(state);
        if let Some(value) = update.or_else(|| event_value(event, turn)) {
            self.push(value);
        }
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        state.closed || state.events.len() < BACKLOG
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let taken = self.taken.notified();
                if self.has_room() {
                    return;
                }
                taken.await;
            }
        })
    }
}

/// Converts an event to the form that subscribers of a session see.
fn event_value(event: &Event, turn: u64) -> Option<Value> {
    Some(match event {
        Event::MessageEnd(message) => json!({"type": "message_end", "message": **message}),
        Event::AgentEnd { will_retry, .. } => {
            let mut value = payload::event_value(event, turn)?;
            value["willRetry"] = (*will_retry).into();
            value
        }
        Event::QueueUpdate {
            steering,
            follow_up,
        } => json!({"type": "queue_update", "steering": steering, "followUp": follow_up}),
        Event::CompactionStart { reason } => json!({"type": "compaction_start", "reason": reason}),
        Event::CompactionEnd {
            reason,
            result,
            aborted,
            will_retry,
            error,
        } => json!({
            "type": "compaction_end",
            "reason": reason,
            "result": result.as_deref(),
            "aborted": aborted,
            "willRetry": will_retry,
            "errorMessage": error,
        }),
        Event::RetryStart {
            attempt,
            max_attempts,
            delay,
            error,
        } => json!({
            "type": "auto_retry_start",
            "attempt": attempt,
            "maxAttempts": max_attempts,
            "delayMs": delay.as_millis() as u64,
            "errorMessage": error,
        }),
        Event::RetryEnd {
            success,
            attempt,
            final_error,
        } => json!({
            "type": "auto_retry_end",
            "success": success,
            "attempt": attempt,
            "finalError": final_error,
        }),
        Event::ThinkingLevelChanged(level) => {
            json!({"type": "thinking_level_changed", "level": level})
        }
        Event::Settled { aborted } => json!({"type": "agent_settled", "aborted": aborted}),
        _ => return payload::event_value(event, turn),
    })
}
