//! The layer that makes records of events and puts them into the queue.

use std::sync::Arc;
use std::time::SystemTime;

use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::queue::Queue;
use crate::record::{Fields, Record};

/// Makes a record of each event.
#[derive(Debug)]
pub(crate) struct LogLayer {
    queue: Arc<Queue>,
}

/// The fields of an open span.
struct SpanFields(Arc<Fields>);

impl LogLayer {
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(SpanFields(Arc::new(fields)));
    }

    fn on_record(&self, id: &Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        if let Some(fields) = span.extensions_mut().get_mut::<SpanFields>() {
            let fields: &mut Fields = Arc::make_mut(&mut fields.0);
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut spans = Vec::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<SpanFields>() {
                spans.push((span.name(), Arc::clone(&fields.0)));
            }
        }
        spans.reverse();
        let metadata = event.metadata();
        self.queue.push(Record {
            time: SystemTime::now(),
            level: *metadata.level(),
            target: metadata.target(),
            fields,
            spans,
        });
    }
}
