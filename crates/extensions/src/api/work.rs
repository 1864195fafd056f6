//! Calls into JavaScript on behalf of the program. Each has a number, can be stopped, and is cancelled when its caller
//! stops waiting.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_tools::{NestedCaller, UpdateSink};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::extensions::Inner;
use super::instance::Instance;
use crate::ScriptError;

static NEXT_WORK: AtomicU64 = AtomicU64::new(1);

/// The receivers of progress updates, by the number of the work.
#[derive(Default)]
pub(super) struct Updates(Mutex<HashMap<u64, UpdateSink>>);

impl Updates {
    fn sinks(&self) -> MutexGuard<'_, HashMap<u64, UpdateSink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, work: u64) -> Option<UpdateSink> {
        self.sinks().get(&work).cloned()
    }
}

/// One call into JavaScript. Dropping it before it has finished notifies JavaScript that the result is not needed.
pub(super) struct Work {
    inner: Arc<Inner>,
    instance: Arc<Instance>,
    pub number: u64,
    finished: bool,
}

impl Work {
    /// Returns a number for work whose result is not awaited.
    pub fn next_number() -> u64 {
        NEXT_WORK.fetch_add(1, Ordering::Relaxed)
    }

    pub fn new(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Self {
        instance.enter();
        Self {
            inner: Arc::clone(inner),
            instance: Arc::clone(instance),
            number: Self::next_number(),
            finished: false,
        }
    }

    /// Sends progress updates to `sink`.
    pub fn report_to(&self, sink: UpdateSink) {
        self.inner.updates.sinks().insert(self.number, sink);
    }

    /// Lets the work call other tools.
    pub fn nest(&self, caller: NestedCaller) {
        self.inner.nested.add(self.number, caller);
    }

    /// Calls a function of `js/api/main.js` with the number of the work and `arguments`, each of them JSON text.
    pub async fn call(
        &mut self,
        function: &str,
        mut arguments: Vec<String>,
    ) -> Result<String, ScriptError> {
        arguments.insert(0, self.number.to_string());
        let script = self.inner.script()?;
        let answer = script
            .call(self.instance.generation, function, arguments)
            .await;
        self.finished = true;
        answer
    }

    /// Returns a function that asks JavaScript to end the work.
    pub fn stopper(&self) -> impl FnOnce() + use<> {
        let (inner, instance) = (Arc::clone(&self.inner), Arc::clone(&self.instance));
        let number = self.number;
        move || inner.post(&instance, "stop", vec![number.to_string()])
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.inner.updates.sinks().remove(&self.number);
        self.inner.nested.remove(self.number);
        if !self.finished {
            let arguments = vec![self.number.to_string()];
            self.inner.post(&self.instance, "drop", arguments);
        }
        if self.instance.leave() {
            self.inner.close(&self.instance);
        }
    }
}

impl Inner {
    /// Calls a function of `js/api/main.js` and does not wait for it. A call that JavaScript will not receive is
    /// reported as a fault of the extensions.
    pub(super) fn post(&self, instance: &Instance, function: &str, arguments: Vec<String>) {
        if let Err(error @ ScriptError::Busy) = self.try_post(instance, function, arguments) {
            self.fault("<runtime>", function, error.to_string());
        }
    }

    /// Like [`Inner::post`], and fails if JavaScript will not receive the call.
    pub(super) fn try_post(
        &self,
        instance: &Instance,
        function: &str,
        arguments: Vec<String>,
    ) -> Result<(), ScriptError> {
        let function = format!("main.{function}");
        self.script()?
            .post(instance.generation, &function, arguments)
    }

    /// Calls the current instance. Failures of the engine itself are reported to the client.
    pub(super) async fn dispatch<T: DeserializeOwned + Default>(
        self: &Arc<Self>,
        function: &str,
        during: &str,
        arguments: Vec<String>,
    ) -> Result<T, String> {
        let Some(instance) = self.current() else {
            return Ok(T::default());
        };
        let mut work = Work::new(self, &instance);
        let answer = work.call(&format!("main.{function}"), arguments).await;
        let failure = match answer
            .map(|answer| pinion_jsonl::json::from_slice::<Option<T>>(answer.as_bytes()))
        {
            Ok(Ok(answer)) => return Ok(answer.unwrap_or_default()),
            Ok(Err(error)) => format!("unusable answer: {error}"),
            // All calls fail with this error once the engine is exhausted; it is reported once for all of them.
            Err(ScriptError::Exhausted(failure)) => return Err(failure),
            Err(error) => error.to_string(),
        };
        self.fault("<runtime>", during, failure.clone());
        Err(failure)
    }

    /// Sends an event to the handlers of the current instance and does not wait for them.
    pub(super) fn post_event(&self, event: &Value) {
        if let Some(instance) = self.current() {
            let work = Work::next_number().to_string();
            self.post(&instance, "observe", vec![work, event.to_string()]);
        }
    }

    /// Sends an event to all handlers; their answers are ignored.
    pub(super) async fn observe_event(self: &Arc<Self>, event: &str, payload: String) {
        // A failure of the engine has been reported.
        let _: Result<Value, String> = self.dispatch("observe", event, vec![payload]).await;
    }
}
