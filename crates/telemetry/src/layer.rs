//! The layer that turns spans and events of the diagnostic log into spans for the receiver and into metrics.

use std::fmt;
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use tracing_subscriber::{Layer, Registry};

use crate::conventions::{self, Fields, SpanRow, field};
use crate::span::{FinishedSpan, SpanEvent, Value};
use crate::{TRACES, TraceContext, Traces, metrics};

/// The beginning of the targets of all crates of the program. Spans of libraries are ignored: they may contain headers
/// and paths.
const OWN: &str = "pinion";
/// The most events of one span.
const MAX_EVENTS: usize = 32;
/// The longest text of a field, in bytes. Longer ones are left out: a text that is cut could end within a character of
/// a key.
const LONGEST_TEXT: usize = 512;
/// Fields of `request` that are added up in the run around it.
const SUMMED: [&str; 4] = [
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
];

/// Returns the layer with its filter.
pub(crate) fn filtered<S>() -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let filter = Targets::new().with_target(OWN, LevelFilter::INFO);
    TelemetryLayer.with_filter(filter)
}

#[derive(Debug)]
struct TelemetryLayer;

/// An open span.
struct OpenSpan {
    /// `None` for spans that only give fields to others.
    row: Option<&'static SpanRow>,
    source: &'static str,
    fields: Fields,
    start: SystemTime,
    context: Option<TraceContext>,
    parent: Option<[u8; 8]>,
    events: Vec<SpanEvent>,
    /// The event at its end has arrived. The span may stay open for long, because spans within it are still open.
    has_ended: bool,
}

impl<S> Layer<S> for TelemetryLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let traces = TRACES.get();
        if traces.is_none() && !metrics::is_enabled() {
            return;
        }
        let Some(span) = context.span(id) else {
            return;
        };
        let mut read = ReadFields::default();
        attributes.record(&mut read);
        let source = attributes.metadata().name();
        let mut open = OpenSpan {
            row: conventions::row(source),
            source,
            fields: read.fields,
            start: SystemTime::now(),
            context: None,
            parent: None,
            events: Vec::new(),
            has_ended: false,
        };
        if source == "session" {
            metrics::session_opened();
        }
        let remote = field(&open.fields, "traceparent").and_then(Value::as_text);
        let remote = remote.and_then(TraceContext::parse);
        if let (Some(traces), Some(_)) = (traces, open.row) {
            open.join(traces, remote.or_else(|| context_of(span.parent())));
            if let Some(conversation) = conversation_of(&span) {
                open.fields
                    .push(("conversation", Value::Text(conversation)));
            }
        }
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            let mut read = ReadFields::default();
            values.record(&mut read);
            open.take(read.fields);
        }
    }

    /// A run belongs to the trace of the call that asked for it, although the session around it is older.
    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let (Some(traces), Some(span)) = (TRACES.get(), context.span(id)) else {
            return;
        };
        let caller = context_of(context.span(follows));
        let mut extensions = span.extensions_mut();
        if let (Some(caller), Some(open)) = (caller, extensions.get_mut::<OpenSpan>()) {
            open.join(traces, Some(caller));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if TRACES.get().is_none() && !metrics::is_enabled() {
            return;
        }
        let mut read = ReadFields::default();
        event.record(&mut read);
        let span = context.event_span(event);
        let mut extensions = span.as_ref().map(SpanRef::extensions_mut);
        let open = extensions.as_mut().and_then(|it| it.get_mut::<OpenSpan>());
        let no_fields = Fields::new();
        let around = open.as_ref().map_or(&no_fields, |open| &open.fields);
        metrics::count(&read.message, &read.fields, around);
        let Some(open) = open else {
            return;
        };
        if open.row.is_some_and(|row| row.end == read.message) {
            open.take(read.fields);
            open.end();
            let request = (open.source == "request").then(|| open.fields.clone());
            drop(extensions);
            if let (Some(request), Some(span)) = (request, span) {
                add_to_run(&request, span.parent());
            }
        } else if open.events.len() < MAX_EVENTS
            && let Some((name, attributes)) = conventions::event(&read.message, &read.fields)
        {
            open.events.push(SpanEvent {
                time: SystemTime::now(),
                name,
                attributes,
            });
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let Some(mut open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        if open.source == "session" {
            metrics::session_closed();
        }
        open.end();
    }
}

impl OpenSpan {
    /// Becomes a child of `parent`, else of the context of this process, else the root of a new trace.
    fn join(&mut self, traces: &Traces, parent: Option<TraceContext>) {
        let parent = parent.or(traces.parent);
        let sampled = |trace: &[u8; 16]| traces.sampler.samples(trace);
        self.context = Some(TraceContext::new(parent, sampled));
        self.parent = parent.map(|parent| parent.span);
    }

    /// Gives the span to the exporter, once.
    fn end(&mut self) {
        let has_ended = std::mem::replace(&mut self.has_ended, true);
        let (Some(traces), Some(row), Some(context)) = (TRACES.get(), self.row, self.context)
        else {
            return;
        };
        if has_ended || !context.sampled {
            return;
        }
        let (attributes, has_failed) = row.attributes(&self.fields);
        traces.exporter.push(FinishedSpan {
            context,
            parent: self.parent,
            name: row.name(&self.fields),
            kind: row.kind,
            start: self.start,
            end: SystemTime::now(),
            attributes,
            events: std::mem::take(&mut self.events),
            has_failed,
        });
    }

    fn take(&mut self, fields: Fields) {
        for (name, value) in fields {
            match self.fields.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => self.fields.push((name, value)),
            }
        }
    }
}

/// Returns the context of the nearest span that is sent.
fn context_of<'a, S: LookupSpan<'a>>(span: Option<SpanRef<'a, S>>) -> Option<TraceContext> {
    span?
        .scope()
        .find_map(|span| span.extensions().get::<OpenSpan>()?.context)
}

/// Returns the id of the session around a span.
fn conversation_of<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<String> {
    span.scope().skip(1).find_map(|span| {
        let extensions = span.extensions();
        let open = extensions
            .get::<OpenSpan>()
            .filter(|open| open.source == "session")?;
        let id = field(&open.fields, "id")?;
        id.as_text().map(str::to_owned)
    })
}

/// Adds the tokens of a request to the run around it, and names its model there.
fn add_to_run<'a, S: LookupSpan<'a>>(request: &Fields, parent: Option<SpanRef<'a, S>>) {
    for span in parent.into_iter().flat_map(|parent| parent.scope()) {
        let mut extensions = span.extensions_mut();
        let Some(run) = extensions
            .get_mut::<OpenSpan>()
            .filter(|open| open.source == "run")
        else {
            continue;
        };
        let mut fields = Fields::new();
        for name in ["provider", "model"] {
            fields.extend(field(request, name).map(|value| (name, value.clone())));
        }
        for name in SUMMED {
            let count = |fields| field(fields, name).and_then(Value::as_integer);
            if let Some(tokens) = count(request) {
                let before = count(&run.fields).unwrap_or(0);
                fields.push((name, Value::Integer(before + tokens)));
            }
        }
        run.take(fields);
        return;
    }
}

/// Returns the context of the span that this thread is in.
pub(crate) fn current() -> Option<TraceContext> {
    tracing::dispatcher::get_default(|dispatch| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        let current = registry.current_span();
        context_of(registry.span(current.id()?))
    })
}

/// Collects the message and the fields of a span or an event.
#[derive(Debug, Default)]
struct ReadFields {
    message: String,
    fields: Fields,
}

impl ReadFields {
    fn text(&mut self, field: &Field, text: String) {
        if field.name() == "message" {
            self.message = text;
        } else if text.len() <= LONGEST_TEXT {
            self.fields.push((field.name(), Value::Text(text)));
        }
    }
}

impl Visit for ReadFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), Value::Integer(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.fields.push((field.name(), Value::Integer(value)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.push((field.name(), Value::Float(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), Value::Bool(value)));
    }
}
