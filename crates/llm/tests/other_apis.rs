//! The APIs that are supported beside the four main ones: Azure, Vertex with a key, Mistral.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use pinion_llm::{Request, ResponseDecoder, StreamEvent, build_request};
use pinion_message::{Secret, StopReason};
use serde_json::{Map, Value, json};
use support::expectation::in_vector_form;
use support::{hello, request, vectors};

fn captured() -> Vec<Value> {
    let text = std::fs::read_to_string(vectors().join("requests/other-apis.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A model and options that lead to the captured request.
fn described(case: &Value) -> Option<(&'static str, Value, Value)> {
    let session = json!("s1");
    let name = case["case"].as_str().unwrap();
    let id = name.strip_prefix("mistral ")?.strip_suffix(" high")?;
    Some((
        "mistral-conversations",
        json!({"id": id, "baseUrl": "https://api.mistral.ai",
            "maxTokens": case["body"]["max_tokens"],
            "reasoning": !id.starts_with("devstral")}),
        json!({"reasoning": "high", "sessionId": session}),
    ))
}

fn model(api: &str, members: &Value) -> Value {
    let mut model = json!({"name": "m", "api": api, "provider": api, "reasoning": true,
        "input": ["text", "image"], "cost": {"input": 1, "output": 1}, "contextWindow": 100000});
    model
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    model
}

#[test]
fn requests_are_as_captured() {
    let mut seen = 0;
    for case in captured() {
        let Some((api, members, options)) = described(&case) else {
            continue;
        };
        let vector = json!({"model": model(api, &members), "options": options});
        let mut request = request(&vector, &hello(), "");
        request.options.api_key = Some(Secret::from("k".to_owned()));
        let built = build_request(&request).unwrap();
        let (_, rest) = built.url.split_once("://").unwrap();
        assert_eq!(
            &rest[rest.find('/').unwrap()..],
            case["path"].as_str().unwrap(),
            "{case}"
        );
        let headers: Map<String, Value> = built
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        assert_eq!(Value::Object(headers), case["headers"], "{case}");
        let body: Value = serde_json::from_slice(&built.body).unwrap();
        assert_eq!(body, case["body"], "{case}");
        seen += 1;
    }
    // Those of Azure and Vertex AI are older than the ones in tests/cloud_apis.rs.
    assert_eq!(seen, 3);
}

fn mistral(context: &Value) -> Request {
    let members =
        json!({"id": "magistral-medium-latest", "baseUrl": "http://test", "maxTokens": 9});
    let vector = json!({"model": model("mistral-conversations", &members), "options": {}});
    request(&vector, context, "")
}

#[test]
fn mistral_gets_short_ids_typed_content_and_marked_errors() {
    let answer = |blocks: Value| {
        json!({"role": "assistant", "content": blocks, "api": "x",
        "provider": "x", "model": "x", "stopReason": "toolUse", "timestamp": 1})
    };
    let result = |id: &str, error: bool| {
        json!({"role": "toolResult", "toolCallId": id,
        "toolName": "bash", "content": [{"type": "text", "text": "out"}], "isError": error})
    };
    let context = json!({"messages": [
        {"role": "user", "content": "go", "timestamp": 1},
        answer(json!([
            {"type": "text", "text": "on it"},
            {"type": "toolCall", "id": "call_abc", "name": "bash", "arguments": {}},
            {"type": "toolCall", "id": "toolcall:0", "name": "bash", "arguments": {}},
        ])),
        result("call_abc", false),
        result("toolcall:0", true),
    ]});
    let built = build_request(&mistral(&context)).unwrap();
    let body: Value = serde_json::from_slice(&built.body).unwrap();
    let call = |id: &str| {
        json!({"id": id, "type": "function",
        "function": {"name": "bash", "arguments": "{}"}})
    };
    let tool = |id: &str, text: &str| {
        json!({"role": "tool", "tool_call_id": id, "name": "bash",
        "content": [{"type": "text", "text": text}]})
    };
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "text", "text": "on it"}],
                "tool_calls": [call("18mdplhyx"), call("toolcall0")]},
            tool("18mdplhyx", "out"),
            tool("toolcall0", "[tool error] out"),
        ])
    );
}

#[test]
fn mistral_streams_thinking_text_and_calls() {
    let delta = |delta: Value| {
        format!(
            "data: {}\n\n",
            json!({"id": "c1", "choices": [{"delta": delta}]})
        )
    };
    let thinking = |text: &str| {
        json!({"content": [{"type": "thinking",
        "thinking": [{"type": "text", "text": text}]}]})
    };
    let call = json!({"tool_calls": [
        {"id": "aaaaaaaaa", "index": 0, "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}},
        {"id": "bbbbbbbbb", "index": 0, "function": {"name": "read", "arguments": {"path": "x"}}},
    ]});
    let last = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let body = [
        delta(thinking("hm")),
        delta(thinking("m")),
        delta(json!({"content": "Now."})),
        delta(call),
        format!("data: {last}\n\ndata: [DONE]\n\n"),
    ]
    .concat();
    let mut decoder = ResponseDecoder::new(&mistral(&json!({"messages": []}))).unwrap();
    decoder.begin();
    decoder.push(body.as_bytes());
    let events: Vec<StreamEvent> = std::iter::from_fn(|| decoder.next_event()).collect();
    let (recorded, _) = in_vector_form(&events);
    let kinds: Vec<&str> = recorded
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "start",
            "thinking_start",
            "thinking_delta",
            "thinking_delta",
            "thinking_end",
            "text_start",
            "text_delta",
            "text_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_end",
            "toolcall_end",
            "done",
        ]
    );
    let Some(StreamEvent::End(message)) = events.last() else {
        panic!("no end")
    };
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!((message.usage.input, message.usage.output), (3, 4));
    let calls: Vec<String> = message
        .tool_calls()
        .map(|call| call.arguments.to_string())
        .collect();
    assert_eq!(calls, [r#"{"command":"ls"}"#, r#"{"path":"x"}"#]);
}
