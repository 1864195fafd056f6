//! The engine of one script, on a thread of its own.
//!
//! The engine has neither files nor processes, network, timers or modules. A script that computes without waiting, uses
//! too much memory or prints too much ends with an error; so does one that waits for a promise that nothing settles.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::time::{Duration, Instant};

use pinion_agent::SessionApi;
use rquickjs::function::{Func, Opt};
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Object, Persistent, Runtime,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::catalogue::Catalogue;
use crate::output::{Item, Outputs};
use crate::store::Store;

/// Memory of the engine, in bytes.
const MEMORY_LIMIT: usize = 256 << 20;
/// Stack of the engine, in bytes; functions of the host that it calls need more.
const STACK_LIMIT: usize = 1 << 20;
const THREAD_STACK: usize = 4 << 20;
/// Time that a script may compute without waiting for a call.
const BUSY_LIMIT: Duration = Duration::from_secs(60);
/// Jobs between two checks of the limits.
const JOBS_PER_CHECK: u32 = 256;
/// Requests of the script that wait to be read.
const REQUEST_LIMIT: usize = 32;
/// Answers that wait for the script: more than it can have calls.
const ANSWER_LIMIT: usize = 64;

/// A call that the script requests.
#[derive(Debug)]
pub(crate) struct CallRequest {
    pub id: u64,
    pub name: String,
    pub arguments: Value,
}

/// The answer to a call: JSON, or the text of an error.
#[derive(Debug)]
pub(crate) struct CallAnswer {
    pub id: u64,
    pub result: Result<String, String>,
}

/// The end of a script.
#[derive(Debug, Default)]
pub(crate) struct ScriptEnd {
    pub items: Vec<Item>,
    /// The error; `None` if the script has completed.
    pub error: Option<String>,
}

/// A running script. Dropping it stops the script.
pub(crate) struct Script {
    pub requests: mpsc::Receiver<CallRequest>,
    answers: Option<blocking::SyncSender<CallAnswer>>,
    pub end: oneshot::Receiver<ScriptEnd>,
    stop: Arc<AtomicBool>,
}

/// The surroundings of a script.
pub(crate) struct Surroundings {
    pub catalogue: Catalogue,
    pub session: Option<SessionApi>,
    pub deadline: Option<Instant>,
}

impl Script {
    /// Starts a script. Fails if no thread can be started.
    pub fn start(code: String, surroundings: Surroundings) -> std::io::Result<Self> {
        let (request, requests) = mpsc::channel(REQUEST_LIMIT);
        let (answers, answered) = blocking::sync_channel(ANSWER_LIMIT);
        let (ended, end) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        std::thread::Builder::new()
            .name("codemode".into())
            .stack_size(THREAD_STACK)
            .spawn(move || {
                let end = run(&code, surroundings, request, &answered, stopped);
                // The call may have been dropped.
                let _ = ended.send(end);
            })?;
        Ok(Self {
            requests,
            answers: Some(answers),
            end,
            stop,
        })
    }

    /// Sends the answer to a call.
    pub fn answer(&self, answer: CallAnswer) {
        if let Some(answers) = &self.answers {
            // A script that has ended needs no answer.
            let _ = answers.try_send(answer);
        }
    }

    /// Asks the script to end.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.answers = None;
        self.requests.close();
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state that the functions of the host share.
struct Host {
    catalogue: Catalogue,
    outputs: RefCell<Outputs>,
    store: RefCell<Store>,
    request: mpsc::Sender<CallRequest>,
    /// Calls without an answer.
    in_flight: Cell<usize>,
    /// The end of the script: the error, or none.
    finished: RefCell<Option<Option<String>>>,
}

/// The limits of time.
struct Clock {
    stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
    /// The time since when the script computes.
    busy_since: Cell<Instant>,
}

impl Clock {
    /// Returns the reason for which the script must end now.
    fn overdue(&self) -> Option<String> {
        let now = Instant::now();
        if self.stop.load(Ordering::Relaxed) {
            Some("Script aborted: the call was aborted".into())
        } else if self.deadline.is_some_and(|deadline| now >= deadline) {
            Some("Script timed out: timeout_ms has passed".into())
        } else if now.duration_since(self.busy_since.get()) > BUSY_LIMIT {
            let limit = BUSY_LIMIT.as_secs();
            Some(format!(
                "Script timed out: it computed for {limit} s without waiting for a call"
            ))
        } else {
            None
        }
    }
}

fn run(
    code: &str,
    surroundings: Surroundings,
    request: mpsc::Sender<CallRequest>,
    answers: &blocking::Receiver<CallAnswer>,
    stop: Arc<AtomicBool>,
) -> ScriptEnd {
    let clock = Rc::new(Clock {
        stop,
        deadline: surroundings.deadline,
        busy_since: Cell::new(Instant::now()),
    });
    let host = Rc::new(Host {
        catalogue: surroundings.catalogue,
        outputs: RefCell::default(),
        store: RefCell::new(Store::new(surroundings.session)),
        request,
        in_flight: Cell::new(0),
        finished: RefCell::default(),
    });
    let failed = execute(code, &host, &clock, answers).err();
    let finished = host.finished.borrow_mut().take();
    let mut error = failed.or(finished.flatten());
    if error.is_none() {
        error = host.store.borrow_mut().save().err();
    }
    let items = host.outputs.borrow_mut().take();
    ScriptEnd { items, error }
}

fn execute(
    code: &str,
    host: &Rc<Host>,
    clock: &Rc<Clock>,
    answers: &blocking::Receiver<CallAnswer>,
) -> Result<(), String> {
    let sandbox = |error: rquickjs::Error| format!("Script sandbox failed: {error}");
    let runtime = Runtime::new().map_err(sandbox)?;
    runtime.set_memory_limit(MEMORY_LIMIT);
    runtime.set_max_stack_size(STACK_LIMIT);
    let watched = Rc::clone(clock);
    runtime.set_interrupt_handler(Some(Box::new(move || watched.overdue().is_some())));
    let context = Context::full(&runtime).map_err(sandbox)?;
    let settle = context.with(|ctx| {
        let started = start(&ctx, code, host).catch(&ctx);
        started.map_err(|error| clock.overdue().unwrap_or_else(|| explain(&error)))
    })?;
    loop {
        finish_jobs(&runtime, host, clock)?;
        if host.finished.borrow().is_some() {
            return Ok(());
        }
        if host.in_flight.get() == 0 {
            return Err("Error: the script waits for a promise that nothing can settle".into());
        }
        let CallAnswer { id, result } = wait(clock, answers)?;
        clock.busy_since.set(Instant::now());
        host.in_flight.set(host.in_flight.get().saturating_sub(1));
        let (succeeded, text) = match result {
            Ok(json) => (true, json),
            Err(error) => (false, error),
        };
        context.with(|ctx| {
            let function = settle.clone().restore(&ctx);
            let settled = function.and_then(|it| it.call::<_, ()>((id as f64, succeeded, text)));
            let settled = settled.catch(&ctx);
            settled.map_err(|error| clock.overdue().unwrap_or_else(|| explain(&error)))
        })?;
    }
}

/// Starts the script. Returns the function that settles its calls.
fn start(
    ctx: &Ctx<'_>,
    code: &str,
    host: &Rc<Host>,
) -> rquickjs::Result<Persistent<Function<'static>>> {
    let prelude: Function<'_> = ctx.eval(include_str!("prelude.js"))?;
    let entry: Object<'_> = prelude.call((functions(ctx, host)?,))?;
    let run: Function<'_> = entry.get("run")?;
    let settle: Function<'_> = entry.get("settle")?;
    // The script stays on its own lines, so that errors name the right ones.
    let script: Function<'_> = ctx.eval(format!("(async () => {{{code}\n}})"))?;
    run.call::<_, ()>((script,))?;
    Ok(Persistent::save(ctx, settle))
}

/// Runs every job that can run now.
fn finish_jobs(runtime: &Runtime, host: &Host, clock: &Clock) -> Result<(), String> {
    let mut jobs = 0;
    loop {
        // A job that fails rejects a promise; it fails itself only if the engine interrupts it.
        let more = runtime.execute_pending_job().unwrap_or(true);
        if host.finished.borrow().is_some() || !more {
            return clock.overdue().map_or(Ok(()), Err);
        }
        jobs += 1;
        if jobs % JOBS_PER_CHECK == 0
            && let Some(reason) = clock.overdue()
        {
            return Err(reason);
        }
    }
}

/// Waits for the answer to a call.
fn wait(clock: &Clock, answers: &blocking::Receiver<CallAnswer>) -> Result<CallAnswer, String> {
    let aborted = || "Script aborted: the call was aborted".to_owned();
    let Some(deadline) = clock.deadline else {
        return answers.recv().map_err(|_| aborted());
    };
    let left = deadline.saturating_duration_since(Instant::now());
    answers.recv_timeout(left).map_err(|error| match error {
        blocking::RecvTimeoutError::Timeout => "Script timed out: timeout_ms has passed".into(),
        blocking::RecvTimeoutError::Disconnected => aborted(),
    })
}

/// Returns the functions that the prelude calls.
fn functions<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Object<'js>> {
    let functions = Object::new(ctx.clone())?;
    let at = || Rc::clone(host);
    let thrown = |ctx: &Ctx<'js>, message: String| Exception::throw_message(ctx, &message);
    let own = at();
    functions.set(
        "begin",
        Func::from(move |ctx: Ctx<'js>, id: f64, name: String, json: String| {
            let arguments = serde_json::from_str(&json)
                .map_err(|_| Exception::throw_type(&ctx, "the arguments are not JSON"))?;
            let request = CallRequest {
                id: id as u64,
                name,
                arguments,
            };
            own.in_flight.set(own.in_flight.get() + 1);
            // The end of the call that runs the script stops the script too.
            let sent = own.request.blocking_send(request);
            sent.map_err(|_| Exception::throw_message(&ctx, "the call was aborted"))
        }),
    )?;
    for (name, kind) in [("text", Kind::Text), ("print", Kind::Console)] {
        let own = at();
        functions.set(
            name,
            Func::from(move |ctx: Ctx<'js>, text: String| {
                let item = match kind {
                    Kind::Text => Item::Text(text),
                    Kind::Console => Item::Console(text),
                };
                let added = own.outputs.borrow_mut().add(item);
                added.map_err(|message| thrown(&ctx, message))
            }),
        )?;
    }
    let own = at();
    functions.set(
        "image",
        Func::from(move |ctx: Ctx<'js>, mime: String, data: String| {
            let item = Item::image(mime, data).map_err(|message| thrown(&ctx, message))?;
            let added = own.outputs.borrow_mut().add(item);
            added.map_err(|message| thrown(&ctx, message))
        }),
    )?;
    let own = at();
    functions.set(
        "finish",
        Func::from(move |error: Opt<Option<String>>| {
            own.finished.borrow_mut().get_or_insert(error.0.flatten());
        }),
    )?;
    let own = at();
    functions.set(
        "exit",
        Func::from(move || {
            own.finished.borrow_mut().get_or_insert(None);
        }),
    )?;
    let own = at();
    functions.set(
        "store",
        Func::from(
            move |ctx: Ctx<'js>, key: String, json: Opt<Option<String>>| {
                let stored = own.store.borrow_mut().set(key, json.0.flatten());
                stored.map_err(|message| thrown(&ctx, message))
            },
        ),
    )?;
    let own = at();
    functions.set(
        "load",
        Func::from(move |key: String| own.store.borrow_mut().get(&key)),
    )?;
    let own = at();
    functions.set(
        "find",
        Func::from(move |identifier: String| own.catalogue.find(&identifier)),
    )?;
    let own = at();
    functions.set(
        "identifiers",
        Func::from(move || own.catalogue.identifiers()),
    )?;
    let own = at();
    functions.set("list", Func::from(move || own.catalogue.list()))?;
    let own = at();
    functions.set(
        "search",
        Func::from(
            move |query: String, limit: f64, namespace: Opt<Option<String>>| {
                let namespace = namespace.0.flatten();
                own.catalogue
                    .search(&query, limit as usize, namespace.as_deref())
            },
        ),
    )?;
    let own = at();
    functions.set(
        "describe",
        Func::from(move |name: String| own.catalogue.describe(&name)),
    )?;
    let own = at();
    functions.set(
        "namespace",
        Func::from(move |name: String| own.catalogue.namespace(&name)),
    )?;
    Ok(functions)
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Console,
}

/// Returns the text of an error that the script did not catch.
fn explain(error: &CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => {
            let message = exception.message().unwrap_or_default();
            let name: String = exception.get("name").unwrap_or_else(|_| "Error".into());
            let stack = exception.stack().unwrap_or_default();
            let text = format!("{name}: {message}\n{stack}");
            text.trim_end().to_owned()
        }
        other => format!("Error: {other}"),
    }
}
