//! The gate: decides about each tool call of the model.
//!
//! The engine asks it last, after the hooks, with the arguments that the tool will get. It stops waiting when the run
//! is aborted, so the future of a decision must be safe to drop.

use std::panic::AssertUnwindSafe;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_tools::{Tool, ToolError, ToolOutput};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ToolRun;
use crate::calls::{aborted, failed};
use crate::core::Core;
use crate::hooks::ToolCallResult;

/// Decides about tool calls.
pub trait Gate: Send + Sync {
    /// A prompt starts: a run with its retries and compactions.
    fn begin(&self);

    /// The prompt ended; the session is idle.
    fn settled(&self);

    /// Decides whether this call may run.
    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict>;
}

/// A call that is ready to run.
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    /// The call, with the arguments that the model wrote.
    pub run: &'a ToolRun,
    /// The arguments that the tool will get; a hook may have changed them.
    pub arguments: &'a Value,
    /// The origin of the tool.
    pub maker: Maker,
    /// The directory for relative paths and commands.
    pub cwd: &'a Path,
}

/// The origin of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Part of pinion, so its name determines its effect.
    BuiltIn,
    /// An extension, a clip or another program; its name proves nothing.
    Other,
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The call runs.
    Run,
    /// The call fails, and the run continues.
    Refuse {
        /// The result that the model sees.
        text: String,
        /// The details of the failed result, for programs.
        details: Value,
    },
}

impl Core {
    /// Returns the failed result of a call that the gate refuses; `None` if the call may run.
    pub(crate) async fn refusal(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        run: &ToolRun,
        cancel: &CancellationToken,
    ) -> Option<ToolCallResult> {
        let gate = self.gate.as_ref()?;
        let admission = Admission {
            run,
            arguments,
            maker: match tool.source() {
                None => Maker::BuiltIn,
                Some(_) => Maker::Other,
            },
            cwd: &self.cwd,
        };
        // A client that the gate asks must have received the start of the call.
        self.emitter.drained(cancel).await;
        let verdict = AssertUnwindSafe(gate.admit(admission)).catch_unwind();
        let verdict = tokio::select! {
            biased;
            () = cancel.cancelled() => return Some(failed(aborted())),
            verdict = verdict => verdict,
        };
        match verdict {
            Ok(Verdict::Run) => None,
            Ok(Verdict::Refuse { text, details }) => Some(ToolCallResult {
                output: ToolOutput {
                    details: Some(details),
                    ..ToolOutput::text(text)
                },
                is_error: true,
            }),
            Err(_) => Some(failed(ToolError(
                "This call was not run: deciding about it failed unexpectedly".into(),
            ))),
        }
    }
}
