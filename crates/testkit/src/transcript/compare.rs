//! Compares two recordings by what a client can rely on. Each recording is reduced to a list of short lines
//! (its skeleton); equal skeletons mean equal behaviour, and a difference can be read as a diff.
//!
//! Not compared: how a text was cut into deltas, how often a running tool reported progress, and the
//! partial message repeated in every update.

use serde_json::{Map, Value};
use similar::TextDiff;

/// Types, order, final contents, results and errors of all lines of output.
pub fn output(lines: &[Value]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let (text, merges) = output_line(line);
        if !(merges && out.last() == Some(&text)) {
            out.push(text);
        }
    }
    out
}

/// Every member of every line, in order of their names.
pub fn whole(lines: &[Value]) -> Vec<String> {
    lines.iter().map(sorted).collect()
}

/// One line, and whether a run of equal ones counts once.
fn output_line(line: &Value) -> (String, bool) {
    let kind = line["type"].as_str().unwrap_or_default();
    let text = match kind {
        _ if line.get("__harness").is_some() => format!("(runner) {}", sorted(&line["__harness"])),
        "message_update" => {
            let event = &line["assistantMessageEvent"];
            let name = word(&event["type"]);
            let merges = name.ends_with("_delta");
            return (format!("update {name} {}", event["contentIndex"]), merges);
        }
        "tool_execution_update" => return (format!("tool_update {}", line["toolCallId"]), true),
        "message_start" | "message_end" => {
            let message = &line["message"];
            let stop = word(&message["stopReason"]);
            let error = message
                .get("errorMessage")
                .map_or(String::new(), |e| format!(" {e}"));
            format!(
                "{kind} {} {stop}{error} {}",
                word(&message["role"]),
                content(message)
            )
        }
        "turn_end" => {
            let results: Vec<String> = list(&line["toolResults"])
                .map(|result| format!("{} error={}", result["toolCallId"], result["isError"]))
                .collect();
            format!(
                "turn_end {} [{}]",
                word(&line["message"]["stopReason"]),
                results.join(", ")
            )
        }
        "agent_end" => {
            let roles: Vec<&str> = list(&line["messages"]).map(|m| word(&m["role"])).collect();
            format!("agent_end [{}]", roles.join(", "))
        }
        "tool_execution_end" => format!(
            "tool_end {} error={} {}",
            line["toolCallId"], line["isError"], line["result"]["content"]
        ),
        "response" => format!(
            "response id={} {} success={} {}",
            line["id"],
            line["command"],
            line["success"],
            word(&line["error"])
        ),
        _ => {
            let mut line = line.clone();
            if let Some(fields) = line.as_object_mut() {
                fields.retain(|name, value| name != "id" && !value.is_null());
            }
            sorted(&line)
        }
    };
    (text, false)
}

fn content(message: &Value) -> String {
    match &message["content"] {
        Value::Array(blocks) => {
            let blocks: Vec<String> = blocks
                .iter()
                .map(|b| {
                    let parts = ["text", "thinking", "name", "arguments"].iter();
                    let parts = parts.filter_map(|n| b.get(*n)).map(sorted);
                    format!(
                        "{} {}",
                        word(&b["type"]),
                        parts.collect::<Vec<_>>().join(" ")
                    )
                })
                .collect();
            blocks.join(" | ")
        }
        other => other.to_string(),
    }
}

/// Returns the data of successful responses, one line per value, of the expected and of the actual lines.
///
/// A client that reads the expected fields is not affected by others, and in most languages cannot distinguish a null
/// field from an absent one: neither counts as a difference.
pub fn data(expected: &[Value], found: &[Value]) -> (Vec<String>, Vec<String>) {
    let responses = |lines: &[Value]| -> Vec<Value> {
        let carries = |line: &&Value| line["type"] == "response" && line.get("data").is_some();
        let mut responses: Vec<Value> = lines.iter().filter(carries).cloned().collect();
        // Their order is part of the output and compared there.
        responses.sort_by_key(|line| format!("{} {}", line["id"], line["command"]));
        responses
    };
    let (expected, found) = (responses(expected), responses(found));
    let show = |lines: &[Value], others: &[Value]| {
        let mut out = Vec::new();
        for line in lines {
            let same =
                |other: &&Value| other["id"] == line["id"] && other["command"] == line["command"];
            out.push(format!("{} {}", line["id"], word(&line["command"])));
            flatten(
                "  data",
                &line["data"],
                others.iter().find(same).map(|o| &o["data"]),
                &mut out,
            );
        }
        out
    };
    // What was expected is shown whole; what was found, only as far as it was expected.
    let whole = show(&expected, &expected);
    (whole, show(&found, &expected))
}

/// A value as one line per leaf, each with its path, to be compared with [`difference`].
pub fn leaves(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    flatten("", value, None, &mut out);
    out
}

/// Writes each value with its path; in objects only fields that `known` has too, if it is an object.
fn flatten(path: &str, value: &Value, known: Option<&Value>, out: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            let known_fields = known.and_then(Value::as_object);
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            // Later releases of the reference show it; all keep it in the session.
            for name in names.into_iter().filter(|name| *name != "responseId") {
                match known_fields.map(|known| known.get(name)) {
                    Some(None) => {}
                    known => flatten(
                        &format!("{path}.{name}"),
                        &fields[name],
                        known.flatten(),
                        out,
                    ),
                }
            }
        }
        Value::Array(items) => {
            out.push(format!("{path}: {} items", items.len()));
            for (index, item) in items.iter().enumerate() {
                let known = known.and_then(|known| known.get(index));
                flatten(&format!("{path}.{index}"), item, known, out);
            }
        }
        other => out.push(format!("{path}: {other}")),
    }
}

/// Roles and blocks sent to the model, and the tools offered.
pub fn requests(requests: &[Value]) -> Vec<String> {
    let mut out = Vec::new();
    for request in requests {
        let body = &request["body"];
        let mut tools: Vec<&str> = list(&body["tools"])
            .map(|t| {
                t["name"]
                    .as_str()
                    .or(t["function"]["name"].as_str())
                    .unwrap_or("?")
            })
            .collect();
        tools.sort_unstable();
        out.push(format!(
            "request {} tools=[{}]",
            word(&request["api"]),
            tools.join(" ")
        ));
        for field in ["messages", "input", "contents"] {
            for message in list(&body[field]) {
                let role = message["role"]
                    .as_str()
                    .unwrap_or_else(|| word(&message["type"]));
                let parts = if message["content"].is_array() {
                    "content"
                } else {
                    "parts"
                };
                let blocks: Vec<&str> = list(&message[parts]).map(block_kind).collect();
                out.push(format!("  {role} [{}]", blocks.join(" ")));
            }
        }
    }
    out
}

fn block_kind(block: &Value) -> &str {
    let first = || {
        block
            .as_object()
            .and_then(|fields| fields.keys().min())
            .map_or("?", String::as_str)
    };
    block["type"].as_str().unwrap_or_else(first)
}

/// Entry types, roles and parent links of each session file.
pub fn sessions(lines: &[Value]) -> Vec<String> {
    let mut ids: Vec<&Value> = Vec::new();
    let mut out = Vec::new();
    for line in lines {
        if line.get("__file").is_some() {
            ids.clear();
            out.push("file".into());
            continue;
        }
        ids.push(&line["id"]);
        let parent = match &line["parentId"] {
            Value::Null => String::new(),
            parent => match ids.iter().position(|id| *id == parent) {
                Some(at) => format!(" under {at}"),
                None => " under something unknown".into(),
            },
        };
        out.push(format!(
            "  {} {}{parent}",
            word(&line["type"]),
            word(&line["message"]["role"])
        ));
    }
    out
}

/// A readable account of the difference, or nothing if there is none.
pub fn difference(expected: &[String], found: &[String]) -> Option<String> {
    if expected == found {
        return None;
    }
    let cut = |lines: &[String]| {
        let cut = lines
            .iter()
            .map(|line| match line.char_indices().nth(LONGEST) {
                Some((at, _)) => format!("{}… ({} bytes)\n", &line[..at], line.len()),
                None => format!("{line}\n"),
            });
        cut.collect::<String>()
    };
    let (expected_text, found_text) = (cut(expected), cut(found));
    let diff = TextDiff::from_lines(&expected_text, &found_text);
    let text = diff
        .unified_diff()
        .context_radius(2)
        .header("expected", "found")
        .to_string();
    if !text.is_empty() {
        return Some(text);
    }
    // The lines differ beyond the place where they were cut.
    let pair = expected.iter().zip(found).find(|(a, b)| a != b)?;
    let at = pair
        .0
        .bytes()
        .zip(pair.1.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    Some(format!(
        "- {}\n+ {}\n",
        around(pair.0, at),
        around(pair.1, at)
    ))
}

const LONGEST: usize = 400;

fn around(text: &str, at: usize) -> String {
    let start = text.floor_char_boundary(at.saturating_sub(60));
    let end = text.floor_char_boundary((at + LONGEST).min(text.len()));
    format!("…{}…", &text[start..end])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

/// JSON with the fields in order of their names.
pub fn sorted(value: &Value) -> String {
    fn sort(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(sort).collect(),
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort();
                let sorted: Map<String, Value> = names
                    .into_iter()
                    .map(|name| (name.clone(), sort(&fields[name])))
                    .collect();
                Value::Object(sorted)
            }
            other => other.clone(),
        }
    }
    sort(value).to_string()
}
