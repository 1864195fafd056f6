//! Who decides whether a tool call of the model may be made.
//!
//! Asked last: after whoever takes part in the session has had their say, and with the arguments the
//! tool will get. The engine stops waiting when the run is aborted, so a decision must be safe to drop.

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
    /// The agent begins to work by itself: a run and what follows from it.
    fn begin(&self);

    /// Everything that followed is over.
    fn settled(&self);

    /// Whether this call may be made.
    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict>;
}

/// A call that is ready to be made.
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    /// Which call it is; its arguments are those the model wrote.
    pub run: &'a ToolRun,
    /// The arguments the tool will get.
    pub arguments: &'a Value,
    /// Whose tool it is.
    pub maker: Maker,
    /// Where relative paths and commands start.
    pub cwd: &'a Path,
}

/// Whose tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// One of our own: it does what its name says.
    BuiltIn,
    /// Someone else's, whatever its name.
    Other,
}

/// What is decided about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is made.
    Run,
    /// It is not; the run goes on.
    Refuse {
        /// Tells the model.
        text: String,
        /// Tells programs: the details of the failed result.
        details: Value,
    },
}

impl Core {
    /// The result of a call that may not be made; `None` if it may.
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
        // Whoever is asked should have heard of the call.
        self.outlet.drained(cancel).await;
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
