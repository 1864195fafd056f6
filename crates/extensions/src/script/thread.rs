//! The thread of one engine: a loop over requests, timers and wake-ups.
//!
//! One turn is one request or one timer, followed by every job that it left. Everything runs in one task, so the engine
//! is never entered twice.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use rquickjs::AsyncRuntime;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Generation;
use super::errors::ScriptError;
use super::heap::Heap;
use super::host::Host;
use super::limits::{Stop, Watch};
use super::load::{Loading, ModuleLoader, ModuleResolver};
use super::options::{ScriptOptions, UncaughtKind};
use super::realm::{Realm, caught};
use super::rejections::Rejections;
use super::spin_wait::SpinWait;

/// Bytes allocated before the first garbage collection. Loading produces next to no garbage.
const FIRST_COLLECTION: usize = 4 << 20;

/// Jobs that no call waits for and that are interrupted for their memory before all generations are dropped. An
/// interruption frees a part of a chain of promises that grows without end, so that it reaches the limit again and again.
const ORPHANED_LIMIT: u32 = 4;

/// Time that memory may stay over the limit before all generations are dropped.
const FULL_GRACE: Duration = Duration::from_millis(250);

/// A request of the handle to the thread.
pub(crate) enum Request {
    Connect(Box<ScriptOptions>),
    Open(Generation, oneshot::Sender<Result<(), ScriptError>>),
    Call(Call),
    Forget(Generation, u64),
    Close(Generation),
}

/// One call of a function.
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) generation: Generation,
    pub(crate) function: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: oneshot::Sender<Result<String, ScriptError>>,
    /// The permit of a waiting call; `None` for a post.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

pub(crate) fn start(
    options: ScriptOptions,
    inbox: mpsc::Receiver<Request>,
    stop: Arc<Stop>,
) -> io::Result<()> {
    // Native functions that are called from deep inside a script need stack of their own.
    let stack = options.stack_size.saturating_mul(2).max(8 << 20);
    std::thread::Builder::new()
        .name("script".to_owned())
        .stack_size(stack)
        .spawn(move || {
            let Ok(executor) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            let local = tokio::task::LocalSet::new();
            local.block_on(&executor, async move {
                serve_all(options, inbox, stop).await;
            });
            drop(local);
            executor.shutdown_background();
        })?;
    Ok(())
}

/// Serves requests with one engine after another: an engine without memory is dropped with everything it holds.
async fn serve_all(options: ScriptOptions, mut inbox: mpsc::Receiver<Request>, stop: Arc<Stop>) {
    let Some(mut engine) = Engine::new(Rc::new(options), Arc::clone(&stop), None).await else {
        return;
    };
    engine.prepare().await;
    while let ServeEnd::Exhausted(lost) = engine.serve(&mut inbox).await {
        let options = Rc::clone(&engine.options);
        drop(engine);
        let Some(next) = Engine::new(options, Arc::clone(&stop), Some(lost)).await else {
            return;
        };
        engine = next;
    }
}

/// The reason why an engine stopped serving.
enum ServeEnd {
    /// The handle was dropped.
    All,
    Exhausted(LostGenerations),
}

/// Generations of an engine that ran out of memory.
struct LostGenerations {
    last: Generation,
    error: ScriptError,
}

struct Engine {
    // Dropped before the runtime, because realms hold its values.
    realms: BTreeMap<Generation, Realm>,
    /// The first realm, created before it is requested.
    first: Option<Realm>,
    rejections: Rc<RefCell<Rejections>>,
    runtime: AsyncRuntime,
    options: Rc<ScriptOptions>,
    loading: Rc<Loading>,
    watch: Rc<Watch>,
    untidy: bool,
    /// The recent speed at which requests follow each other.
    requests: SpinWait,
    /// Memory is over the limit, and garbage collection does not help.
    exhausted: Cell<bool>,
    /// The time since when memory is over the limit.
    full_since: Cell<Option<Instant>>,
    /// Interruptions for memory in jobs that no call waited for.
    orphaned: Cell<u32>,
    /// The generations that the engine before this one lost.
    lost: Option<LostGenerations>,
}

impl Engine {
    async fn new(
        options: Rc<ScriptOptions>,
        stop: Arc<Stop>,
        lost: Option<LostGenerations>,
    ) -> Option<Self> {
        let watch = Rc::new(Watch::new(options.busy_limit, options.memory_limit, stop));
        let (used, most) = watch.memory();
        let runtime = AsyncRuntime::new_with_alloc(Heap::new(used, most)).ok()?;
        runtime.set_max_stack_size(options.stack_size).await;
        runtime.set_gc_threshold(FIRST_COLLECTION).await;
        let loading = Rc::new(Loading::new(options.cache_dir.clone()));
        runtime
            .set_loader(
                ModuleResolver(Rc::clone(&loading)),
                ModuleLoader(Rc::clone(&loading)),
            )
            .await;
        let asked = Rc::clone(&watch);
        runtime
            .set_interrupt_handler(Some(Box::new(move || asked.must_stop())))
            .await;
        let rejections = Rc::new(RefCell::new(Rejections::default()));
        let tracked = Rc::clone(&rejections);
        runtime
            .set_host_promise_rejection_tracker(Some(Box::new(
                move |ctx, promise, reason, handled| {
                    tracked.borrow_mut().track(&ctx, promise, reason, handled);
                },
            )))
            .await;
        Some(Self {
            realms: BTreeMap::new(),
            first: None,
            rejections,
            runtime,
            options,
            loading,
            watch,
            untidy: false,
            requests: SpinWait::default(),
            exhausted: Cell::new(false),
            full_since: Cell::new(None),
            orphaned: Cell::new(0),
            lost,
        })
    }

    async fn serve(&mut self, inbox: &mut mpsc::Receiver<Request>) -> ServeEnd {
        loop {
            self.finish_jobs().await;
            self.check_memory().await;
            if self.exhausted.get() {
                return ServeEnd::Exhausted(self.drop_all());
            }
            self.report_rejections().await;
            self.drop_finished().await;
            if self.fire_one().await {
                // A chain of timers must not delay requests.
                if let Ok(request) = inbox.try_recv() {
                    self.handle(request).await;
                }
                continue;
            }
            let idle = Instant::now();
            if let Some(request) = self.requests.poll(|| inbox.try_recv().ok()) {
                self.requests.took(idle.elapsed());
                self.handle(request).await;
                continue;
            }
            let due = self
                .next_timer()
                .into_iter()
                .chain(self.next_memory_check())
                .min();
            tokio::select! {
                biased;
                () = self.progress() => {}
                request = inbox.recv() => match request {
                    Some(request) => {
                        self.requests.took(idle.elapsed());
                        self.handle(request).await;
                    }
                    None => break,
                },
                () = sleep_until(due) => {}
                () = tidy_later(self.untidy) => {
                    self.untidy = false;
                    self.loading.tidy();
                    self.runtime.run_gc().await;
                }
            }
        }
        self.release(&ScriptError::Ended);
        ServeEnd::All
    }

    /// Answers every unfinished call with `error` and releases everything that belongs to the engine.
    fn release(&mut self, error: &ScriptError) {
        for realm in self.realms.values() {
            realm.close();
            realm.fail_all(error);
        }
        self.rejections.borrow_mut().take();
        crate::ops::forget();
    }

    /// Drops all generations, because the engine cannot determine which of them holds the memory.
    fn drop_all(&mut self) -> LostGenerations {
        let error = self.watch.memory_error();
        let before = self.lost.take().map(|lost| lost.last);
        let last = self.realms.last_key_value().map(|(last, _)| *last);
        self.release(&error);
        if let Some((_, realm)) = self.realms.last_key_value() {
            realm
                .host()
                .report_error(UncaughtKind::Exhausted, error.clone());
        }
        LostGenerations {
            last: last.max(before).unwrap_or(Generation::FIRST),
            error,
        }
    }

    /// Records when memory stays over the limit although garbage is collected. A script that is interrupted, or gets no
    /// more memory, usually frees what it holds; this check comes after that.
    async fn check_memory(&self) {
        if !self.watch.is_full() {
            self.full_since.set(None);
            return;
        }
        let Some(since) = self.full_since.get() else {
            self.full_since.set(Some(Instant::now()));
            return;
        };
        if since.elapsed() < FULL_GRACE {
            return;
        }
        self.runtime.run_gc().await;
        if self.watch.is_full() {
            self.exhausted.set(true);
        } else {
            self.full_since.set(None);
        }
    }

    /// Returns the time of the next check of the memory.
    fn next_memory_check(&self) -> Option<Instant> {
        self.full_since.get().map(|since| since + FULL_GRACE)
    }

    async fn handle(&mut self, request: Request) {
        match request {
            Request::Open(generation, reply) => {
                let _ = reply.send(self.open(generation).await);
            }
            Request::Connect(options) => {
                self.watch
                    .set_limits(options.busy_limit, options.memory_limit);
                self.loading.set_cache_dir(options.cache_dir.clone());
                self.options = Rc::new(*options);
            }
            Request::Call(mut call) => {
                // The call does not wait any more, so that the next one may.
                drop(call.permit.take());
                match self.realms.get(&call.generation) {
                    Some(realm) => realm.call(call).await,
                    None => {
                        let lost = self.lost.as_ref();
                        let error = lost
                            .filter(|lost| call.generation <= lost.last)
                            .map_or(ScriptError::Closed, |lost| lost.error.clone());
                        let _ = call.reply.send(Err(error));
                    }
                }
            }
            Request::Forget(generation, call) => {
                if let Some(realm) = self.realms.get(&generation) {
                    realm.forget(call);
                }
            }
            Request::Close(generation) => {
                if let Some(realm) = self.realms.get(&generation) {
                    realm.close();
                }
            }
        }
        if self.watch.is_full() {
            self.runtime.run_gc().await;
        }
    }

    /// Creates the first realm and loads the module that loads extensions, while the program does other work.
    async fn prepare(&mut self) {
        // A failure here happens again, and is reported, when the realm is requested.
        if let Ok(realm) = self.make(Generation::FIRST).await {
            realm.prepare_loading().await;
            self.first = Some(realm);
        }
    }

    async fn make(&self, generation: Generation) -> Result<Realm, ScriptError> {
        self.watch.begin();
        let host = Host::new(generation, &self.options, &self.loading, &self.watch);
        Realm::open(&self.runtime, host, Rc::clone(&self.watch)).await
    }

    async fn open(&mut self, generation: Generation) -> Result<(), ScriptError> {
        let realm = match self.first.take() {
            Some(realm) if realm.host().generation() == generation => {
                realm.host().connect(&self.options);
                realm
            }
            _ => self.make(generation).await?,
        };
        self.realms.insert(generation, realm);
        self.loading.waits.forget();
        self.untidy = true;
        Ok(())
    }

    /// Runs jobs and native operations until none can continue.
    async fn finish_jobs(&self) {
        self.watch.begin();
        // Jobs that each start another one must not occupy this thread when the memory is used up.
        while !self.exhausted.get() && self.one_job().await {
            self.check_memory().await;
        }
    }

    /// Runs one job; `false` if there is none.
    async fn one_job(&self) -> bool {
        match self.runtime.execute_pending_job().await {
            Ok(done) => done,
            Err(failed) => {
                self.job_failed(failed.0).await;
                true
            }
        }
    }

    /// AwaitCache until a job can run, and runs it.
    async fn progress(&self) {
        loop {
            self.watch.begin();
            if self.one_job().await {
                self.check_memory().await;
                return;
            }
            let mut slept = false;
            // The engine has stored the waker of this task, so that the operations it waits for wake the task.
            poll_fn(|_| {
                if std::mem::replace(&mut slept, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
    }

    /// Handles a failed job, which was interrupted. Its promise will never settle, so all calls of the same generation
    /// fail.
    async fn job_failed(&self, context: rquickjs::AsyncContext) {
        let (identity, error) = context
            .with(|ctx| {
                let error = caught(&ctx, &self.watch, rquickjs::Error::Exception);
                (super::rejections::realm_of(&ctx), error)
            })
            .await;
        self.watch.begin();
        if let Some(realm) = self
            .realms
            .values()
            .find(|realm| realm.identity() == identity)
            && realm.fail_all(&error) == 0
        {
            realm.host().report_error(UncaughtKind::Interrupted, error);
            if self.watch.was_memory() {
                self.orphaned.set(self.orphaned.get() + 1);
                self.exhausted.set(self.orphaned.get() >= ORPHANED_LIMIT);
            }
        }
        if self.watch.is_full() {
            self.runtime.run_gc().await;
        }
    }

    async fn report_rejections(&self) {
        if self.rejections.borrow().is_empty() {
            return;
        }
        let rejected = self.rejections.borrow_mut().take();
        for rejection in rejected {
            let identity = rejection.realm;
            let Some(realm) = self
                .realms
                .values()
                .find(|realm| realm.identity() == identity)
            else {
                continue;
            };
            realm
                .context()
                .with(|ctx| {
                    if let Ok(reason) = rejection.reason.restore(&ctx) {
                        realm.host().report(&ctx, UncaughtKind::Rejection, &reason);
                    }
                })
                .await;
        }
    }

    async fn drop_finished(&mut self) {
        let before = self.realms.len();
        self.realms.retain(|_, realm| !realm.is_over());
        if self.realms.len() < before {
            self.untidy = true;
        }
    }

    /// Fires one timer that is due, from the oldest generation that has one.
    async fn fire_one(&self) -> bool {
        let now = Instant::now();
        for realm in self.realms.values() {
            let timer = realm.host().timers().borrow_mut().take_due(now);
            if let Some(timer) = timer {
                realm.fire(timer).await;
                return true;
            }
        }
        false
    }

    fn next_timer(&self) -> Option<Instant> {
        self.realms
            .values()
            .filter_map(|realm| realm.host().timers().borrow().next())
            .min()
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// AwaitCache until the engine has been idle for 200 ms, if there is anything to tidy.
async fn tidy_later(untidy: bool) {
    if untidy {
        tokio::time::sleep(Duration::from_millis(200)).await;
    } else {
        std::future::pending::<()>().await;
    }
}
