//! Calls that a tool makes while it runs: each is checked, asked about and reported like a call of the model, but is not
//! a message of the conversation.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_util::future::{BoxFuture, pending};
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_message::{NestedCall, NestedCallStatus, NestedCalls, ToolCall};
use pinion_tools::{Execution, NestedOutcome, NestedRequest, UpdateSink};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::calls::FinishedCall;
use crate::config::ToolOrder;
use crate::core::Core;
use crate::{Event, ToolRun, spans};

/// Limit on the calls in a record.
const MAX_RECORDED_CALLS: usize = 256;
/// Limit on the recorded arguments of one call, in bytes of JSON.
const MAX_ARGUMENT_BYTES: u64 = 8 << 10;
/// Limit on all recorded arguments together, in bytes of JSON.
const MAX_RECORD_BYTES: u64 = 32 << 10;
/// Characters of a recorded error.
const MAX_ERROR_CHARS: usize = 500;
/// Limit on calls within calls.
const MAX_DEPTH: u32 = 8;

/// The place of a call among the calls that other calls make.
#[derive(Clone, Default)]
pub(crate) struct CallScope {
    /// The record of the call that the model made.
    pub record: Arc<NestedRecord>,
    /// The number of calls above this one.
    depth: u32,
    /// Receives the progress besides the listeners.
    pub updates: Option<UpdateSink>,
}

impl CallScope {
    /// Reports whether the call may make further calls.
    pub fn may_nest(&self) -> bool {
        self.depth < MAX_DEPTH
    }

    /// Returns the record, if the model made this call and it made others.
    pub fn finished_record(&self) -> Option<NestedCalls> {
        if self.depth == 0 {
            self.record.take()
        } else {
            None
        }
    }
}

/// The calls that one call of the model made.
#[derive(Default)]
pub(crate) struct NestedRecord(Mutex<RecordedCalls>);

#[derive(Default)]
struct RecordedCalls {
    calls: Vec<NestedCall>,
    argument_bytes: u64,
    is_cut: bool,
}

impl NestedRecord {
    /// Adds a call. Returns its position, or `None` if the record is full.
    fn begin(&self, run: &ToolRun) -> Option<usize> {
        let bytes = pinion_jsonl::json::to_vec(&run.arguments).len() as u64;
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if record.calls.len() >= MAX_RECORDED_CALLS {
            record.is_cut = true;
            return None;
        }
        let fits = bytes <= MAX_ARGUMENT_BYTES && record.argument_bytes + bytes <= MAX_RECORD_BYTES;
        if fits {
            record.argument_bytes += bytes;
        } else {
            record.is_cut = true;
        }
        record.calls.push(NestedCall {
            id: run.call_id.to_string(),
            name: run.name.clone(),
            status: NestedCallStatus::Unfinished,
            arguments: fits.then(|| run.arguments.clone()),
            arguments_bytes: (!fits).then_some(bytes),
            duration_ms: None,
            error: None,
        });
        Some(record.calls.len() - 1)
    }

    fn end(&self, at: Option<usize>, call: &FinishedCall) {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(recorded) = at.and_then(|at| record.calls.get_mut(at)) else {
            return;
        };
        recorded.duration_ms = Some(call.duration.unwrap_or_default().as_millis() as u64);
        recorded.status = if call.is_error {
            let text: Vec<&str> = call
                .output
                .content
                .iter()
                .filter_map(|block| block.as_text())
                .collect();
            let text: String = text.join("\n").chars().take(MAX_ERROR_CHARS).collect();
            recorded.error = Some(text).filter(|text| !text.is_empty());
            NestedCallStatus::Error
        } else {
            NestedCallStatus::Ok
        };
    }

    fn take(&self) -> Option<NestedCalls> {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = std::mem::take(&mut record.calls);
        let ended = |call: &NestedCall| call.status != NestedCallStatus::Unfinished;
        let complete = !record.is_cut && calls.iter().all(ended);
        (!calls.is_empty()).then_some(NestedCalls { calls, complete })
    }
}

/// The calls of one running tool.
pub(crate) struct NestedRuns<'a> {
    core: &'a Core,
    parent: Arc<ToolRun>,
    scope: CallScope,
    requests: mpsc::Receiver<NestedRequest>,
    is_closed: bool,
    /// A request that waits for the end of running calls.
    waiting: Option<NestedRequest>,
    running: FuturesUnordered<BoxFuture<'a, ()>>,
    /// A running call excludes others.
    runs_exclusively: bool,
    /// The number of the last call.
    last: u64,
    cancel: CancellationToken,
}

impl<'a> NestedRuns<'a> {
    pub fn new(
        core: &'a Core,
        parent: &Arc<ToolRun>,
        scope: &CallScope,
        requests: mpsc::Receiver<NestedRequest>,
        cancel: &CancellationToken,
    ) -> Self {
        Self {
            core,
            parent: Arc::clone(parent),
            scope: CallScope {
                record: Arc::clone(&scope.record),
                depth: scope.depth + 1,
                updates: None,
            },
            requests,
            is_closed: false,
            waiting: None,
            running: FuturesUnordered::new(),
            runs_exclusively: false,
            last: 0,
            cancel: cancel.child_token(),
        }
    }

    /// Begins a call or continues those that run. Waits if there is nothing to do; dropping the future loses nothing.
    pub async fn step(&mut self) {
        tokio::select! {
            biased;
            Some(()) = self.running.next(), if !self.running.is_empty() => {
                if self.running.is_empty() {
                    self.runs_exclusively = false;
                }
            }
            request = self.requests.recv(), if self.waiting.is_none() && !self.is_closed => {
                self.is_closed = request.is_none();
                self.waiting = request;
            }
            else => pending().await,
        }
        if let Some(request) = self.waiting.take() {
            let exclusive = self.excludes_others(&request.name);
            if self.running.is_empty() || !(exclusive || self.runs_exclusively) {
                self.runs_exclusively = exclusive;
                self.begin(request);
            } else {
                self.waiting = Some(request);
            }
        }
    }

    /// Ends the calls that are still running, after the tool that made them.
    pub async fn finish(mut self) {
        self.requests.close();
        self.cancel.cancel();
        self.waiting = None;
        while self.running.next().await.is_some() {}
    }

    /// Reports whether a call of this tool runs alone. The effect of one call may change the gate's decision about the
    /// next one.
    fn excludes_others(&self, name: &str) -> bool {
        let core = self.core;
        let tool = core.toolbox().callable(name);
        core.gate.is_some()
            || core.settings.tool_order == ToolOrder::Sequential
            || tool.is_some_and(|tool| tool.execution() == Execution::Sequential)
    }

    fn begin(&mut self, request: NestedRequest) {
        self.last += 1;
        let call_id: Arc<str> = format!("{}/{}", self.parent.call_id, self.last).into();
        let run = Arc::new(ToolRun {
            call_id: Arc::clone(&call_id),
            name: request.name.clone(),
            arguments: request.arguments.clone(),
            parent_call_id: Some(Arc::clone(&self.parent.call_id)),
        });
        let at = self.scope.record.begin(&run);
        self.core.emit(Event::ToolStart(Arc::clone(&run)));
        let scope = CallScope {
            updates: request.updates.clone(),
            ..self.scope.clone()
        };
        let span = spans::tool(&run.call_id);
        let call = call(
            self.core,
            run,
            request,
            scope,
            at,
            self.cancel.child_token(),
        );
        self.running.push(Box::pin(call.instrument(span)));
    }
}

/// Runs one call and sends its outcome.
fn call(
    core: &Core,
    run: Arc<ToolRun>,
    request: NestedRequest,
    scope: CallScope,
    at: Option<usize>,
    cancel: CancellationToken,
) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        let NestedRequest {
            name,
            arguments,
            cancel: no_longer_wanted,
            started,
            reply,
            ..
        } = request;
        // The caller may have stopped waiting.
        let _ = started.send(Arc::clone(&run.call_id));
        // The caller reports the beginning of the call before the call reports progress.
        pass().await;
        let call = ToolCall {
            id: run.call_id.to_string(),
            name,
            arguments,
            thought_signature: None,
            arguments_error: None,
        };
        let finished = {
            let outcome = core.make_call(&call, &run, &scope, &cancel);
            tokio::pin!(outcome);
            tokio::select! {
                biased;
                finished = &mut outcome => finished,
                () = no_longer_wanted.cancelled() => {
                    cancel.cancel();
                    outcome.await
                }
            }
        };
        scope.record.end(at, &finished);
        let _ = reply.send(NestedOutcome {
            call_id: Arc::clone(&run.call_id),
            output: finished.output,
            is_error: finished.is_error,
            duration: finished.duration,
        });
    })
}

/// Lets the other futures of the task run once. The scheduler's own yield would let them run several times.
async fn pass() {
    let mut has_passed = false;
    poll_fn(|context| {
        if has_passed {
            return Poll::Ready(());
        }
        has_passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
