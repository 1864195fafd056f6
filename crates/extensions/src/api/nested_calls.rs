//! Calls of other tools that a tool of an extension makes while it runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_agent::SessionApi;
use pinion_tools::{NestedCaller, ToolError, UpdateSink};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::actions::tool_summary;
use super::bridge::{text, value};
use super::extensions::Inner;
use super::payload;
use crate::ScriptError;

/// The calls that may be made and those that are in progress.
#[derive(Default)]
pub(super) struct NestedCalls(Mutex<NestedState>);

#[derive(Default)]
struct NestedState {
    /// The callers by the number of the work.
    callers: HashMap<u64, NestedCaller>,
    /// The tokens that end calls, by the number of the call.
    open: HashMap<u64, CancellationToken>,
}

impl NestedCalls {
    fn state(&self) -> MutexGuard<'_, NestedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, work: u64, caller: NestedCaller) {
        self.state().callers.insert(work, caller);
    }

    pub fn remove(&self, work: u64) {
        self.state().callers.remove(&work);
    }

    /// Ends a call; one that has ended is ignored.
    pub fn stop(&self, number: u64) {
        if let Some(cancel) = self.state().open.get(&number) {
            cancel.cancel();
        }
    }

    /// Returns the caller of a work, and the token that ends the new call.
    fn open(&self, work: u64, number: u64) -> Option<(NestedCaller, CancellationToken)> {
        let mut state = self.state();
        let caller = state.callers.get(&work)?.clone();
        let cancel = CancellationToken::new();
        state.open.insert(number, cancel.clone());
        Some((caller, cancel))
    }

    fn close(&self, number: u64) {
        self.state().open.remove(&number);
    }
}

impl Inner {
    /// Describes the tools that a tool may call.
    pub(super) fn callable_tools(&self, desk: &SessionApi) -> Vec<Value> {
        desk.callable_tools().iter().map(tool_summary).collect()
    }

    /// Calls a tool on behalf of the tool that runs as a work. The answer also reports a failure of the call.
    pub(super) async fn execute_tool(
        self: &Arc<Self>,
        generation: u64,
        arguments: &[Value],
    ) -> Result<Value, String> {
        let work = value(arguments, 0).as_u64().unwrap_or_default();
        let number = value(arguments, 1).as_u64().unwrap_or_default();
        let (name, given) = (text(arguments, 2), value(arguments, 3));
        let opened = self.nested.open(work, number);
        let (caller, cancel) = opened.ok_or("The tool has ended, or may not call other tools.")?;
        let (started, mut id) = oneshot::channel();
        let sent = Arc::new(AtomicU64::new(0));
        let updates = self.nested_updates(generation, number, Arc::clone(&sent));
        let call = caller.call(name.to_owned(), given.clone(), Some(updates), started);
        let outcome = tokio::select! {
            outcome = call => outcome,
            () = cancel.cancelled() => Err(ToolError("Operation aborted".into())),
        };
        self.nested.close(number);
        let answer = |id: &str, result: Value, is_error: bool| {
            let call = json!({"type": "toolCall", "id": id, "name": name, "arguments": given});
            json!({"toolCall": call, "result": result, "isError": is_error})
        };
        let answer = match outcome {
            Ok(outcome) => {
                let result = payload::output_value(&outcome.output);
                let mut answer = answer(&outcome.call_id, result, outcome.is_error);
                if let Some(duration) = outcome.duration {
                    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                    answer["durationMs"] = milliseconds.into();
                }
                answer
            }
            Err(error) => {
                let content = json!([{"type": "text", "text": error.0}]);
                let id = id.try_recv().ok();
                let result = json!({"content": content, "details": {}});
                answer(id.as_deref().unwrap_or_default(), result, true)
            }
        };
        // Progress travels in the script's queue and the answer does not: the script waits for as many updates.
        Ok(json!({"answer": answer, "updates": sent.load(Ordering::Acquire)}))
    }

    /// Returns a sink that passes the progress of a call on to JavaScript, and counts in `sent` what the script will
    /// receive.
    fn nested_updates(
        self: &Arc<Self>,
        generation: u64,
        number: u64,
        sent: Arc<AtomicU64>,
    ) -> UpdateSink {
        let inner = Arc::downgrade(self);
        Arc::new(move |output| {
            let Some(inner) = inner.upgrade() else { return };
            let Some(instance) = inner.instance(generation) else {
                return;
            };
            let output = payload::output_value(&output).to_string();
            let arguments = vec![number.to_string(), output];
            match inner.try_post(&instance, "nestedUpdate", arguments) {
                Ok(()) => {
                    sent.fetch_add(1, Ordering::AcqRel);
                }
                Err(error @ ScriptError::Busy) => {
                    inner.fault("<runtime>", "nestedUpdate", error.to_string());
                }
                // The script has ended, and the tool with it.
                Err(_) => {}
            }
        })
    }
}
