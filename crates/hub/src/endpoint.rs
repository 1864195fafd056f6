//! Whatever can be called through the hub, behind one trait.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use pinion_access::Principal;
use pinion_clip::data::{DataAnswer, DataOperation};
use pinion_clip::logs::ClipLog;
use pinion_clip::manifest::nearest;
use pinion_clip::web::{WebAnswer, WebRequest};
use pinion_clip::{CallError, Snapshot};
use pinion_status::{Code, Failure};
use tokio::sync::watch;
use tokio::time::Instant;

/// The outputs of a call as they come, each a JSON text; a failure is the last item. Dropping it cancels the call.
pub type Answers = Pin<Box<dyn Stream<Item = Result<Bytes, CallError>> + Send>>;

/// What a caller sends after the start of a call.
pub type Input = Pin<Box<dyn Stream<Item = Result<Part, Failure>> + Send>>;

/// A part of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its bytes.
    pub data: Bytes,
    /// Whether more may follow. The end of the stream says the same of the part before it.
    pub rank: Rank,
}

/// Where a part of an input stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Others may follow.
    Inner,
    /// It is the last.
    Last,
}

impl Part {
    /// A part, and whether it is said to be the last.
    pub fn new(data: Bytes, done: bool) -> Self {
        let rank = match done {
            true => Rank::Last,
            false => Rank::Inner,
        };
        Self { data, rank }
    }
}

/// A call to an endpoint.
pub struct Call {
    /// Which command.
    pub command: String,
    /// Its input as JSON text, `{}` if the caller gave none; with `more`, the first part of it, which may be empty.
    pub input: Bytes,
    /// Further input, for commands that read while they answer.
    pub more: Option<Input>,
    /// The secret that opens a guarded endpoint.
    pub secret: Option<String>,
    /// Until when an answer is wanted.
    pub deadline: Option<Instant>,
    /// Who says so.
    pub patience: Patience,
    /// Who calls.
    pub caller: Principal,
}

/// Who decided how long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// The caller; whoever is called further away is told.
    Callers,
    /// We did, because the caller did not; that is nobody else's business.
    Ours,
}

impl Call {
    /// A call by `caller` without anything special about it.
    pub fn new(caller: Principal, command: impl Into<String>, input: impl Into<Bytes>) -> Self {
        Self {
            command: command.into(),
            input: input.into(),
            more: None,
            secret: None,
            deadline: None,
            patience: Patience::Callers,
            caller,
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Call")
            .field("command", &self.command)
            .field("input", &self.input.len())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Something that can be called: a clip's process, a clip of a remote provider, a part of this program.
pub trait Endpoint: fmt::Debug + Send + Sync + 'static {
    /// What it is and how it stands.
    fn snapshot(&self) -> Snapshot;

    /// Calls a command. Returns at once; all that can go wrong is an item of the answer.
    fn invoke(self: Arc<Self>, call: Call) -> Answers;

    /// Tells of every change of what it is and how it stands, if it ever changes.
    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        None
    }

    /// Whether it has this command; one that lists none takes every command.
    fn accepts(&self, command: &str) -> bool {
        self.snapshot().manifest.accepts(command)
    }

    /// Refuses a call of a command that it does not have, or with an input that the command's schema does not allow. An input that
    /// comes in parts is checked by what collects it.
    fn check(&self, call: &Call) -> Result<(), Failure> {
        let manifest = self.snapshot().manifest;
        if !self.accepts(&call.command) {
            let names = manifest.commands.iter().map(|command| &command.name);
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

    /// It checks its inputs itself, and takes other names for some members than its schemas show.
    fn checks_inputs(&self) -> bool {
        false
    }

    /// Whether callers must know a secret.
    fn is_guarded(&self) -> bool {
        false
    }

    /// Starts it, if need be, and waits until it has said what it is.
    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(async { Ok(self.snapshot()) })
    }

    /// Does something with its files.
    fn data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, Failure>> {
        let _ = (path, operation);
        Box::pin(async { Err(missing("data")) })
    }

    /// The same, for those who want to know whether somebody has looked at the files.
    fn ask_for_data(
        &self,
        path: String,
        operation: DataOperation,
    ) -> BoxFuture<'_, Result<DataAnswer, CallError>> {
        let answer = self.data(path, operation);
        Box::pin(async { answer.await.map_err(CallError::Answered) })
    }

    /// Reads one of its web files.
    fn web(&self, request: WebRequest) -> BoxFuture<'_, Result<WebAnswer, Failure>> {
        let _ = request;
        Box::pin(async { Err(missing("web")) })
    }

    /// What it has logged, as far as that is known here.
    fn log(&self) -> Option<Arc<ClipLog>> {
        None
    }
}

/// The end of a message about a name that is not known.
pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("; did you mean \"{name}\"?"))
}

fn missing(what: &str) -> Failure {
    Failure::new(Code::Unimplemented, format!("this clip has no {what}"))
}

/// An answer that consists of one failure.
pub fn failed(error: CallError) -> Answers {
    Box::pin(futures_util::stream::once(async { Err(error) }))
}

/// An answer that consists of one output.
pub fn answered(output: impl Into<Bytes>) -> Answers {
    let output = output.into();
    Box::pin(futures_util::stream::once(async { Ok(output) }))
}
