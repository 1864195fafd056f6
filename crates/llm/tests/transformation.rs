//! The conversation as the next model receives it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a message that does not read is a failed test"
)]

use std::sync::Arc;

use pinion_llm::transform;
use pinion_message::{Message, Model};
use serde_json::{Value, json};

fn model(api: &str, input: Value) -> Model {
    serde_json::from_value(json!({"id": "m", "name": "m", "api": api, "provider": "p",
        "baseUrl": "", "reasoning": true, "input": input, "cost": {}, "contextWindow": 1,
        "maxTokens": 1}))
    .unwrap()
}

fn seeing() -> Model {
    model("anthropic-messages", json!(["text", "image"]))
}

fn messages(list: Value) -> Vec<Arc<Message>> {
    serde_json::from_value::<Vec<Message>>(list)
        .unwrap()
        .into_iter()
        .map(Arc::new)
        .collect()
}

fn answer(blocks: Value, reason: &str) -> Value {
    json!({"role": "assistant", "content": blocks, "api": "anthropic-messages", "provider": "p",
        "model": "m", "stopReason": reason, "timestamp": 1})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}})
}

fn result(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "bash",
        "content": [{"type": "text", "text": "done"}], "isError": false, "timestamp": 1})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 1})
}

/// Roles, and for results the call they answer.
fn outline(messages: &[Arc<Message>]) -> Vec<String> {
    let line = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => {
            let kind = if result.is_error {
                "invented"
            } else {
                "result"
            };
            format!("{kind} {}", result.tool_call_id)
        }
        other => other.role().to_owned(),
    };
    messages.iter().map(line).collect()
}

#[test]
fn messages_that_need_no_change_are_shared() {
    let history = messages(json!([
        user("hi"),
        answer(json!([{"type": "text", "text": "yes"}, call("a")]), "toolUse"),
        result("a"),
        {"role": "user", "content": [{"type": "image", "data": "aa", "mimeType": "image/png"}]},
    ]));
    let seen = transform(&history, &seeing());
    assert_eq!(seen.len(), history.len());
    assert!(
        seen.iter()
            .zip(&history)
            .all(|(after, before)| Arc::ptr_eq(after, before))
    );
}

#[test]
fn open_calls_are_answered_and_stray_results_dropped() {
    let history = messages(json!([
        user("one"),
        answer(json!([call("a"), call("b")]), "toolUse"),
        result("b"),
        user("two"),
        result("a"),
        answer(json!([call("c")]), "aborted"),
        result("c"),
        answer(json!([call("d")]), "toolUse"),
        result("d"),
        result("d"),
        answer(json!([call("e")]), "toolUse"),
    ]));
    let seen = outline(&transform(&history, &seeing()));
    assert_eq!(
        seen,
        [
            "user",
            "assistant",
            "result b",
            "invented a",
            "user",
            "assistant",
            "result d",
            "assistant",
            "invented e",
        ]
    );
}

#[test]
fn runs_of_images_become_one_placeholder() {
    let image = json!({"type": "image", "data": "aa", "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let history = messages(json!([
        {"role": "user", "content": [image, image, text("between"), image], "timestamp": 1},
        user("plain"),
    ]));
    let seen = transform(&history, &model("anthropic-messages", json!(["text"])));
    let Message::User(first) = &*seen[0] else {
        panic!("not a user message")
    };
    let blocks = json!(first.content);
    assert_eq!(blocks.as_array().unwrap().len(), 3);
    assert_eq!(blocks[0], blocks[2]);
    assert_eq!(blocks[1], text("between"));
    assert!(Arc::ptr_eq(&seen[1], &history[1]));
}

#[test]
fn another_models_thinking_becomes_text_and_its_signatures_go() {
    let mut foreign = answer(
        json!([
            {"type": "thinking", "thinking": "plan", "thinkingSignature": "s"},
            {"type": "thinking", "thinking": "[hidden]", "thinkingSignature": "s", "redacted": true},
            {"type": "thinking", "thinking": " "},
            {"type": "text", "text": "go", "textSignature": "s"},
            {"type": "toolCall", "id": "a|b", "name": "bash", "arguments": {}, "thoughtSignature": "s"},
        ]),
        "toolUse",
    );
    foreign["model"] = json!("another");
    let seen = transform(&messages(json!([foreign, result("a|b")])), &seeing());
    assert_eq!(
        json!(&*seen[0])["content"],
        json!([
            {"type": "text", "text": "plan"},
            {"type": "text", "text": "go"},
            {"type": "toolCall", "id": "a_b", "name": "bash", "arguments": {}},
        ])
    );
    assert_eq!(outline(&seen), ["assistant", "result a_b"]);
}

#[test]
fn kinds_that_are_not_for_models_are_left_out() {
    let history = messages(json!([
        {"role": "bashExecution", "command": "ls", "output": "", "timestamp": 1},
        user("hi"),
    ]));
    assert_eq!(outline(&transform(&history, &seeing())), ["user"]);
}
