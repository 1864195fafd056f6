//! Telemetry: traces for a receiver of OpenTelemetry, and metrics in the text format of Prometheus.
//!
//! Both are made of the spans and events that the crates give to `tracing` for the diagnostic log, so no crate knows of
//! telemetry: [`layer`] turns them into spans and counts. Every OpenTelemetry name is in one table, `conventions.rs`. A
//! queue with a limit and a thread of its own send finished spans; a span that finds the queue full is dropped and
//! counted.
//!
//! Without an endpoint in the environment and without a hub there is no subscriber, no thread and no allocation.
//! Prompts, answers, arguments, output, headers and bodies are not part of any span or label.

mod context;
mod conventions;
mod exporter;
mod layer;
pub mod metrics;
mod otlp;
mod settings;
mod span;

use std::sync::OnceLock;
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

pub use self::context::TraceContext;
use self::exporter::Exporter;
pub use self::settings::{Sampler, Settings, SettingsError};

/// Time to send the last spans at the end of the program.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// The variable that carries the trace to and from processes.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// The traces of this process; empty as long as they are off.
static TRACES: OnceLock<Traces> = OnceLock::new();

/// The state of traces that are on.
#[derive(Debug)]
pub(crate) struct Traces {
    sampler: Sampler,
    /// The context from the environment of this process: the parent of spans that have no other.
    parent: Option<TraceContext>,
    exporter: Exporter,
}

/// Turns traces on. Returns `false` if they already are.
pub fn start_traces(settings: Settings) -> bool {
    let parent = std::env::var(TRACEPARENT).ok();
    let traces = Traces {
        sampler: settings.sampler,
        parent: parent.as_deref().and_then(TraceContext::parse),
        exporter: Exporter::new(settings),
    };
    TRACES.set(traces).is_ok() && install()
}

/// Turns metrics on. Returns `false` if they already are.
pub fn start_metrics() -> bool {
    metrics::enable() && install()
}

/// Reports whether spans are sent to a receiver.
pub fn traces() -> bool {
    TRACES.get().is_some()
}

/// Installs a subscriber that has only the layer, unless the diagnostic log has installed one.
fn install() -> bool {
    let subscriber = Registry::default().with(layer());
    // A subscriber that is already there is that of the diagnostic log, which includes the layer.
    let _ = tracing::subscriber::set_global_default(subscriber);
    true
}

/// Returns the layer for a subscriber. It does nothing until traces or metrics are on.
pub fn layer<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    layer::filtered()
}

/// Returns the context of the current span, or the one this process was started with; `None` if traces are off.
pub fn current() -> Option<TraceContext> {
    let traces = TRACES.get()?;
    layer::current().or(traces.parent)
}

/// Returns [`current`] in the form of the header `traceparent`.
pub fn traceparent() -> Option<String> {
    current().map(|context| context.to_string())
}

/// Sends the spans that wait, for at most two seconds.
pub fn finish() {
    if let Some(traces) = TRACES.get() {
        traces.exporter.finish(FINISH_TIMEOUT);
    }
}
