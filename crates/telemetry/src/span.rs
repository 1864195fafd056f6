//! Finished spans and their attributes.

use std::time::SystemTime;

use crate::TraceContext;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Texts(Vec<String>),
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

pub(crate) type Attribute = (&'static str, Value);

/// The role of a span between two programs. The numbers are those of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedSpan {
    pub context: TraceContext,
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: SpanKind,
    pub start: SystemTime,
    pub end: SystemTime,
    pub attributes: Vec<Attribute>,
    pub events: Vec<SpanEvent>,
    pub has_failed: bool,
}

/// A moment within a span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SpanEvent {
    pub time: SystemTime,
    pub name: &'static str,
    pub attributes: Vec<Attribute>,
}
