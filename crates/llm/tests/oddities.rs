//! Servers that only resemble the API they claim to support: members of another type, frames that
//! are not objects, huge counts, errors in an unusual form. One unexpected member must not lose the
//! answer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use pinion_llm::{Request, ResponseDecoder, StreamEvent, build_request};
use pinion_message::{AssistantMessage, StopReason};
use serde_json::{Value, json};
use support::{hello, request};

fn asked(api: &str, context: &Value) -> Request {
    let model = json!({"id": "m", "name": "m", "api": api, "provider": api, "baseUrl": "https://x.example",
        "reasoning": true, "input": ["text", "image"], "cost": {"input": 1, "output": 1},
        "contextWindow": 100_000, "maxTokens": 1000});
    request(&json!({"model": model, "options": {}}), context, "")
}

/// The message decoded from a body.
fn answer(api: &str, body: &str) -> AssistantMessage {
    let mut decoder = ResponseDecoder::new(&asked(api, &hello())).unwrap();
    decoder.begin();
    decoder.push(body.as_bytes());
    decoder.finish();
    let mut events = std::iter::from_fn(|| decoder.next_event());
    let end = events.find_map(|event| match event {
        StreamEvent::End(message) => Some(message),
        _ => None,
    });
    end.unwrap()
}

/// Frames as `data` lines; Anthropic's are named by their type.
fn body(frames: &[&str]) -> String {
    let frame = |frame: &&str| {
        let value: Value = serde_json::from_str(frame).unwrap_or_default();
        let name = value["type"]
            .as_str()
            .map(|name| format!("event: {name}\n"));
        format!("{}data: {frame}\n\n", name.unwrap_or_default())
    };
    frames.iter().map(frame).collect()
}

fn text(message: &AssistantMessage) -> String {
    let content = pinion_message::Content::Blocks(message.content.clone());
    content.joined_text("|")
}

/// Checks that the answer is `hi` despite the odd frames.
fn assert_ignored(api: &str, odd: &str, frames: &[&str]) {
    let message = answer(api, &body(frames));
    assert_eq!(
        (message.stop_reason, &message.error_message, text(&message)),
        (StopReason::Stop, &None, "hi".to_owned()),
        "{api}: {odd}"
    );
}

const END: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn an_odd_member_of_a_chunk_is_ignored() {
    for api in ["openai-completions", "mistral-conversations"] {
        let said = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
        for odd in [
            r#"{"usage":{"prompt_tokens":3,"prompt_tokens_details":[]}}"#,
            r#"{"usage":"none"}"#,
            r#"{"usage":false}"#,
            r#"{"usage":[]}"#,
            r#"{"error":0}"#,
            r#"{"error":false}"#,
            r#"{"choices":{}}"#,
            r#"{"choices":["x",null]}"#,
            r#"{"choices":[{"delta":""}]}"#,
            r#"{"choices":[{"delta":["x"]}]}"#,
            r#"{"choices":[{"delta":{"content":{}}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":{}}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":"none"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":{}}}]}"#,
            "5",
            r#""x""#,
            "null",
            "[]",
            "true",
        ] {
            assert_ignored(api, odd, &[odd, said, END]);
        }
    }
    let odd = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":"x"}]}}]}"#;
    let message = answer("openai-completions", &body(&[odd, END]));
    assert_eq!(message.error_message, None);
}

#[test]
fn an_odd_member_of_a_message_event_is_ignored() {
    for (usage, details) in [("[]", "\"x\""), ("\"none\"", "[]"), ("5", "true")] {
        let start = format!(r#"{{"type":"message_start","message":{{"id":"m","usage":{usage}}}}}"#);
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn","stop_details":{details}}},"usage":{usage}}}"#
        );
        assert_ignored(
            "anthropic-messages",
            usage,
            &[
                &start,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":"x"}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                &end,
                r#"{"type":"message_stop"}"#,
            ],
        );
    }
}

#[test]
fn an_odd_member_of_a_google_frame_is_ignored() {
    for odd in [
        "[]",
        "null",
        r#"{"candidates":{}}"#,
        r#"{"candidates":[{"content":"x"}]}"#,
        r#"{"candidates":[{"content":{"parts":["x",5]}}]}"#,
        r#"{"usageMetadata":[],"promptFeedback":"none"}"#,
    ] {
        let said = r#"{"candidates":[{"content":{"parts":[{"text":"hi","thought":"true"}]},"finishReason":"STOP"}]}"#;
        assert_ignored("google-generative-ai", odd, &[odd, said]);
    }
}

#[test]
fn an_odd_member_of_a_response_event_is_ignored() {
    for odd in [
        r#"{"type":"response.created","response":"x"}"#,
        r#"{"type":"response.output_item.added","item":5}"#,
        "7",
        r#"{"error":null}"#,
    ] {
        assert_ignored(
            "openai-responses",
            odd,
            &[
                odd,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}"#,
                r#"{"type":"response.output_text.delta","output_index":0,"delta":"hi"}"#,
                r#"{"type":"response.completed","response":{"status":"completed","incomplete_details":"none","usage":"none"}}"#,
            ],
        );
    }
}

#[test]
fn counts_beyond_all_reason_are_added_up() {
    let huge = "1e30";
    for (api, frames) in [
        (
            "openai-completions",
            [
                END.to_owned(),
                format!(
                    r#"{{"usage":{{"prompt_tokens":{huge},"completion_tokens":{huge},"prompt_tokens_details":{{"cached_tokens":{huge}}}}}}}"#
                ),
            ],
        ),
        (
            "mistral-conversations",
            [
                END.to_owned(),
                r#"{"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}}"#.to_owned(),
            ],
        ),
        (
            "anthropic-messages",
            [
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#.to_owned(),
                format!(
                    r#"{{"type":"message_delta","usage":{{"input_tokens":{huge},"output_tokens":{huge},"cache_read_input_tokens":{huge}}}}}"#
                ),
            ],
        ),
        (
            "google-generative-ai",
            [
                r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned(),
                format!(
                    r#"{{"usageMetadata":{{"promptTokenCount":{huge},"candidatesTokenCount":{huge},"thoughtsTokenCount":{huge}}}}}"#
                ),
            ],
        ),
    ] {
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let message = answer(api, &body(&frames));
        assert_eq!(message.error_message, None, "{api}");
        assert!(message.usage.output > 1 << 50, "{api}: {:?}", message.usage);
    }
}

#[test]
fn failed_responses_have_the_text_of_the_provider() {
    for (frame, words) in [
        (
            r#"data: {"error":{"message":"server fell over"}}"#,
            "server fell over",
        ),
        (
            "event: error\ndata: {\"error\":{\"message\":\"boom\"}}",
            "boom",
        ),
        (r#"data: {"error":"plain"}"#, "plain"),
        (
            r#"data: {"type":"response.failed","response":{"error":{"code":"server_error"}}}"#,
            "server_error: no message",
        ),
        (
            r#"data: {"type":"response.failed","response":{"error":{"message":"m"}}}"#,
            "unknown: m",
        ),
        (
            r#"data: {"type":"response.failed","response":{}}"#,
            "Unknown error (no error details in response)",
        ),
        (
            r#"data: {"type":"error","code":null,"message":"slow"}"#,
            "Error Code null: slow",
        ),
        (
            r#"data: {"type":"error","code":"x","message":"slow"}"#,
            "Error Code x: slow",
        ),
    ] {
        let message = answer("openai-responses", &format!("{frame}\n\n"));
        assert_eq!(message.error_message.as_deref(), Some(words), "{frame}");
    }
}

#[test]
fn calls_of_mistral_without_an_id_get_one_each() {
    let call = |index: u32, id: &str| {
        format!(
            r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":{id},"function":{{"name":"ls","arguments":"{{}}"}}}}]}}}}]}}"#
        )
    };
    let calls = [call(0, "\"null\""), call(1, "\"null\""), call(2, "null")];
    let mut frames: Vec<&str> = calls.iter().map(String::as_str).collect();
    frames.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#);
    let message = answer("mistral-conversations", &body(&frames));
    let ids: Vec<&str> = message.tool_calls().map(|call| &*call.id).collect();
    assert_eq!(ids, ["toolcall0", "toolcall1", "toolcall2"]);
}

#[test]
fn mistral_receives_a_text_for_an_empty_tool_result() {
    let call = json!({"role": "assistant", "api": "mistral-conversations", "provider": "mistral-conversations",
        "model": "m", "stopReason": "toolUse",
        "content": [{"type": "toolCall", "id": "toolcall0", "name": "ls", "arguments": {}}]});
    for (is_error, words) in [
        (false, "(no tool output)"),
        (true, "[tool error] (no tool output)"),
    ] {
        let result = json!({"role": "toolResult", "toolCallId": "toolcall0", "toolName": "ls",
            "content": [{"type": "text", "text": ""}], "isError": is_error});
        let context = json!({"messages": [{"role": "user", "content": "Hello"}, call, result]});
        let built = build_request(&asked("mistral-conversations", &context)).unwrap();
        let sent: Value = serde_json::from_slice(&built.body).unwrap();
        let last = sent["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(last["content"][0]["text"], words);
    }
}
