//! The expectation of a response vector, and the actual events in the same form.

use pinion_llm::StreamEvent;
use pinion_message::{Block, Message, StopReason};
use serde_json::{Value, json};

/// The comparison of an error text.
#[derive(Debug)]
pub enum ErrorText {
    /// The text comes from the provider, or pinion has decided to use it.
    Exactly(Value),
    /// The text is longer than the recorded one, and must contain this.
    Contains(&'static str),
}

#[derive(Debug)]
pub struct Expectation {
    pub events: Vec<Value>,
    pub message: Value,
    pub error: ErrorText,
}

/// The expectation of `vector`, for the version that the vector names.
pub fn expectation(vector: &Value) -> Expectation {
    let name = vector["vector"].as_str().unwrap();
    let source = if vector["follow"] == "newer" {
        &vector["newer"]
    } else {
        vector
    };
    let mut events: Vec<Value> = source["events"].as_array().unwrap().clone();
    for event in &mut events {
        event.as_object_mut().unwrap().remove("partial");
    }
    let mut message = source["message"].clone();
    let members = message.as_object_mut().unwrap();
    members.remove("rawStopReason");
    let error = ErrorText::Exactly(members.remove("errorMessage").unwrap_or(Value::Null));
    for newer in ["reasoning", "cacheWrite1h"] {
        message["usage"].as_object_mut().unwrap().remove(newer);
    }
    let mut expectation = Expectation {
        events,
        message,
        error,
    };
    own_rules(name, vector, &mut expectation);
    expectation
}

/// Exceptions: neither recorded version is right, or a text belongs to its runtime.
fn own_rules(name: &str, vector: &Value, expectation: &mut Expectation) {
    match name {
        "anthropic-messages/21-cut-between-cr-and-lf" => {
            expectation.events = [
                json!({"type": "start"}),
                json!({"type": "text_start", "contentIndex": 0}),
                json!({"type": "text_delta", "contentIndex": 0, "delta": "ok"}),
                json!({"type": "text_end", "contentIndex": 0, "content": "ok"}),
                json!({"type": "done", "reason": "stop"}),
            ]
            .into();
            expectation.message["content"][0]["text"] = json!("ok");
            expectation.message["stopReason"] = json!("stop");
            // The recorded run broke off before the last count: 12 tokens.
            let cost = 15.0 / 1e6 * 12.0;
            expectation.message["usage"]["output"] = json!(12);
            expectation.message["usage"]["totalTokens"] = json!(37);
            expectation.message["usage"]["cost"]["output"] = json!(cost);
            expectation.message["usage"]["cost"]["total"] = json!(3.0 / 1e6 * 25.0 + cost);
            expectation.error = ErrorText::Exactly(Value::Null);
        }
        "openai-completions/12-same-index-two-ids" => {
            let first = json!({"type": "toolCall", "id": "call_a", "name": "bash", "arguments": {"command": "ls"}});
            let second = json!({"type": "toolCall", "id": "call_b", "name": "read", "arguments": {"path": "a"}});
            expectation.events = [
                json!({"type": "start"}),
                json!({"type": "toolcall_start", "contentIndex": 0}),
                json!({"type": "toolcall_delta", "contentIndex": 0, "delta": "{\"command\":\"ls\"}"}),
                json!({"type": "toolcall_start", "contentIndex": 1}),
                json!({"type": "toolcall_delta", "contentIndex": 1, "delta": "{\"path\":\"a\"}"}),
                json!({"type": "toolcall_end", "contentIndex": 0, "toolCall": first}),
                json!({"type": "toolcall_end", "contentIndex": 1, "toolCall": second}),
                json!({"type": "done", "reason": "toolUse"}),
            ]
            .into();
            expectation.message["content"] = json!([first, second]);
        }
        "openai-completions/24-bad-json-frame" => {
            expectation.error = ErrorText::Contains("Could not parse a chunk");
        }
        "google-generative-ai/10-prompt-blocked" => {
            expectation.error = ErrorText::Contains("blocked the prompt: PROHIBITED_CONTENT");
        }
        "google-generative-ai/17-error-sse-frame" => {
            expectation.error = ErrorText::Contains("Internal error encountered.");
        }
        _ if vector.get("abortAfterEvents").is_some() => {
            // Over Anthropic's protocol the text has always ended in a dot.
            expectation.error = ErrorText::Contains("Request was aborted");
        }
        _ => {}
    }
}

/// Compares the events with the expectation.
pub fn check(name: &str, events: &[StreamEvent], expectation: &Expectation) {
    let (seen, mut message) = in_vector_form(events);
    assert_eq!(seen, expectation.events, "{name}: events");
    let error = message
        .as_object_mut()
        .unwrap()
        .remove("errorMessage")
        .unwrap_or(Value::Null);
    match &expectation.error {
        ErrorText::Exactly(text) => assert_eq!(error, *text, "{name}: error text"),
        ErrorText::Contains(part) => {
            assert!(
                error.as_str().is_some_and(|text| text.contains(part)),
                "{name}: {error}"
            );
        }
    }
    let read = |mut message: Value| -> Message {
        message["timestamp"] = json!(0);
        serde_json::from_value(message).unwrap()
    };
    assert_eq!(
        read(message),
        read(expectation.message.clone()),
        "{name}: message"
    );
}

/// Events and final message in the form of the vectors.
pub fn in_vector_form(events: &[StreamEvent]) -> (Vec<Value>, Value) {
    let mut kinds: Vec<&str> = Vec::new();
    let mut recorded = Vec::new();
    let mut message = Value::Null;
    for event in events {
        assert!(message.is_null(), "an event after the end: {event:?}");
        match event {
            StreamEvent::Usage(_) => {}
            StreamEvent::Start(_) => recorded.push(json!({"type": "start"})),
            StreamEvent::BlockStart { index, block } => {
                assert_eq!(*index, kinds.len());
                kinds.push(kind(block));
                recorded
                    .push(json!({"type": format!("{}_start", kind(block)), "contentIndex": index}));
            }
            StreamEvent::Delta { index, delta } => {
                let kind = format!("{}_delta", kinds[*index]);
                recorded.push(json!({"type": kind, "contentIndex": index, "delta": &**delta}));
            }
            StreamEvent::BlockEnd { index, block } => {
                let mut end =
                    json!({"type": format!("{}_end", kind(block)), "contentIndex": index});
                match block {
                    Block::Text(block) => end["content"] = json!(block.text),
                    Block::Thinking(block) => end["content"] = json!(block.thinking),
                    call => end["toolCall"] = json!(as_recorded(call)),
                }
                recorded.push(end);
            }
            StreamEvent::End(end) => {
                let failed = matches!(end.stop_reason, StopReason::Error | StopReason::Aborted);
                let kind = if failed { "error" } else { "done" };
                recorded.push(json!({"type": kind, "reason": end.stop_reason.as_str()}));
                let mut end = end.clone();
                // The vectors are older than these members.
                end.remove_measurements();
                end.content = end.content.iter().map(as_recorded).collect();
                message = json!(Message::Assistant(end));
            }
        }
    }
    assert!(!message.is_null(), "no end");
    named(recorded, message)
}

/// A block without the members that are newer than the vectors.
fn as_recorded(block: &Block) -> Block {
    let mut block = block.clone();
    if let Block::ToolCall(call) = &mut block {
        call.arguments_error = None;
    }
    block
}

/// Generated ids as `<generated:NAME:N>`, numbered as they appear.
fn named(recorded: Vec<Value>, message: Value) -> (Vec<Value>, Value) {
    let mut names = Vec::new();
    for block in message["content"].as_array().unwrap() {
        let (id, name) = (block["id"].as_str(), block["name"].as_str());
        if let (Some(id), Some(name)) = (id, name)
            && let Some(tail) = id.strip_prefix(&format!("{name}_"))
            && tail.split('_').all(|part| part.parse::<u64>().is_ok())
        {
            names.push((
                id.to_owned(),
                format!("<generated:{name}:{}>", names.len() + 1),
            ));
        }
    }
    let rename = |value: Value| {
        let mut text = value.to_string();
        for (id, name) in &names {
            text = text.replace(id, name);
        }
        serde_json::from_str(&text).unwrap()
    };
    (recorded.into_iter().map(rename).collect(), rename(message))
}

fn kind(block: &Block) -> &'static str {
    match block {
        Block::Text(_) => "text",
        Block::Thinking(_) => "thinking",
        Block::ToolCall(_) => "toolcall",
        Block::Image { .. } => "image",
    }
}
