//! What JavaScript reaches the program through.

use std::sync::Weak;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::extensions::Inner;

/// The way from JavaScript to the program. Arguments and answers are JSON text; an error's text is
/// thrown where the question was asked.
pub trait Bridge: Send + Sync {
    /// Whether the session of this instance has been replaced.
    fn is_stale(&self, generation: u64) -> bool;

    /// Answers at once.
    fn now(&self, generation: u64, method: &str, arguments: &str) -> Result<String, String>;

    /// Answers later.
    fn later(
        &self,
        generation: u64,
        method: &str,
        arguments: &str,
    ) -> BoxFuture<'static, Result<String, String>>;
}

/// Extensions own the JavaScript that looks at them, so it must not own them in turn.
pub(super) struct Window(pub Weak<Inner>);

const GONE: &str = "The session is over.";

impl Bridge for Window {
    fn is_stale(&self, generation: u64) -> bool {
        let inner = self.0.upgrade();
        inner.is_none_or(|inner| inner.is_stale(generation))
    }

    fn now(&self, generation: u64, method: &str, arguments: &str) -> Result<String, String> {
        let inner = self.0.upgrade().ok_or(GONE)?;
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
            let inner = inner.ok_or(GONE)?;
            let arguments = arguments?;
            // The work itself runs with the rest of the program: JavaScript's thread may be busy.
            let runtime = inner.runtime.clone();
            let work = runtime.spawn(async move {
                let answer = inner.answer_later(generation, &method, &arguments).await?;
                Ok::<_, String>(answer.to_string())
            });
            work.await.map_err(|_| GONE.to_owned())?
        })
    }
}

fn parse(arguments: &str) -> Result<Vec<Value>, String> {
    pinion_jsonl::json::from_slice(arguments.as_bytes()).map_err(|error| error.to_string())
}

/// A text argument.
pub(super) fn text(arguments: &[Value], at: usize) -> &str {
    arguments
        .get(at)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// An argument of any kind.
pub(super) fn value(arguments: &[Value], at: usize) -> &Value {
    arguments.get(at).unwrap_or(&Value::Null)
}
