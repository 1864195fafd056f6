//! The engine on its thread, and the handle to it.

mod awaits;
mod builtins;
mod cache;
mod callee;
mod commonjs;
mod embedded;
mod errors;
mod facade;
mod gaps;
mod heap;
mod limits;
mod load;
mod options;
mod pace;
mod packages;
pub(crate) mod raw;
mod realm;
mod rejections;
mod resolve;
mod shared;
mod thread;
mod timers;
mod transform;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use commonjs::wrapper;
pub(crate) use errors::describe;
pub use errors::{ScriptError, readable_message};
pub(crate) use load::{import_now, path_of, source_url};
pub use options::{ScriptOptions, Uncaught, UncaughtKind};
pub(crate) use resolve::{Request as ResolveRequest, Wanted};
pub(crate) use shared::Shared;
pub(crate) use transform::Kind;

use limits::Stop;
use pace::Pace;
use thread::{Call, Request};

/// One realm of the engine: globals and modules of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(u64);

impl Generation {
    /// The one every engine begins with.
    const FIRST: Self = Self(1);

    /// Its number: each is higher than those before.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A handle to one engine on a thread of its own. Dropping it ends the thread.
pub struct Script {
    // Not bounded: every call is awaited by whoever made it, so callers bound the queue.
    requests: mpsc::UnboundedSender<Request>,
    stop: Arc<Stop>,
    next: AtomicU64,
    generations: AtomicU64,
    /// How quickly calls are answered.
    answers: Pace,
}

/// A generation that is being opened.
#[derive(Debug)]
pub struct Opening {
    /// Which it is; calls may be sent to it at once.
    pub generation: Generation,
    opened: oneshot::Receiver<Result<(), ScriptError>>,
}

impl Opening {
    /// Waits until it is open.
    ///
    /// # Errors
    ///
    /// When the engine cannot be made or has ended.
    pub async fn finish(self) -> Result<Generation, ScriptError> {
        self.opened.await.map_err(|_| ScriptError::Ended)??;
        Ok(self.generation)
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Script").finish_non_exhaustive()
    }
}

impl Script {
    /// Starts the thread, which makes the engine and what the first generation will need.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started.
    pub fn start(options: ScriptOptions) -> io::Result<Self> {
        let (requests, inbox) = mpsc::unbounded_channel();
        let stop = Arc::new(Stop::default());
        thread::start(options, inbox, Arc::clone(&stop))?;
        Ok(Self {
            requests,
            stop,
            next: AtomicU64::new(1),
            generations: AtomicU64::new(Generation::FIRST.0),
            answers: Pace::default(),
        })
    }

    /// Replaces the options the engine was started with, for when it was started before all of them
    /// were known; the size of the stack stays. Holds for generations opened from now on.
    ///
    /// # Errors
    ///
    /// When the engine has ended.
    pub fn connect(&self, options: ScriptOptions) -> Result<(), ScriptError> {
        self.send(Request::Connect(Box::new(options)))
    }

    /// Opens a realm whose modules are evaluated afresh.
    ///
    /// # Errors
    ///
    /// When the engine cannot be made or has ended.
    pub async fn open_generation(&self) -> Result<Generation, ScriptError> {
        self.begin_generation()?.finish().await
    }

    /// Begins to open a realm, without waiting for it. Calls to a generation that then cannot be
    /// opened fail with [`ScriptError::Closed`].
    ///
    /// # Errors
    ///
    /// When the engine has ended.
    pub fn begin_generation(&self) -> Result<Opening, ScriptError> {
        let generation = Generation(self.generations.fetch_add(1, Ordering::Relaxed));
        let (reply, opened) = oneshot::channel();
        self.send(Request::Open(generation, reply))?;
        Ok(Opening { generation, opened })
    }

    /// Calls an exported function of a built-in module with JSON text arguments and awaits its
    /// promise; the result is JSON text, `null` for `undefined`.
    ///
    /// `function` is `file.name` for a module in `js/api`, or `directory/file.name`. Dropping the
    /// future gives up the call: its result is discarded.
    ///
    /// # Errors
    ///
    /// When the function throws, is interrupted, or the generation is closed.
    pub async fn call(
        &self,
        generation: Generation,
        function: &str,
        arguments: Vec<String>,
    ) -> Result<String, ScriptError> {
        self.call_until(generation, function, arguments, &CancellationToken::new())
            .await
    }

    /// Like [`Script::call`], and interrupts the call when `cancel` is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Script::call`]; [`ScriptError::Aborted`] when it was cancelled.
    pub async fn call_until(
        &self,
        generation: Generation,
        function: &str,
        arguments: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<String, ScriptError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        let cancel = cancel.child_token();
        let given_up = GivenUp {
            requests: &self.requests,
            generation,
            id,
            cancel: cancel.clone(),
        };
        self.send(Request::Call(Call {
            id,
            generation,
            function: function.to_owned(),
            arguments,
            cancel: cancel.clone(),
            reply,
        }))?;
        let sent = Instant::now();
        let result = match self.answers.look(|| answer.try_recv().ok()) {
            Some(result) => result,
            None => tokio::select! {
                biased;
                result = answer => result.map_err(|_| ScriptError::Ended)?,
                () = cancel.cancelled() => return Err(ScriptError::Aborted),
            },
        };
        self.answers.took(sent.elapsed());
        std::mem::forget(given_up);
        result
    }

    /// Calls a function like [`Script::call`] and does not wait for it.
    pub fn post(&self, generation: Generation, function: &str, arguments: Vec<String>) {
        let (reply, _) = oneshot::channel();
        // The thread has ended: nobody is left to be told.
        let _ = self.send(Request::Call(Call {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            generation,
            function: function.to_owned(),
            arguments,
            cancel: CancellationToken::new(),
            reply,
        }));
    }

    /// Marks a generation stale: it is dropped when its last call has ended.
    pub fn close_generation(&self, generation: Generation) {
        // The thread has ended: so has the generation.
        let _ = self.requests.send(Request::Close(generation));
    }

    fn send(&self, request: Request) -> Result<(), ScriptError> {
        self.requests.send(request).map_err(|_| ScriptError::Ended)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// Tells the thread that nobody waits for a call any more.
struct GivenUp<'a> {
    requests: &'a mpsc::UnboundedSender<Request>,
    generation: Generation,
    id: u64,
    cancel: CancellationToken,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.cancel.cancel();
        let _ = self
            .requests
            .send(Request::Forget(self.generation, self.id));
    }
}
