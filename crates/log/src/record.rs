//! Records: an event with its fields and the spans around it, before it is formatted.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use tracing::Level;
use tracing::field::{Field, Visit};

/// The longest text of a field, in bytes. Longer ones are replaced by their length: a text that is cut could end in the
/// middle of a key, which would not be masked.
const LONGEST_TEXT: usize = 4096;

/// One event.
#[derive(Debug)]
pub(crate) struct Record {
    pub time: SystemTime,
    pub level: Level,
    pub target: &'static str,
    pub fields: Fields,
    /// The spans around the event, the outermost first.
    pub spans: Vec<(&'static str, Arc<Fields>)>,
}

impl Record {
    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.fields.size() + self.spans.len() * size_of::<(&str, Arc<Fields>)>()
    }
}

/// The message and the fields of an event or a span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    pub message: String,
    pub values: Vec<(&'static str, Value)>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
}

impl Fields {
    fn size(&self) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        };
        let values = self.values.iter();
        let texts: usize = values.map(|(_, value)| text(value)).sum();
        self.message.len() + texts + self.values.len() * size_of::<(&str, Value)>()
    }

    fn set(&mut self, field: &Field, value: Value) {
        let name = field.name();
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.values.push((name, value)),
        }
    }

    fn set_text(&mut self, field: &Field, text: String) {
        let text = if text.len() > LONGEST_TEXT {
            format!("({} bytes)", text.len())
        } else {
            text
        };
        if field.name() == "message" {
            self.message = text;
        } else {
            self.set(field, Value::Text(text));
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Value::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Value::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bool(value));
    }
}
