//! A tool that does what the arguments of its calls describe.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, join_all};
use pinion_message::ToolSpec;
use pinion_tools::{Execution, TextChange, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::provider::Gates;

/// Behaves as its arguments describe: `say` (the output), `gate` (waits there), `stubborn` (ignores cancellation),
/// `fail` (the error), `panic`, `update` (progress), `print` (output of a command), `change` (a file), `terminate`, `nested` (arguments of calls of `act` that it makes at the
/// same time; it returns their texts).
pub struct ScriptedTool {
    spec: ToolSpec,
    execution: Execution,
    gates: Gates,
    /// The beginnings and ends of all calls, in order.
    log: Arc<Mutex<Vec<String>>>,
}

impl ScriptedTool {
    pub fn shared(
        name: &str,
        execution: Execution,
        gates: &Gates,
        log: &Arc<Mutex<Vec<String>>>,
    ) -> Arc<dyn Tool> {
        Arc::new(Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "Does what its arguments describe.".to_owned(),
                parameters: json!({"type": "object"}),
            },
            execution,
            gates: gates.clone(),
            log: Arc::clone(log),
        })
    }

    fn note(&self, what: &str, said: &str) {
        self.log.lock().unwrap().push(format!("{what} {said}"));
    }
}

impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execution(&self) -> Execution {
        self.execution
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Value,
        cwd: &'a Path,
    ) -> BoxFuture<'a, Option<TextChange>> {
        let file = arguments["change"].as_str();
        let change = file.map(|file| TextChange::between(cwd.join(file), None, "x".into()));
        Box::pin(std::future::ready(change))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
            let said = text("say");
            self.note("begin", &said);
            if arguments["panic"] == true {
                panic!("a scripted panic");
            }
            for update in arguments["update"].as_array().into_iter().flatten() {
                (context.updates)(ToolOutput::text(update.as_str().unwrap_or_default()));
                tokio::task::yield_now().await;
            }
            if let (Some(follower), Some(text)) = (&context.follower, arguments["print"].as_str()) {
                follower.printed(text);
            }
            if let Some(nested) = arguments["nested"].as_array() {
                let calls = nested
                    .iter()
                    .map(|arguments| nested_call(arguments, context));
                return Ok(ToolOutput::text(join_all(calls).await.join(",")));
            }
            let gate = text("gate");
            if arguments["stubborn"] == true {
                self.gates.pass(&gate).await;
            } else if !gate.is_empty() {
                tokio::select! {
                    biased;
                    () = context.cancel.cancelled() => {
                        self.note("cancel", &said);
                        return Err(ToolError("Operation aborted".into()));
                    }
                    () = self.gates.pass(&gate) => {}
                }
            }
            self.note("end", &said);
            if !arguments["fail"].is_null() {
                return Err(ToolError(text("fail")));
            }
            Ok(ToolOutput {
                terminate: arguments["terminate"] == true,
                ..ToolOutput::text(said)
            })
        })
    }
}

/// Makes a call of `act` and returns its text.
async fn nested_call(arguments: &Value, context: &ToolContext) -> String {
    let Some(caller) = &context.nested else {
        return "too deep".into();
    };
    let (started, _) = oneshot::channel();
    let outcome = caller.call("act".into(), arguments.clone(), None, started);
    match outcome.await {
        Ok(outcome) => outcome.output.content[0].as_text().unwrap().to_owned(),
        Err(error) => error.to_string(),
    }
}
