//! State that the native operations of one generation share.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rquickjs::{Ctx, Function, Persistent, Value};
use tokio_util::sync::CancellationToken;

use super::Generation;
use super::errors::{ScriptError, describe};
use super::limits::Watch;
use super::load::Loading;
use super::options::{ScriptOptions, Uncaught, UncaughtKind};
use super::timers::Timers;
use crate::Bridge;
use crate::services::Services;

/// State that the native operations of one generation share; cheap to clone.
#[derive(Clone)]
pub(crate) struct Host(Rc<Inner>);

struct Inner {
    generation: Generation,
    options: Rc<ScriptOptions>,
    /// Options that override the first ones, for a realm that was created before all of them were known.
    connected: OnceCell<Rc<ScriptOptions>>,
    loading: Rc<Loading>,
    watch: Rc<Watch>,
    timers: RefCell<Timers>,
    closed: CancellationToken,
    uncaught: RefCell<Option<Persistent<Function<'static>>>>,
    /// Releases what operations hold of the engine.
    closers: RefCell<Vec<Box<dyn FnOnce()>>>,
}

impl Host {
    pub(crate) fn new(
        generation: Generation,
        options: &Rc<ScriptOptions>,
        loading: &Rc<Loading>,
        watch: &Rc<Watch>,
    ) -> Self {
        Self(Rc::new(Inner {
            generation,
            options: Rc::clone(options),
            connected: OnceCell::new(),
            loading: Rc::clone(loading),
            watch: Rc::clone(watch),
            timers: RefCell::default(),
            closed: CancellationToken::new(),
            uncaught: RefCell::default(),
            closers: RefCell::default(),
        }))
    }

    pub(crate) fn generation(&self) -> Generation {
        self.0.generation
    }

    /// Sets the options that apply from now on.
    pub(crate) fn connect(&self, options: &Rc<ScriptOptions>) {
        // A realm is connected once, when it is opened.
        let _ = self.0.connected.set(Rc::clone(options));
    }

    fn options(&self) -> &ScriptOptions {
        self.0.connected.get().unwrap_or(&self.0.options)
    }

    /// Returns the program's services.
    pub(crate) fn services(&self) -> &Arc<dyn Services> {
        &self.options().services
    }

    /// Returns the connection to the session.
    pub(crate) fn bridge(&self) -> Option<&Arc<dyn Bridge>> {
        self.options().bridge.as_ref()
    }

    /// Returns a token that is cancelled when the generation is closed; operations that wait must end then.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    pub(crate) fn loading(&self) -> &Rc<Loading> {
        &self.0.loading
    }

    pub(crate) fn timers(&self) -> &RefCell<Timers> {
        &self.0.timers
    }

    /// Returns the time that an operation may block the script before the watchdog interrupts it.
    pub(crate) fn time_left(&self) -> Duration {
        self.0.watch.time_left()
    }

    /// Reports whether to interrupt the script. An operation that runs for long asks every few milliseconds.
    pub(crate) fn must_stop(&self) -> bool {
        self.0.watch.must_stop()
    }

    /// Calls `release` when the generation is closed.
    pub(crate) fn on_close(&self, release: impl FnOnce() + 'static) {
        self.0.closers.borrow_mut().push(Box::new(release));
    }

    /// Records that an operation blocked the script, so that its time counts as running time.
    pub(crate) fn waited(&self) {
        self.0.watch.waited();
    }

    /// Sets the function that receives uncaught errors first; it returns `true` if it handled one.
    pub(crate) fn set_uncaught_handler(&self, handler: Option<Persistent<Function<'static>>>) {
        *self.0.uncaught.borrow_mut() = handler;
    }

    /// Reports an uncaught error. Never fails and never ends the program.
    pub(crate) fn report<'js>(&self, ctx: &Ctx<'js>, kind: UncaughtKind, value: &Value<'js>) {
        let handler = self.0.uncaught.borrow().clone();
        if let Some(handler) = handler.and_then(|handler| handler.restore(ctx).ok()) {
            let kind = match kind {
                UncaughtKind::Rejection => "unhandledRejection",
                _ => "uncaughtException",
            };
            match handler.call::<_, bool>((value.clone(), kind)) {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => {
                    ctx.catch();
                }
            }
        }
        self.report_error(kind, describe(ctx, value));
    }

    /// Reports an error that has left the engine.
    pub(crate) fn report_error(&self, kind: UncaughtKind, error: ScriptError) {
        let message = error.to_string();
        let stack = match error {
            ScriptError::Thrown { stack, .. } => stack,
            _ => None,
        };
        (self.options().on_uncaught)(Uncaught {
            generation: self.0.generation,
            kind,
            message,
            stack,
        });
    }

    /// Releases everything that belongs to the realm.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
        self.0.timers.borrow_mut().clear();
        self.0.uncaught.borrow_mut().take();
        let closers = self.0.closers.take();
        closers.into_iter().for_each(|release| release());
    }
}
