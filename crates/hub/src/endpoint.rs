//! The trait of everything that can be called through the hub, and the types of its calls.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pinion_access::Principal;
use pinion_clip::data::{DataAnswer, DataOperation};
use pinion_clip::logs::ClipLog;
use pinion_clip::web::{WebAnswer, WebRequest};
use pinion_clip::{CallError, Snapshot};
use pinion_status::{Code, Failure};
use pinion_text::nearest;
use tokio::sync::watch;
use tokio::time::Instant;

/// The outputs of a call as they arrive, each a JSON text; a failure is the last item. Dropping the stream cancels the
/// call.
pub type Answers = Pin<Box<dyn Stream<Item = Result<Bytes, CallError>> + Send>>;

/// The input that a caller sends after the start of a call.
pub type Input = Pin<Box<dyn Stream<Item = Result<InputPart, Failure>> + Send>>;

/// A part of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPart {
    pub data: Bytes,
    /// The end of the stream also marks the part before it as the last.
    pub position: PartPosition,
}

/// The position of a part in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartPosition {
    /// More parts may follow.
    Inner,
    /// No part follows.
    Last,
}

impl InputPart {
    /// Creates a part; `done` marks the last one.
    pub fn new(data: Bytes, done: bool) -> Self {
        let position = if done {
            PartPosition::Last
        } else {
            PartPosition::Inner
        };
        Self { data, position }
    }
}

/// A call to an endpoint.
pub struct HubCall {
    pub command: String,
    /// The input as JSON text, `{}` if the caller gave none. If `more` is set, the first part of the input, which may
    /// be empty.
    pub input: Bytes,
    /// The rest of the input, for commands that read while they answer.
    pub more: Option<Input>,
    /// The secret that a guarded endpoint requires.
    pub secret: Option<String>,
    /// The time at which the call fails if it is not complete.
    pub deadline: Option<Instant>,
    pub deadline_origin: DeadlineOrigin,
    pub caller: Principal,
    /// The caller's span, in the form of the header of the same name. Without it, the current span is the caller's.
    pub traceparent: Option<String>,
}

/// The party that set the deadline of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineOrigin {
    /// The caller set it; a remote provider receives the remaining time.
    Caller,
    /// The hub set it because the caller did not; a remote provider does not receive it.
    Hub,
}

impl HubCall {
    /// Creates a call without further input, secret or deadline.
    pub fn new(caller: Principal, command: impl Into<String>, input: impl Into<Bytes>) -> Self {
        Self {
            command: command.into(),
            input: input.into(),
            more: None,
            secret: None,
            deadline: None,
            deadline_origin: DeadlineOrigin::Caller,
            caller,
            traceparent: None,
        }
    }
}

impl fmt::Debug for HubCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HubCall")
            .field("command", &self.command)
            .field("input", &self.input.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// A target of calls: a clip's process, a clip of a remote provider, or a part of this program.
pub trait Endpoint: fmt::Debug + Send + Sync + 'static {
    /// Returns the current manifest and status.
    fn snapshot(&self) -> Snapshot;

    /// Calls a command. Returns at once; every failure is an item of the answer.
    fn invoke(self: Arc<Self>, call: HubCall) -> Answers;

    /// Returns a receiver of changes of the manifest and status; `None` if they never change.
    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        None
    }

    /// Reports whether the endpoint has this command. An endpoint that lists no commands accepts every command.
    fn accepts(&self, command: &str) -> bool {
        self.snapshot().manifest.accepts(command)
    }

    /// Rejects a call of an unknown command, or with an input that the command's schema does not allow. Input that
    /// arrives in parts is not checked here but by the code that collects it.
    fn check(&self, call: &HubCall) -> Result<(), Failure> {
        let manifest = self.snapshot().manifest;
        if !self.accepts(&call.command) {
            let names = manifest
                .commands
                .iter()
                .map(|command| command.name.as_str());
            let hint = did_you_mean(nearest(&call.command, names));
            let message = format!(
                "clip \"{}\" does not support command \"{}\"{hint}",
                manifest.name, call.command
            );
            return Err(Failure::new(Code::NotFound, message));
        }
        if call.more.is_some() || self.checks_inputs() {
            return Ok(());
        }
        manifest.check_input(&call.command, &call.input)
    }

    /// Reports whether the endpoint checks inputs itself, because it accepts other names for some members than its
    /// schemas show.
    fn checks_inputs(&self) -> bool {
        false
    }

    /// Reports whether callers must send a secret.
    fn is_guarded(&self) -> bool {
        false
    }

    /// Starts the clip if necessary, waits for its manifest, and returns the manifest and status.
    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(async { Ok(self.snapshot()) })
    }

    /// Performs an operation on the endpoint's files.
    fn data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, Failure>> {
        let _ = (path, operation);
        Box::pin(async { Err(missing("data")) })
    }

    /// Like [`Self::data`], but the error distinguishes failures that the endpoint reported from those before it was
    /// reached.
    fn ask_for_data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, CallError>> {
        let answer = self.data(path, operation);
        Box::pin(async { answer.await.map_err(CallError::Answered) })
    }

    /// Reads one of the endpoint's web files.
    fn web(&self, request: WebRequest) -> BoxFuture<'_, Result<WebAnswer, Failure>> {
        let _ = request;
        Box::pin(async { Err(missing("web")) })
    }

    /// Returns the endpoint's log, if this hub stores one.
    fn log(&self) -> Option<Arc<ClipLog>> {
        None
    }
}

/// The end of an error message about an unknown name: a suggestion, or nothing.
pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"))
}

fn missing(what: &str) -> Failure {
    Failure::new(Code::Unimplemented, format!("this clip has no {what}"))
}

/// Creates an answer that consists of one failure.
pub fn failed(error: CallError) -> Answers {
    Box::pin(futures_util::stream::once(async { Err(error) }))
}

/// Creates an answer that consists of one output.
pub fn answered(output: impl Into<Bytes>) -> Answers {
    let output = output.into();
    Box::pin(futures_util::stream::once(async { Ok(output) }))
}
