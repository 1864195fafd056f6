//! Spans in the binary form of OTLP: an `ExportTraceServiceRequest`. The field numbers are those of its schema,
//! `opentelemetry/proto/trace/v1/trace.proto`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::conventions::SCHEMA_URL;
use crate::span::{Attribute, FinishedSpan, SpanEvent, Value};

/// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED32: u64 = 5;

/// `Status.code`: the span has failed.
const STATUS_ERROR: u64 = 2;
/// `Span.flags`: the trace is sampled.
const FLAG_SAMPLED: u32 = 1;

/// Encodes spans of one program with its attributes.
pub(crate) fn encode(resource: &[(String, String)], spans: &[FinishedSpan]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |message| {
            for (name, value) in resource {
                message.message(1, |pair| key_value(pair, name, &Value::Text(value.clone())));
            }
        });
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |scope| {
                scope.text(1, "pinion");
                scope.text(2, env!("CARGO_PKG_VERSION"));
            });
            for span in spans {
                scope_spans.message(2, |message| put_span(message, span));
            }
            scope_spans.text(3, SCHEMA_URL);
        });
    });
    request.0
}

fn put_span(message: &mut Message, span: &FinishedSpan) {
    message.bytes(1, &span.context.trace);
    message.bytes(2, &span.context.span);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(6, span.kind as u64);
    message.fixed64(7, nanoseconds(span.start));
    message.fixed64(8, nanoseconds(span.end));
    attributes(message, 9, &span.attributes);
    for event in &span.events {
        message.message(11, |message| put_event(message, event));
    }
    if span.has_failed {
        message.message(15, |status| status.number(3, STATUS_ERROR));
    }
    message.fixed32(
        16,
        if span.context.sampled {
            FLAG_SAMPLED
        } else {
            0
        },
    );
}

fn put_event(message: &mut Message, event: &SpanEvent) {
    message.fixed64(1, nanoseconds(event.time));
    message.text(2, event.name);
    attributes(message, 3, &event.attributes);
}

fn attributes(message: &mut Message, field: u64, attributes: &[Attribute]) {
    for (name, value) in attributes {
        message.message(field, |pair| key_value(pair, name, value));
    }
}

fn key_value(pair: &mut Message, name: &str, value: &Value) {
    pair.text(1, name);
    pair.message(2, |any| put_value(any, value));
}

/// Writes an `AnyValue`. A member of a choice is written even if it is empty or zero.
fn put_value(any: &mut Message, value: &Value) {
    match value {
        Value::Text(text) => any.bytes(1, text.as_bytes()),
        Value::Bool(value) => any.number(2, u64::from(*value)),
        Value::Integer(number) => any.number(3, *number as u64),
        Value::Float(number) => any.fixed64(4, number.to_bits()),
        Value::Texts(texts) => any.message(5, |array| {
            for text in texts {
                array.message(1, |any| any.bytes(1, text.as_bytes()));
            }
        }),
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A message of protobuf that grows.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, value: u32) {
        self.key(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Writes a text that has a default: an empty one is left out.
    fn text(&mut self, field: u64, value: &str) {
        if !value.is_empty() {
            self.bytes(field, value.as_bytes());
        }
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceContext;
    use crate::span::SpanKind;

    #[test]
    fn numbers_have_the_form_of_protobuf() {
        let mut message = Message::default();
        message.number(1, 300);
        message.fixed32(16, 1);
        message.text(2, "");
        message.bytes(2, b"");
        assert_eq!(
            message.0,
            [0x08, 0xac, 0x02, 0x85, 0x01, 1, 0, 0, 0, 0x12, 0]
        );
    }

    #[test]
    fn a_span_contains_its_ids_names_and_values() {
        let context = TraceContext {
            trace: [7; 16],
            span: [8; 8],
            sampled: true,
        };
        let span = FinishedSpan {
            context,
            parent: Some([9; 8]),
            name: "chat demo".to_owned(),
            kind: SpanKind::Client,
            start: UNIX_EPOCH,
            end: UNIX_EPOCH,
            attributes: vec![
                ("a.b", Value::Integer(-1)),
                ("c", Value::Texts(vec!["x".to_owned()])),
            ],
            events: Vec::new(),
            has_failed: true,
        };
        let bytes = encode(&[("service.name".to_owned(), "s".to_owned())], &[span]);
        let contains = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(
            contains(&[0x0a, 16, 7, 7]) && contains(&[0x12, 8, 8, 8]) && contains(&[0x22, 8, 9])
        );
        assert!(contains(b"chat demo") && contains(b"service.name") && contains(b"a.b"));
        // Negative numbers take ten bytes.
        assert!(contains(&[
            0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
        ]));
        assert!(contains(&[0x7a, 2, 0x18, 2]), "the status of a failed span");
    }
}
