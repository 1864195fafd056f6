//! The JavaScript engine on its thread, and the handle to it.

mod builtins;
mod cache;
mod callee;
mod commonjs;
mod embedded;
mod errors;
mod facade;
mod heap;
mod host;
mod limits;
mod load;
mod missing_exports;
mod options;
mod packages;
mod realm;
mod rejections;
mod resolve;
mod spin_wait;
mod thread;
mod timers;
mod top_level_await;
mod transform;
pub(crate) mod unsafe_calls;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use commonjs::wrapper;
pub(crate) use errors::describe;
pub use errors::{ScriptError, readable_message};
pub(crate) use host::Host;
pub(crate) use load::{import_now, path_of, source_url};
pub use options::{ScriptOptions, Uncaught, UncaughtKind};
pub(crate) use resolve::{ImportKind, Request as ResolveRequest};
pub(crate) use transform::SourceKind;

use limits::Stop;
use spin_wait::SpinWait;
use thread::{Call, Request};

/// Calls that may wait for a busy engine. A further caller waits until one of them has been received, in order.
const WAITING_CALLS: usize = 1024;
/// Requests that may wait in total. Places beyond [`WAITING_CALLS`] are for requests that cannot wait because they are
/// sent by the engine's own thread or by a destructor: the ends of calls and generations, and posts. Such requests
/// follow from calls and generations, so that their number approaches this limit only if a caller posts without end;
/// then posts are refused.
const WAITING_REQUESTS: usize = 16 * 1024;
/// Places among [`WAITING_REQUESTS`] that are not available to posts, for the ends of calls and generations.
const RESERVED_REQUESTS: usize = 4 * 1024;

/// One realm of the engine, with its own globals and modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(u64);

impl Generation {
    /// The first generation of every engine.
    const FIRST: Self = Self(1);

    /// Returns the number of the generation; later ones have higher numbers.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A handle to one engine on its own thread. Dropping it ends the thread.
pub struct Script {
    requests: mpsc::Sender<Request>,
    /// Permits for waiting calls.
    calls: Arc<Semaphore>,
    stop: Arc<Stop>,
    next: AtomicU64,
    generations: AtomicU64,
    /// The recent speed of answers to calls.
    answers: SpinWait,
}

/// A generation that is being opened.
#[derive(Debug)]
pub struct Opening {
    /// The generation. Calls may be sent to it before it is open.
    pub generation: Generation,
    opened: oneshot::Receiver<Result<(), ScriptError>>,
}

impl Opening {
    /// AwaitCache until the generation is open.
    ///
    /// # Errors
    ///
    /// Fails if the engine cannot be created or has ended.
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
    /// Starts the thread, which creates the engine and prepares the first generation.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn start(options: ScriptOptions) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        let stop = Arc::new(Stop::default());
        thread::start(options, inbox, Arc::clone(&stop))?;
        Ok(Self {
            requests,
            calls: Arc::new(Semaphore::new(WAITING_CALLS)),
            stop,
            next: AtomicU64::new(1),
            generations: AtomicU64::new(Generation::FIRST.0),
            answers: SpinWait::default(),
        })
    }

    /// Replaces the options, for an engine that was started before all of them were known. The stack size stays. The
    /// new options apply to generations opened later.
    ///
    /// # Errors
    ///
    /// Fails if the engine has ended.
    pub fn connect(&self, options: ScriptOptions) -> Result<(), ScriptError> {
        self.send(Request::Connect(Box::new(options)))
    }

    /// Opens a realm whose modules are evaluated afresh.
    ///
    /// # Errors
    ///
    /// Fails if the engine cannot be created or has ended.
    pub async fn open_generation(&self) -> Result<Generation, ScriptError> {
        self.begin_generation()?.finish().await
    }

    /// Starts to open a realm and does not wait for it. If that fails, calls to the generation fail with
    /// [`ScriptError::Closed`].
    ///
    /// # Errors
    ///
    /// Fails if the engine has ended.
    pub fn begin_generation(&self) -> Result<Opening, ScriptError> {
        let generation = Generation(self.generations.fetch_add(1, Ordering::Relaxed));
        let (reply, opened) = oneshot::channel();
        self.send(Request::Open(generation, reply))?;
        Ok(Opening { generation, opened })
    }

    /// Calls an exported function of a built-in module with JSON text arguments and awaits its promise. The result is
    /// JSON text, `null` for `undefined`.
    ///
    /// `function` is `file.name` for a module in `js/api`, or `directory/file.name`. Dropping the future abandons the
    /// call: its result is discarded.
    ///
    /// # Errors
    ///
    /// Fails if the function throws, is interrupted, or the generation is closed.
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
    /// Fails as [`Script::call`] does, and with [`ScriptError::Aborted`] after a cancellation.
    pub async fn call_until(
        &self,
        generation: Generation,
        function: &str,
        arguments: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<String, ScriptError> {
        let permit = tokio::select! {
            biased;
            permit = self.permit() => permit?,
            () = cancel.cancelled() => return Err(ScriptError::Aborted),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, mut answer) = oneshot::channel();
        let cancel = cancel.child_token();
        let given_up = Abandoned {
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
            permit: Some(permit),
        }))?;
        let sent = Instant::now();
        let result = match self.answers.poll(|| answer.try_recv().ok()) {
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

    /// AwaitCache for a place among the waiting calls.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, ScriptError> {
        // Does not wait if a place is free, so that calls are sent in the order in which they are made.
        if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            return Ok(permit);
        }
        tokio::select! {
            permit = Arc::clone(&self.calls).acquire_owned() => permit.map_err(|_| ScriptError::Ended),
            () = self.requests.closed() => Err(ScriptError::Ended),
        }
    }

    /// Calls a function like [`Script::call`] and does not wait for it.
    ///
    /// # Errors
    ///
    /// Fails if the engine has ended, or too many requests wait for it.
    pub fn post(
        &self,
        generation: Generation,
        function: &str,
        arguments: Vec<String>,
    ) -> Result<(), ScriptError> {
        if self.requests.capacity() <= RESERVED_REQUESTS && !self.requests.is_closed() {
            return Err(ScriptError::Busy);
        }
        let (reply, _) = oneshot::channel();
        self.send(Request::Call(Call {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            generation,
            function: function.to_owned(),
            arguments,
            cancel: CancellationToken::new(),
            reply,
            permit: None,
        }))
    }

    /// Closes a generation. It is dropped when its last call has ended.
    pub fn close_generation(&self, generation: Generation) {
        // An error means that the thread, and with it the generation, has ended.
        let _ = self.send(Request::Close(generation));
    }

    fn send(&self, request: Request) -> Result<(), ScriptError> {
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => ScriptError::Busy,
                mpsc::error::TrySendError::Closed(_) => ScriptError::Ended,
            })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// Notifies the thread when the caller stops waiting for a call.
struct Abandoned<'a> {
    requests: &'a mpsc::Sender<Request>,
    generation: Generation,
    id: u64,
    cancel: CancellationToken,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.cancel.cancel();
        // A thread that has ended has no call to forget.
        let _ = self
            .requests
            .try_send(Request::Forget(self.generation, self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;

    use super::*;

    /// Returns a handle whose engine receives nothing, and the requests that wait for it.
    fn busy() -> (Arc<Script>, mpsc::Receiver<Request>) {
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        let script = Script {
            requests,
            calls: Arc::new(Semaphore::new(WAITING_CALLS)),
            stop: Arc::default(),
            next: AtomicU64::new(1),
            generations: AtomicU64::new(1),
            answers: SpinWait::default(),
        };
        (Arc::new(script), inbox)
    }

    async fn call(script: Arc<Script>, number: usize) -> Result<String, ScriptError> {
        let arguments = vec![number.to_string()];
        script.call(Generation::FIRST, "main.f", arguments).await
    }

    #[tokio::test]
    async fn calls_wait_outside_of_a_busy_engine_and_each_is_answered_once_in_order() {
        let (script, mut inbox) = busy();
        let calls = (0..3 * WAITING_CALLS).map(|number| tokio::spawn(call(script.clone(), number)));
        let calls: Vec<_> = calls.collect();
        while inbox.len() < WAITING_CALLS {
            tokio::task::yield_now().await;
        }
        // Time to admit one more call, if the limit did not hold.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(inbox.len(), WAITING_CALLS);
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let given_up = script.call_until(Generation::FIRST, "main.f", Vec::new(), &cancelled);
        assert_eq!(given_up.await, Err(ScriptError::Aborted));
        let engine = tokio::spawn(async move {
            let mut order = Vec::new();
            for _ in 0..3 * WAITING_CALLS {
                if let Some(Request::Call(mut call)) = inbox.recv().await {
                    drop(call.permit.take());
                    let number = call.arguments.remove(0);
                    order.push(number.parse::<usize>().unwrap());
                    let _ = call.reply.send(Ok(number));
                }
            }
            order
        });
        for (number, answer) in join_all(calls).await.into_iter().enumerate() {
            assert_eq!(answer.unwrap(), Ok(number.to_string()));
        }
        assert!(engine.await.unwrap().into_iter().eq(0..3 * WAITING_CALLS));
    }

    #[tokio::test]
    async fn calls_that_are_given_up_do_not_fill_the_queue() {
        let (script, inbox) = busy();
        for number in 0..5 * WAITING_CALLS {
            let call = call(script.clone(), number);
            let _ = tokio::time::timeout(Duration::ZERO, call).await;
        }
        // Each waiting call has sent a request, and another one when it was abandoned.
        assert_eq!(inbox.len(), 2 * WAITING_CALLS);
    }

    #[tokio::test]
    async fn posts_without_end_are_refused_and_leave_room_for_the_rest() {
        let (script, inbox) = busy();
        let post = || script.post(Generation::FIRST, "main.f", Vec::new());
        let posted = (0..WAITING_REQUESTS).filter(|_| post().is_ok()).count();
        assert_eq!(posted, WAITING_REQUESTS - RESERVED_REQUESTS);
        assert_eq!(post(), Err(ScriptError::Busy));
        script.close_generation(Generation::FIRST);
        assert_eq!(inbox.len(), posted + 1);
        drop(inbox);
        assert_eq!(post(), Err(ScriptError::Ended));
        assert_eq!(call(script, 1).await, Err(ScriptError::Ended));
    }
}
