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

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
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

/// Calls that may wait for the engine while it is busy. Whoever makes another one waits, in order.
const WAITING_CALLS: usize = 1024;
/// Requests that may wait in all. The rest is for requests that cannot wait because the engine's own thread sends them,
/// or somebody who is being dropped: the ends of calls and generations, and posts. These follow from calls and
/// generations, so that they come near this number only if somebody posts without end; then posts are refused.
const WAITING_REQUESTS: usize = 16 * 1024;
/// Places among [`WAITING_REQUESTS`] that posts leave free for the ends of calls and generations.
const FREE_OF_POSTS: usize = 4 * 1024;

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
    requests: mpsc::Sender<Request>,
    /// Places for waiting calls.
    calls: Arc<Semaphore>,
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
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        let stop = Arc::new(Stop::default());
        thread::start(options, inbox, Arc::clone(&stop))?;
        Ok(Self {
            requests,
            calls: Arc::new(Semaphore::new(WAITING_CALLS)),
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
        let place = tokio::select! {
            biased;
            place = self.place() => place?,
            () = cancel.cancelled() => return Err(ScriptError::Aborted),
        };
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
            place: Some(place),
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

    /// Waits for a place among the waiting calls.
    async fn place(&self) -> Result<OwnedSemaphorePermit, ScriptError> {
        // Without waiting where that is possible, so that calls are sent in the order in which they are made.
        if let Ok(place) = Arc::clone(&self.calls).try_acquire_owned() {
            return Ok(place);
        }
        tokio::select! {
            place = Arc::clone(&self.calls).acquire_owned() => place.map_err(|_| ScriptError::Ended),
            () = self.requests.closed() => Err(ScriptError::Ended),
        }
    }

    /// Calls a function like [`Script::call`] and does not wait for it.
    ///
    /// # Errors
    ///
    /// If the engine has ended, or too many requests wait for it.
    pub fn post(
        &self,
        generation: Generation,
        function: &str,
        arguments: Vec<String>,
    ) -> Result<(), ScriptError> {
        if self.requests.capacity() <= FREE_OF_POSTS && !self.requests.is_closed() {
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
            place: None,
        }))
    }

    /// Marks a generation stale: it is dropped when its last call has ended.
    pub fn close_generation(&self, generation: Generation) {
        // The thread has ended: so has the generation.
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

/// Tells the thread that nobody waits for a call any more.
struct GivenUp<'a> {
    requests: &'a mpsc::Sender<Request>,
    generation: Generation,
    id: u64,
    cancel: CancellationToken,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.cancel.cancel();
        // A thread that has ended has nothing to forget.
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

    /// A handle whose engine takes nothing, and the requests that wait for it.
    fn busy() -> (Arc<Script>, mpsc::Receiver<Request>) {
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        let script = Script {
            requests,
            calls: Arc::new(Semaphore::new(WAITING_CALLS)),
            stop: Arc::default(),
            next: AtomicU64::new(1),
            generations: AtomicU64::new(1),
            answers: Pace::default(),
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
                    drop(call.place.take());
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
        // Each call that waits, and that nobody waits for it any more.
        assert_eq!(inbox.len(), 2 * WAITING_CALLS);
    }

    #[tokio::test]
    async fn posts_without_end_are_refused_and_leave_room_for_the_rest() {
        let (script, inbox) = busy();
        let post = || script.post(Generation::FIRST, "main.f", Vec::new());
        let posted = (0..WAITING_REQUESTS).filter(|_| post().is_ok()).count();
        assert_eq!(posted, WAITING_REQUESTS - FREE_OF_POSTS);
        assert_eq!(post(), Err(ScriptError::Busy));
        script.close_generation(Generation::FIRST);
        assert_eq!(inbox.len(), posted + 1);
        drop(inbox);
        assert_eq!(post(), Err(ScriptError::Ended));
        assert_eq!(call(script, 1).await, Err(ScriptError::Ended));
    }
}
