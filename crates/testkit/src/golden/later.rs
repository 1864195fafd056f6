//! Replaces what recordings of later releases leave out: durations, the prose of system messages, and what an answer
//! already holds when its beginning is printed.
//!
//! | original | in the recordings |
//! |---|---|
//! | `durationMs`, `wall_time_seconds` | `<MS>`, `<S>` |
//! | sections and tools of messages with the role `system` | names, with `<PROSE>` and the markers in it, `<DESC>` |
//! | `usage` and `responseId` in the `message_start` of an answer that is `pending` | `<EARLY>`, left out |

use serde_json::{Map, Value, json};

use crate::transcript::normal::{hide_descriptions, marks};

/// Texts in declared tools that are longer are replaced.
const LONGEST_WORD: usize = 60;

/// Returns a line in the form of the recordings.
pub(super) fn line(mut line: Value) -> Value {
    let begins = line["type"] == "message_start" && line["message"]["stopReason"] == "pending";
    if begins && let Some(message) = line["message"].as_object_mut() {
        message.insert("usage".to_owned(), json!("<EARLY>"));
        message.shift_remove("responseId");
        message.shift_remove("responseModel");
    }
    quiet(line)
}

fn quiet(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(quiet).collect(),
        Value::Object(members) => {
            let members = if members.get("role") == Some(&json!("system")) {
                system(members)
            } else {
                members
            };
            let quieted = members.into_iter().map(|(name, value)| {
                let value = match name.as_str() {
                    "durationMs" if value.is_number() => json!("<MS>"),
                    "wall_time_seconds" if value.is_number() => json!("<S>"),
                    _ => quiet(value),
                };
                (name, value)
            });
            Value::Object(quieted.collect())
        }
        other => other,
    }
}

fn system(mut message: Map<String, Value>) -> Map<String, Value> {
    let sections = message.get_mut("sections").and_then(Value::as_object_mut);
    for text in sections.into_iter().flat_map(Map::values_mut) {
        if let Value::String(prose) = text
            && !prose.is_empty()
        {
            *prose = marks(prose).replace("SYSTEM_PROMPT", "PROSE");
        }
    }
    if let Some(tools) = message.get_mut("toolsAdded") {
        hide_descriptions(tools);
        shorten(tools);
    }
    message
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > LONGEST_WORD => *text = "<TEXT>".to_owned(),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}
