//! Runs the tool calls of one answer.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_message::{
    AssistantMessage, Block, Message, NestedCalls, StopReason, ToolCall, ToolResultMessage,
    now_millis,
};
use pinion_tools::{Execution, NestedCaller, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info};

use crate::call_output::CallOutput;
use crate::config::{Steering, ToolOrder};
use crate::core::Core;
use crate::hooks::{Moment, ToolCallResult, ToolGate};
use crate::nested::{CallScope, NestedRuns};
use crate::progress::Progress;
use crate::spans;
use crate::{CallDetail, Delivery, Event, ToolRun};

/// Time for a tool to end after an abort; then its future is dropped.
const ABORT_GRACE: Duration = Duration::from_secs(3);
/// Time for a tool to end when the whole session is stopped; then its future is dropped.
const STOP_GRACE: Duration = Duration::from_millis(250);
/// Time for the preview of a change; a file system that does not answer must not stop the answer.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(2);

/// The outcome of the calls of one answer.
#[derive(Default)]
pub(crate) struct CallsOutcome {
    /// The results, in call order.
    pub results: Vec<Arc<Message>>,
    /// Steering messages that arrived while the calls ran.
    pub steering: Vec<Arc<Message>>,
    /// Every result asks to end the run.
    pub terminate: bool,
}

/// A call that may run, with the arguments for its tool.
struct ReadyCall {
    tool: Arc<dyn Tool>,
    arguments: Value,
}

/// A call that has ended, or was not made.
pub(crate) struct FinishedCall {
    run: Arc<ToolRun>,
    pub output: Arc<ToolOutput>,
    pub is_error: bool,
    /// The running time; `None` if the tool was not run.
    pub duration: Option<Duration>,
    /// The calls that the tool made.
    nested: Option<NestedCalls>,
}

impl Core {
    /// Runs every call of `answer`.
    pub async fn execute_calls(
        &self,
        answer: &AssistantMessage,
        cancel: &CancellationToken,
    ) -> CallsOutcome {
        let calls: Vec<&ToolCall> = answer.tool_calls().collect();
        let is_cut_off = answer.stop_reason == StopReason::Length;
        if is_cut_off && self.settings.behaviour.reject_cut_off_calls {
            return self.reject_cut_off(&calls, cancel).await;
        }
        // The effect of one call may change the gate's decision about the next one.
        let gated = self.gate.is_some();
        let parallel = self.settings.tool_order == ToolOrder::Parallel && !gated;
        if parallel && !self.any_sequential(&calls) {
            self.call_in_parallel(&calls, cancel).await
        } else {
            self.call_sequentially(&calls, cancel).await
        }
    }

    /// Fails every call of an answer that the output limit cut off.
    async fn reject_cut_off(
        &self,
        calls: &[&ToolCall],
        cancel: &CancellationToken,
    ) -> CallsOutcome {
        let mut done = CallsOutcome::default();
        for call in calls {
            let run = self.begin_call(call);
            let error = ToolError(format!(
                "Tool call \"{}\" was not executed: the response hit the output token limit, so its arguments may be \
                 truncated. Re-issue the tool call with complete arguments.",
                call.name
            ));
            let finished = self.end_call(run, failed(error), None);
            done.results
                .push(self.append_result(finished, cancel).await);
        }
        done
    }

    fn any_sequential(&self, calls: &[&ToolCall]) -> bool {
        let toolbox = self.toolbox();
        calls.iter().any(|call| {
            let tool = toolbox.active(&call.name);
            tool.is_some_and(|tool| tool.execution() == Execution::Sequential)
        })
    }

    /// Runs calls one after another. A steering message skips the rest, unless [`Steering::WaitsForTurn`] is set.
    async fn call_sequentially(
        &self,
        calls: &[&ToolCall],
        cancel: &CancellationToken,
    ) -> CallsOutcome {
        let mut done = CallsOutcome::default();
        let mut terminating = 0;
        for call in calls {
            let run = self.begin_call(call);
            let finished = if done.steering.is_empty() {
                let span = spans::tool(&run.call_id);
                let scope = CallScope::default();
                let call = self.make_call(call, &run, &scope, cancel);
                call.instrument(span).await
            } else {
                let skipped = ToolError("Skipped due to queued user message.".into());
                self.end_call(run, failed(skipped), None)
            };
            terminating += usize::from(finished.output.terminate);
            done.results
                .push(self.append_result(finished, cancel).await);
            if done.steering.is_empty() && self.settings.steering == Steering::SkipsCalls {
                done.steering = self.state().take_queued(Delivery::Steer);
            }
        }
        done.terminate = !calls.is_empty() && terminating == calls.len();
        done
    }

    /// Prepares calls in order and runs them in parallel. Results enter the conversation in call order.
    async fn call_in_parallel(
        &self,
        calls: &[&ToolCall],
        cancel: &CancellationToken,
    ) -> CallsOutcome {
        let mut running = FuturesUnordered::new();
        let mut finished: Vec<Option<FinishedCall>> = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            let run = self.begin_call(call);
            finished.push(None);
            match self.ready_call(call, &run, cancel).await {
                Ok(ready) => {
                    let span = spans::tool(&run.call_id);
                    let call = async move {
                        let scope = CallScope::default();
                        (at, self.run_call(ready, run, &scope, cancel).await)
                    };
                    running.push(call.instrument(span));
                }
                Err(refused) => finished[at] = Some(self.end_call(run, refused, None)),
            }
        }
        while let Some((at, call)) = running.next().await {
            finished[at] = Some(call);
        }
        drop(running);
        let mut done = CallsOutcome::default();
        let all_end = finished
            .iter()
            .all(|call| call.as_ref().is_some_and(|call| call.output.terminate));
        done.terminate = !calls.is_empty() && all_end;
        for call in finished.into_iter().flatten() {
            done.results.push(self.append_result(call, cancel).await);
        }
        done
    }

    fn begin_call(&self, call: &ToolCall) -> Arc<ToolRun> {
        let run = Arc::new(ToolRun {
            call_id: call.id.as_str().into(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            parent_call_id: None,
        });
        self.emit(Event::ToolStart(Arc::clone(&run)));
        run
    }

    /// Prepares a call that has begun, asks about it and runs it.
    pub(crate) async fn make_call(
        &self,
        call: &ToolCall,
        run: &Arc<ToolRun>,
        scope: &CallScope,
        cancel: &CancellationToken,
    ) -> FinishedCall {
        let run = Arc::clone(run);
        match self.ready_call(call, &run, cancel).await {
            Ok(ready) => self.run_call(ready, run, scope, cancel).await,
            Err(refused) => self.end_call(run, refused, None),
        }
    }

    /// Prepares a call and asks the gate about it. Returns the failed result if the call may not run.
    async fn ready_call(
        &self,
        call: &ToolCall,
        run: &ToolRun,
        cancel: &CancellationToken,
    ) -> Result<ReadyCall, ToolCallResult> {
        let ready = self.prepare_call(call, run, cancel).await?;
        match self
            .refusal(&*ready.tool, &ready.arguments, run, cancel)
            .await
        {
            None => Ok(ready),
            Some(refused) => Err(refused),
        }
    }

    /// Finds the tool, checks the arguments, and asks the hooks, which may change the arguments or block the call.
    async fn prepare_call(
        &self,
        call: &ToolCall,
        run: &ToolRun,
        cancel: &CancellationToken,
    ) -> Result<ReadyCall, ToolCallResult> {
        let tool = match run.parent_call_id {
            None => self.toolbox().active(&call.name),
            Some(_) => self.toolbox().callable(&call.name),
        };
        let Some(tool) = tool else {
            return Err(failed(ToolError(format!("Tool {} not found", call.name))));
        };
        if let Some(error) = &call.arguments_error
            && self.settings.behaviour.reject_malformed_arguments
        {
            let name = &call.name;
            let error = format!("Invalid arguments for tool \"{name}\": {error}");
            return Err(failed(ToolError(error)));
        }
        let arguments = catch_panic(&run.name, async {
            let prepared = tool.prepare(call.arguments.clone()).await?;
            tool.validate(&prepared).map_err(ToolError)
        });
        let arguments = tokio::select! {
            biased;
            arguments = arguments => arguments.map_err(failed)?,
            () = self.overdue(cancel) => return Err(failed(aborted())),
        };
        if self.hook(Moment::ToolCall).is_none() {
            return Ok(ReadyCall { tool, arguments });
        }
        let gate = self
            .ask_hook(Moment::ToolCall, cancel, |hooks| {
                hooks.tool_call(run, arguments)
            })
            .await;
        match gate {
            Some(ToolGate::Run(arguments)) => Ok(ReadyCall { tool, arguments }),
            Some(ToolGate::Block(reason)) => Err(failed(ToolError(reason))),
            Some(ToolGate::BlockAndEnd(reason)) => {
                let mut refused = failed(ToolError(reason));
                refused.output.terminate = true;
                Err(refused)
            }
            None => Err(failed(aborted())),
        }
    }

    async fn run_call(
        &self,
        ready: ReadyCall,
        run: Arc<ToolRun>,
        scope: &CallScope,
        cancel: &CancellationToken,
    ) -> FinishedCall {
        let ReadyCall { tool, arguments } = ready;
        debug!("tool call started");
        if self.settings.report_call_details {
            self.emit(Event::CallDetail(CallDetail::Admitted(Arc::clone(&run))));
        }
        let started = Instant::now();
        let progress = Arc::new(Progress::default());
        let for_hooks = self.hook(Moment::ToolResult).map(|_| arguments.clone());
        let result = self
            .call_guarded(&*tool, arguments, &run, &progress, scope, cancel)
            .await;
        let duration = started.elapsed();
        progress.close();
        let mut result = match result {
            Ok(output) => ToolCallResult {
                is_error: output.is_error,
                output,
            },
            Err(error) => failed(error),
        };
        if let Some(arguments) = for_hooks {
            let original = result.clone();
            let changed = self
                .ask_hook(Moment::ToolResult, cancel, |hooks| {
                    hooks.tool_result(&run, &arguments, original)
                })
                .await;
            result = changed.unwrap_or(result);
        }
        FinishedCall {
            nested: scope.finished_record(),
            ..self.end_call(run, result, Some(duration))
        }
    }

    fn end_call(
        &self,
        run: Arc<ToolRun>,
        result: ToolCallResult,
        duration: Option<Duration>,
    ) -> FinishedCall {
        let is_error = result.is_error;
        info!(
            tool = run.name.as_str(),
            outcome = if is_error { "failed" } else { "done" },
            duration_ms = duration.unwrap_or_default().as_millis() as u64,
            "tool call ended"
        );
        let output = self.masked(result.output);
        self.emit(Event::ToolEnd {
            run: Arc::clone(&run),
            output: Arc::clone(&output),
            is_error,
            duration,
        });
        FinishedCall {
            run,
            output,
            is_error,
            duration,
            nested: None,
        }
    }

    async fn append_result(&self, call: FinishedCall, cancel: &CancellationToken) -> Arc<Message> {
        let message = Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.run.call_id.to_string(),
            tool_name: call.run.name.clone(),
            content: call.output.content.clone(),
            details: call.output.details.clone(),
            is_error: call.is_error,
            duration_ms: call
                .duration
                .filter(|_| self.settings.behaviour.record_measurements)
                .map(|duration| duration.as_millis() as u64),
            timestamp: now_millis(),
            nested_calls: call.nested,
        }));
        self.append_message(message, cancel).await
    }

    /// Returns when an aborted call has had its grace period.
    async fn overdue(&self, cancel: &CancellationToken) {
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        cancel.cancelled().await;
        tokio::select! {
            () = tokio::time::sleep(ABORT_GRACE) => {}
            () = stopped => {}
        }
    }

    /// Calls a tool so that neither a panic nor an ignored abort blocks the run.
    async fn call_guarded(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        run: &Arc<ToolRun>,
        progress: &Arc<Progress>,
        scope: &CallScope,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let cancel = &cancel.child_token();
        let (caller, requests) = NestedCaller::new();
        let mut nested = NestedRuns::new(self, run, scope, requests, cancel);
        let printed = self.settings.report_call_details.then(Arc::default);
        let context = ToolContext {
            follower: printed.clone().map(|output: Arc<CallOutput>| output as _),
            ..self.tool_context(run, progress, scope, caller, cancel)
        };
        let sources = CallSources {
            progress,
            printed: printed.as_deref(),
        };
        let result = self
            .follow_call(tool, arguments, run, sources, &context, &mut nested)
            .await;
        if let Some(text) = sources.printed.and_then(CallOutput::take) {
            self.emit_printed(run, text);
        }
        nested.finish().await;
        result
    }

    fn tool_context(
        &self,
        run: &ToolRun,
        progress: &Arc<Progress>,
        scope: &CallScope,
        caller: NestedCaller,
        cancel: &CancellationToken,
    ) -> ToolContext {
        let sink = Arc::clone(progress);
        let forward = scope.updates.clone();
        ToolContext {
            call_id: Arc::clone(&run.call_id),
            cwd: Arc::clone(&self.cwd),
            cancel: cancel.clone(),
            env: self.session_variables(),
            updates: Arc::new(move |output: ToolOutput| {
                if let Some(forward) = &forward {
                    forward(output.clone());
                }
                sink.push(output);
            }),
            nested: scope.may_nest().then_some(caller),
            follower: None,
            records_change: self.settings.report_call_details,
        }
    }

    /// Polls a call, its progress and the calls that it makes, until it ends.
    async fn follow_call(
        &self,
        tool: &dyn Tool,
        arguments: Value,
        run: &Arc<ToolRun>,
        sources: CallSources<'_>,
        context: &ToolContext,
        nested: &mut NestedRuns<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let cancel = &context.cancel;
        let call = catch_panic(&run.name, async { tool.call(arguments, context).await });
        let overdue = self.overdue(cancel);
        let limit = self.settings.tool_timeout;
        let timeout = tokio::time::sleep(limit);
        tokio::pin!(call, overdue, timeout);
        let mut timed_out = false;
        loop {
            tokio::select! {
                biased;
                () = &mut timeout, if !timed_out => {
                    timed_out = true;
                    cancel.cancel();
                }
                () = &mut overdue => {
                    return Err(if timed_out { timeout_error(limit) } else { aborted() });
                }
                output = sources.progress.next_or_wait() => {
                    self.emit_update(run, output);
                    self.room(cancel).await;
                }
                text = sources.next_printed() => {
                    self.emit_printed(run, text);
                    self.room(cancel).await;
                }
                () = nested.step() => {}
                result = &mut call => {
                    self.emit_rest(run, sources.progress);
                    return if timed_out { result.and(Err(timeout_error(limit))) } else { result };
                }
            }
        }
    }
}

/// The sources of what a running call reports.
#[derive(Clone, Copy)]
struct CallSources<'a> {
    progress: &'a Progress,
    /// The output of its command, if the front requests it.
    printed: Option<&'a CallOutput>,
}

impl CallSources<'_> {
    /// Waits for the output of a command; without any it never returns.
    async fn next_printed(&self) -> Arc<str> {
        match self.printed {
            Some(printed) => printed.next().await,
            None => std::future::pending().await,
        }
    }
}

impl Core {
    /// Emits the change that a call would make, if its tool knows it.
    pub(crate) async fn preview(&self, call: &ToolCall, cancel: &CancellationToken) {
        let Some(tool) = self.toolbox().active(&call.name) else {
            return;
        };
        let preview = AssertUnwindSafe(tool.preview(&call.arguments, &self.cwd)).catch_unwind();
        let preview = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            preview = tokio::time::timeout(PREVIEW_TIMEOUT, preview) => preview,
        };
        if let Ok(Ok(Some(mut change))) = preview {
            change.mask(&self.mask);
            self.emit(Event::CallDetail(CallDetail::Preview {
                call_id: call.id.as_str().into(),
                change: Arc::new(change),
            }));
        }
    }

    fn emit_printed(&self, run: &Arc<ToolRun>, text: Arc<str>) {
        self.emit(Event::CallDetail(CallDetail::Printed {
            run: Arc::clone(run),
            text,
        }));
    }

    fn emit_update(&self, run: &Arc<ToolRun>, output: ToolOutput) {
        let output = self.masked(output);
        self.emit(Event::ToolUpdate {
            run: Arc::clone(run),
            output,
        });
    }

    /// Emits the updates that are left when a call ends: all of them, or only the newest one if a client is behind.
    fn emit_rest(&self, run: &Arc<ToolRun>, progress: &Progress) {
        while self.emitter.has_room()
            && let Some(output) = progress.next()
        {
            self.emit_update(run, output);
        }
        if let Some(output) = progress.newest() {
            self.emit_update(run, output);
        }
    }

    /// Masks known keys in the output.
    fn masked(&self, mut output: ToolOutput) -> Arc<ToolOutput> {
        self.mask.blocks(&mut output.content);
        let structured = output.structured_content.as_mut();
        for value in output.details.iter_mut().chain(structured) {
            self.mask.value(value);
        }
        if let Some(change) = &mut output.change {
            Arc::make_mut(change).mask(&self.mask);
        }
        Arc::new(output)
    }

    /// Returns the variables that describe the session to the commands of tools.
    fn session_variables(&self) -> Vec<(String, String)> {
        let Some(names) = self.settings.behaviour.session_variables else {
            return Vec::new();
        };
        let state = self.state();
        let file = state.store.file().map(|file| file.display().to_string());
        let model = state.model.as_deref();
        let values = [
            (names.session_id, Some(state.store.id().to_owned())),
            (names.session_file, file),
            (names.provider, model.map(|model| model.provider.clone())),
            (names.model, model.map(|model| model.id.clone())),
            (
                names.thinking_level,
                Some(state.thinking_level.as_str().to_owned()),
            ),
        ];
        let known = values.into_iter();
        known
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }
}

/// Runs `call` and turns a panic into an error.
async fn catch_panic<T>(
    name: &str,
    call: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let result = AssertUnwindSafe(call).catch_unwind().await;
    result.unwrap_or_else(|_| Err(ToolError(format!("Tool {name} failed unexpectedly"))))
}

pub(crate) fn aborted() -> ToolError {
    ToolError("Operation aborted".into())
}

pub(crate) fn failed(error: ToolError) -> ToolCallResult {
    ToolCallResult {
        output: ToolOutput {
            content: vec![Block::text(error.0)],
            details: Some(json!({})),
            ..ToolOutput::default()
        },
        is_error: true,
    }
}

fn timeout_error(limit: Duration) -> ToolError {
    ToolError(format!(
        "The tool was ended after {} seconds; the limit is the setting tools.timeoutSeconds",
        limit.as_secs()
    ))
}
