//! Work that JavaScript does for the program: it has a number, it can be stopped, and it ends when nobody
//! waits for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_tools::UpdateSink;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::extensions::Inner;
use super::instance::Instance;
use crate::ScriptError;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Who is told of a call's progress, by the number of the work.
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

/// A piece of work. Dropping it tells JavaScript that nobody waits any more, unless it is over.
pub(super) struct Work {
    inner: Arc<Inner>,
    instance: Arc<Instance>,
    pub number: u64,
    over: bool,
}

impl Work {
    /// Work for which nobody waits: only its number is needed.
    pub fn next_number() -> u64 {
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    pub fn new(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Self {
        instance.enter();
        Self {
            inner: Arc::clone(inner),
            instance: Arc::clone(instance),
            number: Self::next_number(),
            over: false,
        }
    }

    /// Tells `sink` of the progress.
    pub fn report_to(&self, sink: UpdateSink) {
        self.inner.updates.sinks().insert(self.number, sink);
    }

    /// Calls a function of `js/api/main.js` with the number of the work and `arguments`, each
    /// JSON text.
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
        self.over = true;
        answer
    }

    /// Asks JavaScript to bring the work to an end.
    pub fn stopper(&self) -> impl FnOnce() + use<> {
        let (inner, instance) = (Arc::clone(&self.inner), Arc::clone(&self.instance));
        let number = self.number;
        move || inner.post(&instance, "stop", vec![number.to_string()])
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.inner.updates.sinks().remove(&self.number);
        if !self.over {
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

    /// Lets the current instance do something; failures of the engine itself are reported.
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
            // All calls of the engine fail with this at once; it is reported once for all.
            Err(ScriptError::Exhausted(failure)) => return Err(failure),
            Err(error) => error.to_string(),
        };
        self.fault("<runtime>", during, failure.clone());
        Err(failure)
    }

    /// Tells everyone of an event that nobody can change.
    pub(super) async fn observe_event(self: &Arc<Self>, event: &str, payload: String) {
        // A failure of the engine has been reported.
        let _: Result<Value, String> = self.dispatch("observe", event, vec![payload]).await;
    }
}
