//! Runs the tool calls of one answer, one after another.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use pinion_message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage, now_millis};
use pinion_tools::{Tool, ToolContext, ToolError, ToolOutput, UpdateSink};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::config::Steering;
use crate::core::Core;
use crate::{Delivery, Event, ToolRun};

/// How long a tool may take to end after it was asked to; then it is dropped.
const ABORT_GRACE: Duration = Duration::from_secs(3);

/// What running the calls of an answer gave.
#[derive(Default)]
pub(crate) struct Calls {
    /// The results, in call order.
    pub results: Vec<Arc<Message>>,
    /// Steering messages that arrived on the way.
    pub steering: Vec<Arc<Message>>,
}

impl Core {
    /// Runs every call of `answer`; a steering message makes the rest be skipped.
    pub async fn execute_calls(
        &self,
        answer: &AssistantMessage,
        cancel: &CancellationToken,
    ) -> Calls {
        let mut calls = Calls::default();
        for call in answer.tool_calls() {
            let run = Arc::new(ToolRun {
                call_id: call.id.as_str().into(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
            self.emit(Event::ToolStart(Arc::clone(&run)));
            let started = Instant::now();
            let result = if calls.steering.is_empty() {
                self.call_tool(call, &run, cancel).await
            } else {
                Err(ToolError("Skipped due to queued user message.".into()))
            };
            let message = self.finish_call(&run, result, started.elapsed());
            calls.results.push(message);
            if calls.steering.is_empty() && self.settings.steering == Steering::SkipsCalls {
                calls.steering = self.take_queued(Delivery::Steer);
            }
        }
        calls
    }

    fn finish_call(
        &self,
        run: &Arc<ToolRun>,
        result: Result<ToolOutput, ToolError>,
        duration: Duration,
    ) -> Arc<Message> {
        let is_error = result.is_err();
        let output = self.masked(result.unwrap_or_else(|error| ToolOutput {
            content: vec![Block::text(error.0)],
            details: Some(json!({})),
        }));
        self.emit(Event::ToolEnd {
            run: Arc::clone(run),
            output: Arc::clone(&output),
            is_error,
            duration,
        });
        let message = Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: run.call_id.to_string(),
            tool_name: run.name.clone(),
            content: output.content.clone(),
            details: output.details.clone(),
            is_error,
            timestamp: now_millis(),
        }));
        self.take_in(&message);
        message
    }

    async fn call_tool(
        &self,
        call: &ToolCall,
        run: &Arc<ToolRun>,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let Some(tool) = self.tools.iter().find(|tool| tool.spec().name == call.name) else {
            return Err(ToolError(format!("Tool {} not found", call.name)));
        };
        let gate = Arc::new(Gate::default());
        let result = self
            .call_guarded(&**tool, &call.arguments, run, &gate, cancel)
            .await;
        gate.close();
        result
    }

    /// Calls a tool so that neither a panic nor a tool that ignores an abort holds up the run.
    async fn call_guarded(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        run: &Arc<ToolRun>,
        gate: &Arc<Gate>,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let (sender, mut updates) = unbounded_channel();
        let cancel = &cancel.child_token();
        let context = ToolContext {
            call_id: Arc::clone(&run.call_id),
            cwd: Arc::clone(&self.cwd),
            cancel: cancel.clone(),
            updates: Gate::sink(gate, sender),
        };
        let call = AssertUnwindSafe(async {
            let arguments = tool.validate(arguments).map_err(ToolError)?;
            tool.call(arguments, &context).await
        });
        let call = call.catch_unwind();
        let overdue = async {
            cancel.cancelled().await;
            tokio::time::sleep(ABORT_GRACE).await;
        };
        let limit = self.settings.tool_timeout;
        let timeout = tokio::time::sleep(limit);
        tokio::pin!(call, overdue, timeout);
        let mut timed_out = false;
        loop {
            tokio::select! {
                biased;
                Some(output) = updates.recv() => {
                    self.emit_newest(run, output, &mut updates);
                    self.room(cancel).await;
                }
                result = &mut call => {
                    if let Ok(output) = updates.try_recv() {
                        self.emit_newest(run, output, &mut updates);
                    }
                    let result = result.unwrap_or_else(|_| {
                        Err(ToolError(format!("Tool {} failed unexpectedly", run.name)))
                    });
                    return if timed_out { result.and(Err(overtime(limit))) } else { result };
                }
                () = &mut timeout, if !timed_out => {
                    timed_out = true;
                    cancel.cancel();
                }
                () = &mut overdue => {
                    let aborted = || ToolError("Operation aborted".into());
                    return Err(if timed_out { overtime(limit) } else { aborted() });
                }
            }
        }
    }
}

impl Core {
    /// Tells the newest update: each replaces the one before.
    fn emit_newest(
        &self,
        run: &Arc<ToolRun>,
        first: ToolOutput,
        updates: &mut UnboundedReceiver<ToolOutput>,
    ) {
        let mut newest = first;
        while let Ok(newer) = updates.try_recv() {
            newest = newer;
        }
        let output = self.masked(newest);
        self.emit(Event::ToolUpdate {
            run: Arc::clone(run),
            output,
        });
    }

    /// The output without known keys.
    fn masked(&self, mut output: ToolOutput) -> Arc<ToolOutput> {
        self.mask.blocks(&mut output.content);
        if let Some(details) = &mut output.details {
            self.mask.value(details);
        }
        Arc::new(output)
    }
}

fn overtime(limit: Duration) -> ToolError {
    ToolError(format!(
        "The tool was ended after {} seconds; the limit is the setting tools.timeoutSeconds",
        limit.as_secs()
    ))
}

/// Lets updates through until the call is over.
#[derive(Default)]
struct Gate {
    closed: Mutex<bool>,
}

impl Gate {
    fn sink(gate: &Arc<Self>, sender: UnboundedSender<ToolOutput>) -> UpdateSink {
        let gate = Arc::clone(gate);
        Arc::new(move |output| {
            let closed = gate.closed.lock().unwrap_or_else(PoisonError::into_inner);
            if !*closed {
                // The receiver lives as long as the call; afterwards nobody wants updates.
                let _ = sender.send(output);
            }
        })
    }

    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}
