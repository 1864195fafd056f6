//! The two formats of a line: text for people, JSON for programs.

use std::fmt::Write;
use std::str::FromStr;

use jiff::Timestamp;
use pinion_text::{harmless_line, nearest};
use serde_json::Map;
use tracing::Level;

use crate::filter::one_of;
use crate::mask::LogMask;
use crate::record::{Fields, Record, Value};

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `2026-01-31T12:00:00.000Z INFO  session{id=01}: pinion_agent::session: session opened model="x"`
    #[default]
    Text,
    /// One object per line, with `time`, `level`, `target`, `message`, `fields` and `spans`.
    Json,
}

impl Format {
    /// The words for the formats.
    pub const NAMES: &[&str] = &["text", "json"];
}

/// A word that names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}")]
pub struct UnknownFormat(String);

impl UnknownFormat {
    /// Returns the advice to print after the message.
    pub fn hint(&self) -> String {
        match nearest(&self.0, Format::NAMES.iter().copied()) {
            Some(nearest) => format!("Did you mean {nearest}?"),
            None => format!("Use {}.", one_of(Format::NAMES)),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        match word {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(UnknownFormat(word.to_owned())),
        }
    }
}

/// Appends the line of a record to `out`.
pub(crate) fn write_line(out: &mut String, record: &Record, format: Format, mask: &LogMask) {
    let time = Timestamp::try_from(record.time).unwrap_or_default();
    match format {
        // Writing to a string cannot fail.
        Format::Text => drop(write_text(out, record, time, mask)),
        Format::Json => out.push_str(&json(record, time, mask).to_string()),
    }
    out.push('\n');
}

fn write_text(
    out: &mut String,
    record: &Record,
    time: Timestamp,
    mask: &LogMask,
) -> std::fmt::Result {
    write!(out, "{time:.3} {:5} ", record.level.as_str())?;
    for (name, fields) in &record.spans {
        out.push_str(name);
        if !fields.values.is_empty() {
            out.push('{');
            write_values(out, fields, mask)?;
            out.push('}');
        }
        out.push_str(": ");
    }
    // A message may quote other programs.
    let message = harmless_line(&mask.text(&record.fields.message));
    write!(out, "{}: {message}", record.target)?;
    if !record.fields.values.is_empty() {
        out.push(' ');
    }
    write_values(out, &record.fields, mask)
}

fn write_values(out: &mut String, fields: &Fields, mask: &LogMask) -> std::fmt::Result {
    for (at, (name, value)) in fields.values.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        write!(out, "{name}=")?;
        match value {
            Value::Text(text) if is_plain(text) => out.push_str(&mask.text(text)),
            Value::Text(text) => write!(out, "{:?}", mask.text(text))?,
            Value::Signed(number) => write!(out, "{number}")?,
            Value::Unsigned(number) => write!(out, "{number}")?,
            Value::Float(number) => write!(out, "{number}")?,
            Value::Bool(value) => write!(out, "{value}")?,
        }
    }
    Ok(())
}

/// Reports whether a text is a word that needs no quotes.
fn is_plain(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    !text.is_empty() && text.chars().all(plain)
}

fn json(record: &Record, time: Timestamp, mask: &LogMask) -> serde_json::Value {
    let level = match record.level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    let mut line = Map::new();
    line.insert("time".into(), format!("{time:.3}").into());
    line.insert("level".into(), level.into());
    line.insert("target".into(), record.target.into());
    line.insert("message".into(), mask.text(&record.fields.message).into());
    line.insert("fields".into(), members(&record.fields, mask).into());
    let spans = record.spans.iter().map(|(name, fields)| {
        let mut span = Map::new();
        span.insert("name".into(), (*name).into());
        span.extend(members(fields, mask));
        serde_json::Value::Object(span)
    });
    line.insert("spans".into(), spans.collect());
    line.into()
}

fn members(fields: &Fields, mask: &LogMask) -> Map<String, serde_json::Value> {
    let member = |(name, value): &(&str, Value)| {
        let value = match value {
            Value::Text(text) => mask.text(text).into(),
            Value::Signed(number) => (*number).into(),
            Value::Unsigned(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Bool(value) => (*value).into(),
        };
        ((*name).to_owned(), value)
    };
    fields.values.iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    fn line(format: Format, record: &Record) -> String {
        let mut out = String::new();
        write_line(&mut out, record, format, &LogMask::new());
        out
    }

    fn record() -> Record {
        let text = |text: &str| Value::Text(text.to_owned());
        Record {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            level: Level::INFO,
            target: "pinion_agent::run",
            fields: Fields {
                message: "run ended".into(),
                values: vec![
                    ("outcome", text("done")),
                    ("why", text("a \u{1b}[31m \"b\"\n")),
                    ("tokens", Value::Unsigned(7)),
                    ("cached", Value::Bool(false)),
                ],
            },
            spans: vec![(
                "session",
                Arc::new(Fields {
                    message: String::new(),
                    values: vec![("id", text("0190-a"))],
                }),
            )],
        }
    }

    #[test]
    fn text_is_one_line_without_control_characters() {
        assert_eq!(
            line(Format::Text, &record()),
            "2023-11-14T22:13:20.123Z INFO  session{id=0190-a}: pinion_agent::run: run ended outcome=done \
             why=\"a \\u{1b}[31m \\\"b\\\"\\n\" tokens=7 cached=false\n"
        );
    }

    #[test]
    fn json_has_the_same_members_in_every_line() {
        assert_eq!(
            line(Format::Json, &record()),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"target\":\"pinion_agent::run\",\
             \"message\":\"run ended\",\"fields\":{\"outcome\":\"done\",\"why\":\"a \\u001b[31m \\\"b\\\"\\n\",\
             \"tokens\":7,\"cached\":false},\"spans\":[{\"name\":\"session\",\"id\":\"0190-a\"}]}\n"
        );
    }

    #[test]
    fn keys_are_masked_in_every_value() {
        let key = "sk-log-format-0123456789";
        pinion_message::Mask::default().learn(&key.to_owned().into());
        let mut record = record();
        record.fields.message = format!("sent {key}");
        record.fields.values = vec![
            ("a", Value::Text(key.to_owned())),
            ("b", Value::Text("authorization: Bearer short".to_owned())),
        ];
        for format in [Format::Text, Format::Json] {
            let line = line(format, &record);
            assert!(!line.contains(key) && !line.contains("short"), "{line}");
        }
    }

    #[test]
    fn an_unknown_format_names_the_nearest_one() {
        let error = "jsno".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "unknown format \"jsno\"");
        assert_eq!(error.hint(), "Did you mean json?");
        assert_eq!(
            "xml".parse::<Format>().unwrap_err().hint(),
            "Use text or json."
        );
    }
}
