//! Reduces lines of output to what the recordings keep of them.
//!
//! Gone: `message_start` and `message_update`; `agent_settled` and the disposition of a prompt, which the recorded release
//! does not have; times and usage; of the state only what a client acts on. The progress of the built-in `bash` is gone
//! too, because how often it reports depends on timing, together with what an extension reported about it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The longest text kept as it is; longer ones are kept as length and digest.
const MAX_TEXT: usize = 80;

/// Beginnings of texts that are kept at any length, because clients read them.
const PROTOCOL_TEXTS: [&str; 3] = [
    "Validation failed for tool ",
    "Agent is already processing.",
    "Extension command \"/",
];

/// Returns the recorded part of a line, if there is one.
pub fn reduce(line: &Value) -> Option<Value> {
    let kind = line["type"].as_str().unwrap_or_default();
    Some(match kind {
        // The recorded release does not send `agent_settled`.
        "message_start" | "message_update" | "agent_settled" => return None,
        "message_end" => message_end(&line["message"]),
        "turn_start" | "turn_end" => json!({"type": kind}),
        "agent_end" => json!({"type": kind, "roles": roles(&line["messages"])}),
        "response" => response(line),
        _ => line.clone(),
    })
}

fn message_end(message: &Value) -> Value {
    let mut kept = Map::new();
    kept.insert("type".into(), json!("message_end"));
    if message["role"] == "assistant" {
        let blocks = || message["content"].as_array().into_iter().flatten();
        let text: String = blocks()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let calls: Vec<Value> = blocks()
            .filter(|block| block["type"] == "toolCall")
            .map(|call| json!({"id": call["id"], "name": call["name"], "arguments": call["arguments"]}))
            .collect();
        kept.insert("role".into(), json!("assistant"));
        kept.insert("text".into(), json!(text));
        kept.insert("toolCalls".into(), json!(calls));
        kept.insert("stopReason".into(), message["stopReason"].clone());
    } else {
        kept.extend(without(message, &["timestamp"]));
    }
    Value::Object(kept)
}

fn roles(messages: &Value) -> Vec<String> {
    let role = |message: &Value| match (message["role"].as_str(), message["customType"].as_str()) {
        (Some("custom"), Some(kind)) => format!("custom:{kind}"),
        (role, _) => role.unwrap_or("?").to_owned(),
    };
    messages
        .as_array()
        .into_iter()
        .flatten()
        .map(role)
        .collect()
}

fn response(line: &Value) -> Value {
    let data = &line["data"];
    let kept = match line["command"].as_str().unwrap_or_default() {
        _ if data.is_null() => return line.clone(),
        "prompt" | "steer" | "follow_up" => return Value::Object(without(line, &["data"])),
        "get_state" => {
            let mut kept = json!({"model": data["model"]["id"]});
            let names = [
                "thinkingLevel",
                "isStreaming",
                "messageCount",
                "pendingMessageCount",
                "sessionName",
            ];
            for name in names {
                if let Some(value) = data.get(name).filter(|value| !value.is_null()) {
                    kept[name] = value.clone();
                }
            }
            kept
        }
        "set_model" => json!({"id": data["id"]}),
        "cycle_model" => json!({"model": {"id": data["model"]["id"]},
            "thinkingLevel": data["thinkingLevel"], "isScoped": data["isScoped"]}),
        "get_messages" => json!({"messages": each(&data["messages"], &["timestamp", "usage"])}),
        // The location has two forms: older clients read the fields, newer ones the object.
        "get_commands" => json!({"commands": each(&data["commands"], &["path", "location"])}),
        _ => data.clone(),
    };
    let mut line = line.clone();
    line["data"] = kept;
    line
}

fn each(items: &Value, names: &[&str]) -> Vec<Value> {
    let items = items.as_array().into_iter().flatten();
    items
        .map(|item| Value::Object(without(item, names)))
        .collect()
}

fn without(value: &Value, names: &[&str]) -> Map<String, Value> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Long texts as length and digest.
pub fn shorten(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > MAX_TEXT => {
            if PROTOCOL_TEXTS.iter().any(|begin| text.starts_with(begin)) {
                return value.clone();
            }
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            json!({"$chars": text.encode_utf16().count(), "$sha256": hex})
        }
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shorten(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Takes out what may differ between two runs of one program: the progress of `bash`, the order in which tools that
/// run at the same time report, and whether a compaction that a command began ends before that command is answered.
pub fn settle(lines: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for line in lines {
        if line["type"] == "tool_execution_update" && line["toolName"] == "bash" {
            if out.last().is_some_and(|last| last["method"] == "notify") {
                out.pop();
            }
            continue;
        }
        out.push(line);
    }
    let reports = |line: &Value| {
        matches!(
            line["type"].as_str(),
            Some("tool_execution_update" | "tool_execution_end")
        )
    };
    for together in out.chunk_by_mut(|a, b| reports(a) && reports(b)) {
        together.sort_by_key(|line| line["toolCallId"].to_string());
    }
    for at in 1..out.len() {
        if out[at - 1]["type"] == "compaction_end" && out[at]["type"] == "response" {
            out.swap(at - 1, at);
        }
    }
    renumber(&mut out);
    out
}

/// Dialogs count from one again, now that some lines are gone.
fn renumber(lines: &mut [Value]) {
    let mut known: Vec<String> = Vec::new();
    for line in lines {
        let Some(id) = line["id"].as_str().filter(|id| id.starts_with("<UI:")) else {
            continue;
        };
        let number = known
            .iter()
            .position(|other| other == id)
            .unwrap_or_else(|| {
                known.push(id.to_owned());
                known.len() - 1
            });
        line["id"] = json!(format!("<UI:{}>", number + 1));
    }
}
