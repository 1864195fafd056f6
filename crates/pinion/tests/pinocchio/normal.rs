//! Makes two streams comparable: ids are numbered by their first occurrence, durations are left out, and events that
//! the engine of a recorded stream does not send are removed from the other stream.

use std::collections::HashMap;

use serde_json::Value;

/// Prefixes of provider ids, and of the names that replace ids that arrive too late.
const PREFIXES: [&str; 6] = ["chatcmpl-", "msg_", "resp_", "call_", "toolu_", "response-"];

/// Replaces every id by the number of its first occurrence, and every duration by a word.
pub fn normal(lines: &[Value]) -> Vec<Value> {
    let mut ids = Ids::default();
    let lines = lines.iter().cloned();
    lines
        .map(|mut line| {
            each_text(&mut line, &mut |name, text| {
                *text = match name {
                    "durationMs" => "some".to_owned(),
                    _ => ids.replace(text),
                };
            });
            line
        })
        .collect()
}

#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn replace(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = match id_length(rest) {
                Some(length) if !out.ends_with(|c: char| c.is_ascii_alphanumeric()) => length,
                _ => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                    continue;
                }
            };
            let next = self.0.len() + 1;
            let number = *self.0.entry(rest[..length].to_owned()).or_insert(next);
            out.push_str(&format!("<{number}>"));
            rest = &rest[length..];
        }
        out
    }
}

/// Returns the length of the id at the start of `text`, if there is one.
fn id_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_uuid = bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_uuid {
        return Some(36);
    }
    let prefix = PREFIXES.iter().find(|prefix| text.starts_with(**prefix))?;
    let rest = &text[prefix.len()..];
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    Some(prefix.len() + length.unwrap_or(rest.len()))
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&str, &mut String)) {
    fn walk(name: &str, value: &mut Value, change: &mut impl FnMut(&str, &mut String)) {
        match value {
            Value::String(text) => change(name, text),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(name, item, change)),
            Value::Object(members) => members
                .iter_mut()
                .for_each(|(name, value)| walk(name, value, change)),
            _ => {}
        }
    }
    walk("", value, change);
}

/// Events that the engine of a recorded stream does not send.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// Requests to the provider.
    ProviderCalls,
    /// Requests to the provider and the pieces of a text.
    Pieces,
}

/// Removes the events that such an engine does not send, and numbers the rest anew. Names that only such an engine
/// could have given are removed from both streams: the names of segments, and the correlations of their events.
pub fn reduced(lines: &[Value], silent: Silent) -> Vec<Value> {
    let is_silent = |name: &str| {
        name.starts_with("ChatProviderCall") || silent == Silent::Pieces && name.ends_with("Patch")
    };
    // The change of a removed event is reported with the next event that stays, or the last.
    let mut numbers: HashMap<String, u64> = HashMap::new();
    let mut kept = 0_u64;
    let mut taken_out: Vec<String> = Vec::new();
    for event in lines.iter().filter_map(|line| line.get("uiEvent")) {
        let ordinal = event["ordinal"].as_str().unwrap_or_default().to_owned();
        taken_out.push(ordinal);
        if !is_silent(event["name"].as_str().unwrap_or_default()) {
            kept += 1;
            numbers.extend(taken_out.drain(..).map(|ordinal| (ordinal, kept)));
        }
    }
    numbers.extend(taken_out.drain(..).map(|ordinal| (ordinal, kept)));
    let stays = |line: &&Value| !is_silent(line["uiEvent"]["name"].as_str().unwrap_or_default());
    let lines = lines.iter().filter(stays).cloned();
    lines
        .map(|mut line| {
            each_text(&mut line, &mut |name, text| match name {
                "ordinal" | "createdOrdinal" | "lastEventOrdinal" | "snapshotOrdinal" => {
                    *text = numbers[text.as_str()].to_string();
                }
                "messageId" | "streamId" | "id" => {
                    for kind in [":text:", ":thinking:"] {
                        if let Some((root, _)) = text.split_once(kind) {
                            *text = format!("{root}{kind}segment");
                        }
                    }
                }
                _ => {}
            });
            uncorrelate(&mut line);
            line
        })
        .collect()
}

/// Removes the correlations of segment events; run events retain theirs.
fn uncorrelate(line: &mut Value) {
    let remove = |payload: &mut Value| {
        if let Some(members) = payload.as_object_mut() {
            members.remove("correlation");
        }
    };
    let name = line["uiEvent"]["name"].as_str().unwrap_or_default();
    if !name.is_empty() && !name.starts_with("ChatRun") {
        remove(&mut line["uiEvent"]["payload"]);
    }
    let entities = line
        .get_mut("snapshot")
        .and_then(|it| it.get_mut("entities"));
    for entity in entities.and_then(Value::as_array_mut).into_iter().flatten() {
        if entity["payload"]["role"] != "error" {
            remove(&mut entity["payload"]);
        }
    }
}

/// Returns the stream as if every patch had the whole text, by summing up appending patches.
pub fn as_snapshots(lines: &[Value]) -> Vec<Value> {
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut lines = lines.to_vec();
    for line in &mut lines {
        let name = line["uiEvent"]["name"].as_str().unwrap_or_default();
        // Both streams report arguments as increments.
        if !["ChatTextPatch", "ChatReasoningPatch"].contains(&name) {
            continue;
        }
        let payload = &mut line["uiEvent"]["payload"];
        let stream = payload["streamId"].as_str().unwrap_or_default();
        let text = texts.entry(stream.to_owned()).or_default();
        text.push_str(payload["text"].as_str().unwrap_or_default());
        payload["text"] = Value::from(text.as_str());
        payload["mode"] = Value::from("CHAT_STREAM_PATCH_MODE_SNAPSHOT");
    }
    lines
}
