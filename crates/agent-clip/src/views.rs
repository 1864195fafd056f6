//! Sessions in the form that callers of the agent receive.

use pinion_message::{Block, Message};
use pinion_session::Store;
use serde_json::{Value, json};

use super::feed::usage;
use super::record_file::time;

/// Returns the last `limit` messages of a session, and the number of all messages.
pub(super) fn messages(topic: &str, store: &Store, limit: usize) -> (Vec<Value>, usize) {
    let mut shown = Vec::new();
    let mut calls: Vec<(String, Value)> = Vec::new();
    for entry in store.path() {
        let Some(message) = entry.message() else {
            continue;
        };
        let mut view = match &*message {
            Message::User(user) => {
                json!({"role": "user", "content": user.content.joined_text("\n")})
            }
            Message::Assistant(answer) => {
                let thinking = answer.content.iter().filter_map(|block| match block {
                    Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
                    _ => None,
                });
                let thinking: Vec<&str> = thinking.collect();
                let made: Vec<Value> = answer
                    .tool_calls()
                    .map(|call| {
                        calls.push((call.id.clone(), call.arguments.clone()));
                        json!({"id": call.id, "name": call.name, "arguments": call.arguments})
                    })
                    .collect();
                let mut used = usage(&answer.usage);
                if let Some(used) = used.as_object_mut() {
                    used.shift_remove("type");
                }
                let mut view = json!({
                    "role": "assistant",
                    "content": answer.joined_text("\n"),
                    "model": format!("{}/{}", answer.provider, answer.model),
                    "usage": used,
                });
                if !thinking.is_empty() {
                    view["reasoning"] = thinking.join("\n").into();
                }
                if !made.is_empty() {
                    view["tool_calls"] = made.into();
                }
                if let Some(error) = &answer.error_message {
                    view["error"] = error.as_str().into();
                }
                view
            }
            Message::ToolResult(result) => {
                let texts = result.content.iter().filter_map(Block::as_text);
                let texts: Vec<&str> = texts.collect();
                let call = calls.iter().rfind(|(id, _)| *id == result.tool_call_id);
                json!({
                    "role": "tool",
                    "content": texts.join("\n"),
                    "tool_call_id": result.tool_call_id,
                    "tool_name": result.tool_name,
                    "tool_args": call.map(|(_, arguments)| arguments),
                    "is_error": result.is_error,
                })
            }
            _ => continue,
        };
        view["id"] = entry.id().as_str().into();
        view["topic_id"] = topic.into();
        view["created_at"] = time(message.timestamp()).into();
        shown.push(view);
    }
    let total = shown.len();
    shown.drain(..total.saturating_sub(limit));
    (shown, total)
}

/// Returns the whole content of a session file as JSON.
pub(super) fn entries(store: &Store) -> Value {
    let header: Value = serde_json::from_slice(store.header().json()).unwrap_or_default();
    let entries: Vec<Value> = store.entries().filter_map(|entry| entry.value()).collect();
    json!({"header": header, "entries": entries})
}
