//! The connection from JavaScript to the program.

use std::sync::Weak;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::extensions::Inner;

/// Answers requests of JavaScript. Arguments and answers are JSON text. The text of an error is thrown in JavaScript at
/// the place of the request.
pub trait Bridge: Send + Sync {
    /// Reports whether the session of this instance has been replaced.
    fn is_stale(&self, generation: u64) -> bool;

    /// Answers immediately, on JavaScript's thread.
    fn now(&self, generation: u64, method: &str, arguments: &str) -> Result<String, String>;

    /// Answers asynchronously.
    fn later(
        &self,
        generation: u64,
        method: &str,
        arguments: &str,
    ) -> BoxFuture<'static, Result<String, String>>;
}

/// A [`Bridge`] that holds the extensions weakly, because the extensions own the JavaScript that uses it.
pub(super) struct WeakBridge(pub Weak<Inner>);

const SESSION_OVER: &str = "The session is over.";

impl Bridge for WeakBridge {
    fn is_stale(&self, generation: u64) -> bool {
        let inner = self.0.upgrade();
        inner.is_none_or(|inner| inner.is_stale(generation))
    }

    fn now(&self, generation: u64, method: &str, arguments: &str) -> Result<String, String> {
        let inner = self.0.upgrade().ok_or(SESSION_OVER)?;
        let arguments = parse(arguments)?;
        let answer = inner.answer(generation, method, &arguments)?;
        Ok(answer.map_or_else(String::new, |answer| answer.to_string()))
    }

    fn later(
        &self,
        generation: u64,
        method: &str,
        arguments: &str,
    ) -> BoxFuture<'static, Result<String, String>> {
        let inner = self.0.upgrade();
        let method = method.to_owned();
        let arguments = parse(arguments);
        Box::pin(async move {
            let inner = inner.ok_or(SESSION_OVER)?;
            let arguments = arguments?;
            // The work runs on the program's runtime, because JavaScript's thread may be busy.
            let runtime = inner.runtime.clone();
            let work = runtime.spawn(async move {
                let answer = inner.answer_later(generation, &method, &arguments).await?;
                Ok::<_, String>(answer.to_string())
            });
            work.await.map_err(|_| SESSION_OVER.to_owned())?
        })
    }
}

fn parse(arguments: &str) -> Result<Vec<Value>, String> {
    pinion_jsonl::json::from_slice(arguments.as_bytes()).map_err(|error| error.to_string())
}

/// Returns an argument as text; empty if it is missing or not a string.
pub(super) fn text(arguments: &[Value], at: usize) -> &str {
    arguments
        .get(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns an argument; null if it is missing.
pub(super) fn value(arguments: &[Value], at: usize) -> &Value {
    arguments.get(at).unwrap_or(&Value::Null)
}
