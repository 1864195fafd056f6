//! Counters and histograms of this process, made of the events of the diagnostic log, and the page for Prometheus.

mod page;
mod process;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock};

use pinion_sync::lock;

pub use self::page::{CONTENT_TYPE, Kind, Page};
use crate::conventions::{Fields, field};
use crate::exporter;
use crate::span::Value;

/// The most combinations of labels of one metric. Later ones are counted under [`OTHER`].
const SERIES_LIMIT: usize = 500;
const OTHER: &str = "other";

/// Upper bounds of requests to models, in seconds: those of the GenAI conventions.
const MODEL_SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Upper bounds of tool calls and calls of clips, in seconds.
const CALL_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// A metric of [`FAMILIES`].
#[derive(Debug, Clone, Copy)]
enum Metric {
    Prompts,
    ModelRequests,
    ModelSeconds,
    FirstToken,
    ModelTokens,
    ModelCost,
    Retries,
    ToolCalls,
    ToolSeconds,
    HubCalls,
    HubSeconds,
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    /// Upper bounds of a histogram; `None` for a counter.
    buckets: Option<&'static [f64]>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
) -> Family {
    Family {
        name,
        help,
        labels,
        buckets: None,
    }
}

const fn histogram(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    buckets: &'static [f64],
) -> Family {
    Family {
        name,
        help,
        labels,
        buckets: Some(buckets),
    }
}

/// In the order of [`Metric`].
static FAMILIES: [Family; 11] = [
    counter("pinion_prompts_total", "Prompts that ended.", &["outcome"]),
    counter(
        "pinion_model_requests_total",
        "Requests to models that ended.",
        &["provider", "model", "outcome"],
    ),
    histogram(
        "pinion_model_request_seconds",
        "Duration of requests to models, with their retries.",
        &["provider", "model"],
        MODEL_SECONDS,
    ),
    histogram(
        "pinion_model_first_token_seconds",
        "Time until a model began to answer.",
        &["provider", "model"],
        MODEL_SECONDS,
    ),
    counter(
        "pinion_model_tokens_total",
        "Tokens by kind; each token is counted once.",
        &["provider", "model", "type"],
    ),
    counter(
        "pinion_model_cost_dollars_total",
        "Cost of requests at the prices pinion knows.",
        &["provider", "model"],
    ),
    counter(
        "pinion_retries_total",
        "Requests to models that failed: request for one attempt, answer for a whole answer.",
        &["reason"],
    ),
    counter(
        "pinion_tool_calls_total",
        "Tool calls that ended.",
        &["tool", "outcome"],
    ),
    histogram(
        "pinion_tool_call_seconds",
        "Duration of tool calls.",
        &["tool"],
        CALL_SECONDS,
    ),
    counter(
        "pinion_hub_calls_total",
        "Calls of clips that ended.",
        &["clip", "command", "code"],
    ),
    histogram(
        "pinion_hub_call_seconds",
        "Duration of calls of clips.",
        &["clip", "command"],
        CALL_SECONDS,
    ),
];

/// The values of one combination of labels.
#[derive(Debug, Default)]
struct Series {
    /// The sum of a counter, or of the observations of a histogram.
    sum: f64,
    /// Observations per bucket, the last one above all bounds; empty for a counter.
    buckets: Vec<u64>,
}

type AllSeries = Mutex<BTreeMap<Vec<String>, Series>>;

#[derive(Debug, Default)]
struct Metrics {
    families: [AllSeries; FAMILIES.len()],
    sessions: AtomicI64,
}

static METRICS: OnceLock<Metrics> = OnceLock::new();

pub(crate) fn enable() -> bool {
    METRICS.set(Metrics::default()).is_ok()
}

pub(crate) fn is_enabled() -> bool {
    METRICS.get().is_some()
}

pub(crate) fn session_opened() {
    if let Some(metrics) = METRICS.get() {
        metrics.sessions.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn session_closed() {
    if let Some(metrics) = METRICS.get() {
        metrics.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts an event with its fields and those of the span around it.
pub(crate) fn count(message: &str, event: &Fields, span: &Fields) {
    if let Some(metrics) = METRICS.get() {
        metrics.count(message, event, span);
    }
}

impl Metrics {
    fn count(&self, message: &str, event: &Fields, span: &Fields) {
        let text = |name: &str| {
            let value = field(event, name).or_else(|| field(span, name));
            value.and_then(Value::as_text).unwrap_or_default()
        };
        let number = |name: &str| {
            let value = field(event, name).or_else(|| field(span, name));
            value.and_then(Value::as_integer)
        };
        let seconds = |name: &str| number(name).map(|milliseconds| milliseconds as f64 / 1000.0);
        match message {
            "run ended" => self.add(Metric::Prompts, &[text("outcome")], 1.0),
            "request ended" => {
                let (provider, model) = (text("provider"), text("model"));
                let outcome = [provider, model, text("outcome")];
                self.add(Metric::ModelRequests, &outcome, 1.0);
                for (metric, name) in [
                    (Metric::ModelSeconds, "duration_ms"),
                    (Metric::FirstToken, "first_output_ms"),
                ] {
                    if let Some(seconds) = seconds(name) {
                        self.add(metric, &[provider, model], seconds);
                    }
                }
                for (name, kind) in [
                    ("input_tokens", "input"),
                    ("output_tokens", "output"),
                    ("cache_read_tokens", "cache_read"),
                    ("cache_write_tokens", "cache_write"),
                ] {
                    if let Some(tokens) = number(name).filter(|tokens| *tokens > 0) {
                        self.add(Metric::ModelTokens, &[provider, model, kind], tokens as f64);
                    }
                }
                if let Some(Value::Float(cost)) = field(event, "cost_dollars")
                    && *cost > 0.0
                {
                    self.add(Metric::ModelCost, &[provider, model], *cost);
                }
            }
            "the request failed" => self.add(Metric::Retries, &["request"], 1.0),
            "waiting before a retry" => self.add(Metric::Retries, &["answer"], 1.0),
            "tool call ended" => {
                let tool = text("tool");
                self.add(Metric::ToolCalls, &[tool, text("outcome")], 1.0);
                self.add(
                    Metric::ToolSeconds,
                    &[tool],
                    seconds("duration_ms").unwrap_or(0.0),
                );
            }
            "clip call ended" => {
                // Names that no clip has come from callers, who could make up any number of them.
                let is_known = field(event, "known") == Some(&Value::Bool(true));
                let name = |name| if is_known { text(name) } else { "unknown" };
                let (clip, command) = (name("alias"), name("command"));
                self.add(Metric::HubCalls, &[clip, command, text("code")], 1.0);
                let seconds = seconds("duration_ms").unwrap_or(0.0);
                self.add(Metric::HubSeconds, &[clip, command], seconds);
            }
            _ => {}
        }
    }

    fn add(&self, metric: Metric, labels: &[&str], value: f64) {
        let family = &FAMILIES[metric as usize];
        let mut all = lock(&self.families[metric as usize]);
        let mut labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        if all.len() >= SERIES_LIMIT && !all.contains_key(&labels) {
            labels = vec![OTHER.to_owned(); labels.len()];
        }
        let series = all.entry(labels).or_default();
        series.sum += value;
        if let Some(bounds) = family.buckets {
            series.buckets.resize(bounds.len() + 1, 0);
            let at = bounds.iter().position(|bound| value <= *bound);
            series.buckets[at.unwrap_or(bounds.len())] += 1;
        }
    }

    fn write(&self, page: &mut Page) {
        for (family, all) in FAMILIES.iter().zip(&self.families) {
            let all = lock(all);
            let kind = match family.buckets {
                Some(_) => Kind::Histogram,
                None => Kind::Counter,
            };
            page.family(family.name, family.help, kind);
            for (values, series) in &*all {
                let labels: Vec<(&str, &str)> = family
                    .labels
                    .iter()
                    .copied()
                    .zip(values.iter().map(String::as_str))
                    .collect();
                match family.buckets {
                    None => page.sample(&labels, series.sum),
                    Some(bounds) => page.histogram(&labels, bounds, &series.buckets, series.sum),
                }
            }
        }
    }
}

/// Returns a page with everything this process counts about itself.
pub fn page() -> Page {
    let mut page = Page::default();
    page.family("pinion_build_info", "The version of pinion.", Kind::Gauge);
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    process::write(&mut page);
    page.family(
        "pinion_telemetry_dropped_total",
        "Spans that were not sent to the receiver of traces.",
        Kind::Counter,
    );
    page.sample(&[], exporter::dropped() as f64);
    if let Some(metrics) = METRICS.get() {
        page.family(
            "pinion_sessions_active",
            "Open sessions of agents.",
            Kind::Gauge,
        );
        page.sample(&[], metrics.sessions.load(Ordering::Relaxed) as f64);
        metrics.write(&mut page);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn written(metrics: &Metrics) -> String {
        let mut page = Page::default();
        metrics.write(&mut page);
        page.into_text()
    }

    #[test]
    fn a_request_is_counted_with_its_tokens_and_time() {
        let metrics = Metrics::default();
        let span: Fields = vec![("provider", text("p")), ("model", text("m"))];
        let event: Fields = vec![
            ("outcome", text("stop")),
            ("duration_ms", Value::Integer(1500)),
            ("input_tokens", Value::Integer(7)),
            ("output_tokens", Value::Integer(0)),
            ("cost_dollars", Value::Float(0.5)),
        ];
        metrics.count("request ended", &event, &span);
        metrics.count("request ended", &event, &span);
        let page = written(&metrics);
        for line in [
            "pinion_model_requests_total{provider=\"p\",model=\"m\",outcome=\"stop\"} 2",
            "pinion_model_request_seconds_bucket{provider=\"p\",model=\"m\",le=\"1.28\"} 0",
            "pinion_model_request_seconds_bucket{provider=\"p\",model=\"m\",le=\"2.56\"} 2",
            "pinion_model_request_seconds_bucket{provider=\"p\",model=\"m\",le=\"+Inf\"} 2",
            "pinion_model_request_seconds_sum{provider=\"p\",model=\"m\"} 3",
            "pinion_model_request_seconds_count{provider=\"p\",model=\"m\"} 2",
            "pinion_model_tokens_total{provider=\"p\",model=\"m\",type=\"input\"} 14",
            "pinion_model_cost_dollars_total{provider=\"p\",model=\"m\"} 1",
        ] {
            assert!(page.lines().any(|it| it == line), "{line}\n{page}");
        }
        assert!(!page.contains("type=\"output\""));
    }

    #[test]
    fn names_of_callers_do_not_become_labels() {
        let metrics = Metrics::default();
        let span: Fields = vec![("alias", text("made-up")), ("command", text("x"))];
        let mut event: Fields = vec![("code", text("not_found")), ("known", Value::Bool(false))];
        metrics.count("clip call ended", &event, &span);
        assert!(!written(&metrics).contains("made-up"));
        event[1].1 = Value::Bool(true);
        metrics.count("clip call ended", &event, &span);
        assert!(written(&metrics).contains("clip=\"made-up\",command=\"x\",code=\"not_found\"} 1"));
    }

    #[test]
    fn the_number_of_labels_has_a_limit() {
        let metrics = Metrics::default();
        for number in 0..SERIES_LIMIT + 10 {
            let tool = text(&format!("tool{number}"));
            let event: Fields = vec![("tool", tool), ("outcome", text("done"))];
            metrics.count("tool call ended", &event, &Fields::new());
        }
        let page = written(&metrics);
        assert!(page.contains("pinion_tool_calls_total{tool=\"other\",outcome=\"other\"} 10\n"));
        assert_eq!(
            page.matches("pinion_tool_calls_total{").count(),
            SERIES_LIMIT + 1
        );
    }
}
