//! One generation: a context of the engine, its operations and its unfinished calls.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::function::Args;
use rquickjs::prelude::{Func, This};
use rquickjs::{
    AsyncContext, AsyncRuntime, Ctx, Error, Function, Module, Persistent, Result, Value,
};
use tokio::sync::oneshot;

use super::errors::{ScriptError, describe};
use super::host::Host;
use super::limits::Watch;
use super::load::import_now;
use super::rejections::realm_of;
use super::thread::Call;
use crate::ops;

/// The function that loads extensions.
const LOAD: &str = "main.load";

/// The caller that waits for a call; taken by the first event that settles it.
type Waiting = Rc<Cell<Option<oneshot::Sender<std::result::Result<String, ScriptError>>>>>;

pub(crate) struct Realm {
    context: AsyncContext,
    host: Host,
    watch: Rc<Watch>,
    identity: usize,
    functions: RefCell<HashMap<String, Persistent<Function<'static>>>>,
    pending: Rc<RefCell<HashMap<u64, Waiting>>>,
    closed: Cell<bool>,
}

impl Realm {
    /// Creates the context with its operations and its globals, which load when they are first accessed.
    pub(crate) async fn open(
        runtime: &AsyncRuntime,
        host: Host,
        watch: Rc<Watch>,
    ) -> std::result::Result<Self, ScriptError> {
        let context = AsyncContext::full(runtime)
            .await
            .map_err(|_| ScriptError::Ended)?;
        let identity = context
            .with(|ctx| {
                prepare(&ctx, &host).map_err(|error| caught(&ctx, &watch, error))?;
                Ok::<_, ScriptError>(realm_of(&ctx))
            })
            .await?;
        Ok(Self {
            context,
            host,
            watch,
            identity,
            functions: RefCell::default(),
            pending: Rc::default(),
            closed: Cell::new(false),
        })
    }

    /// Loads the module that the program calls first.
    pub(crate) async fn prepare_loading(&self) {
        self.context
            .with(|ctx| {
                if let Err(error) = self.function(&ctx, LOAD) {
                    caught(&ctx, &self.watch, error);
                }
            })
            .await;
    }

    pub(crate) fn context(&self) -> &AsyncContext {
        &self.context
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Identifies the context.
    pub(crate) fn identity(&self) -> usize {
        self.identity
    }

    /// Starts `call`. Its answer is sent when its promise settles.
    pub(crate) async fn call(&self, call: Call) {
        let Call {
            id,
            function,
            arguments,
            cancel,
            reply,
            ..
        } = call;
        if self.closed.get() {
            let _ = reply.send(Err(ScriptError::Closed));
            return;
        }
        let waiting: Waiting = Rc::new(Cell::new(Some(reply)));
        self.pending.borrow_mut().insert(id, Rc::clone(&waiting));
        self.context
            .with(|ctx| {
                self.watch.enter(id, &function, &cancel);
                let result = self
                    .function(&ctx, &function)
                    .and_then(|function| invoke(&ctx, &function, &arguments))
                    .and_then(|value| self.follow(&ctx, id, &waiting, value));
                if let Err(error) = result {
                    let error = caught(&ctx, &self.watch, error);
                    self.settle(id, &waiting, Err(error));
                }
                self.watch.leave();
            })
            .await;
    }

    /// Sends the answer when `value` settles; immediately, unless it is a promise.
    fn follow<'js>(
        &self,
        ctx: &Ctx<'js>,
        id: u64,
        waiting: &Waiting,
        value: Value<'js>,
    ) -> Result<()> {
        let Some(promise) = value.as_promise().cloned() else {
            let text = to_json(ctx, value)?;
            self.settle(id, waiting, Ok(text));
            return Ok(());
        };
        let done = self.settler(id, waiting, |ctx, value| {
            to_json(ctx, value).map_err(|error| {
                let value = if error.is_exception() {
                    ctx.catch()
                } else {
                    thrown(ctx, error)
                };
                describe(ctx, &value)
            })
        });
        let failed = self.settler(id, waiting, |ctx, value| Err(describe(ctx, &value)));
        promise
            .then()?
            .call::<_, ()>((This(promise.clone()), Func::from(done), Func::from(failed)))
    }

    fn settler<'js>(
        &self,
        id: u64,
        waiting: &Waiting,
        answer: fn(&Ctx<'js>, Value<'js>) -> std::result::Result<String, ScriptError>,
    ) -> impl Fn(Ctx<'js>, Value<'js>) + 'js {
        let pending = Rc::clone(&self.pending);
        let watch = Rc::clone(&self.watch);
        let waiting = Rc::clone(waiting);
        move |ctx: Ctx<'js>, value: Value<'js>| {
            pending.borrow_mut().remove(&id);
            watch.ended(id);
            if let Some(reply) = waiting.take() {
                let _ = reply.send(answer(&ctx, value));
            }
        }
    }

    fn settle(&self, id: u64, waiting: &Waiting, answer: std::result::Result<String, ScriptError>) {
        self.pending.borrow_mut().remove(&id);
        self.watch.ended(id);
        if let Some(reply) = waiting.take() {
            let _ = reply.send(answer);
        }
    }

    /// Forgets `call`, whose caller does not wait any more.
    pub(crate) fn forget(&self, call: u64) {
        self.watch.ended(call);
        if let Some(waiting) = self.pending.borrow_mut().remove(&call) {
            waiting.take();
        }
    }

    /// Fails every unfinished call, because an interruption leaves promises that never settle.
    pub(crate) fn fail_all(&self, error: &ScriptError) -> usize {
        let pending: Vec<Waiting> = self
            .pending
            .borrow_mut()
            .drain()
            .map(|(_, waiting)| waiting)
            .collect();
        for waiting in &pending {
            if let Some(reply) = waiting.take() {
                let _ = reply.send(Err(error.clone()));
            }
        }
        pending.len()
    }

    /// Accepts no further calls.
    pub(crate) fn close(&self) {
        if !self.closed.replace(true) {
            self.host.close();
        }
    }

    /// Reports whether the realm is closed and its last call has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.get() && self.pending.borrow().is_empty()
    }

    /// Runs one timer that is due.
    pub(crate) async fn fire(&self, timer: u64) {
        let Some(fire) = self.host.timers().borrow().fire() else {
            return;
        };
        self.watch.begin();
        self.context
            .with(|ctx| {
                let result = fire
                    .restore(&ctx)
                    .and_then(|fire| fire.call::<_, ()>((timer as f64,)));
                if let Err(error) = result {
                    let error = caught(&ctx, &self.watch, error);
                    self.host.report_error(kind_of(&error), error);
                }
            })
            .await;
    }

    fn function<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Function<'js>> {
        if let Some(known) = self.functions.borrow().get(name) {
            return known.clone().restore(ctx);
        }
        let (module, member) = name.rsplit_once('.').unwrap_or((name, "default"));
        let module = if module.contains('/') {
            module.to_owned()
        } else {
            format!("api/{module}")
        };
        let function: Function<'js> = import_now(ctx, &format!("pinion:{module}"))?.get(member)?;
        let kept = Persistent::save(ctx, function.clone());
        self.functions.borrow_mut().insert(name.to_owned(), kept);
        Ok(function)
    }
}

fn kind_of(error: &ScriptError) -> super::UncaughtKind {
    match error {
        ScriptError::Interrupted(_) => super::UncaughtKind::Interrupted,
        _ => super::UncaughtKind::Callback,
    }
}

fn prepare(ctx: &Ctx<'_>, host: &Host) -> Result<()> {
    const HANDOVER: &str = "pinion operations";
    ctx.globals().set(HANDOVER, ops::all(ctx, host)?)?;
    let source =
        format!("export const ops = globalThis[{HANDOVER:?}]; delete globalThis[{HANDOVER:?}];");
    let (_, promise) = Module::declare(ctx.clone(), "pinion:ops", source)?.eval()?;
    promise.result::<()>().transpose()?;
    import_now(ctx, "pinion:runtime/globals")?;
    Ok(())
}

fn invoke<'js>(
    ctx: &Ctx<'js>,
    function: &Function<'js>,
    arguments: &[String],
) -> Result<Value<'js>> {
    let mut values = Args::new(ctx.clone(), arguments.len());
    for argument in arguments {
        values.push_arg(ctx.json_parse(argument.as_str())?)?;
    }
    function.call_arg(values)
}

fn to_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    match ctx.json_stringify(value)? {
        Some(text) => text.to_string(),
        None => Ok("null".to_owned()),
    }
}

fn thrown<'js>(ctx: &Ctx<'js>, error: Error) -> Value<'js> {
    let text = error.to_string();
    rquickjs::Exception::from_message(ctx.clone(), &text).map_or_else(
        |_| Value::new_undefined(ctx.clone()),
        |error| error.into_object().into_value(),
    )
}

/// Converts an error and clears the engine's pending exception.
pub(crate) fn caught(ctx: &Ctx<'_>, watch: &Watch, error: Error) -> ScriptError {
    let value = if error.is_exception() {
        ctx.catch()
    } else {
        thrown(ctx, error)
    };
    let error = describe(ctx, &value);
    let location = match &error {
        ScriptError::Thrown {
            stack: Some(stack), ..
        } => innermost_location(stack),
        _ => None,
    };
    watch.interruption(location.as_deref()).unwrap_or(error)
}

/// Returns the innermost file of a stack trace, with its line.
fn innermost_location(stack: &str) -> Option<String> {
    stack.lines().find_map(|line| {
        let location = line.trim().strip_prefix("at ")?;
        let location = match location.rsplit_once('(') {
            Some((_, location)) => location.trim_end_matches(')'),
            None => location,
        };
        location.starts_with('/').then(|| location.to_owned())
    })
}
