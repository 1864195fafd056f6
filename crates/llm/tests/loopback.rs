//! Whole exchanges with a server on loopback: every response vector, and every failure of a
//! connection.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{HttpProvider, Provider, Request, StreamEvent};
use pinion_message::{AssistantMessage, Secret, StopReason};
use serde_json::{Value, json};
use support::expectation::{check, expectation, in_vector_form};
use support::server::{Ending, Reply, Server};
use support::{files, hello, read, request, rows, vectors};

const APIS: [&str; 4] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "google-generative-ai",
];

/// All events; the request is cancelled after `after` of them.
async fn ask(request: Request, after: Option<u64>) -> Vec<StreamEvent> {
    let cancel = request.cancel.clone();
    let mut stream = HttpProvider::new().stream(request);
    let mut events = Vec::new();
    let mut counted = 0;
    while let Some(event) = stream.next().await {
        counted += u64::from(!matches!(event, StreamEvent::Usage(_)));
        events.push(event);
        if Some(counted) == after {
            cancel.cancel();
        }
    }
    events
}

async fn end(request: Request) -> AssistantMessage {
    match ask(request, None).await.pop() {
        Some(StreamEvent::End(message)) => message,
        other => panic!("the last event is {other:?}"),
    }
}

fn replies(api: &str, vector: &Value) -> Vec<Reply> {
    let reply = |from: &Value| {
        let file = vectors().join(api).join(from["bodyFile"].as_str().unwrap());
        let body = std::fs::read(file).unwrap();
        let mut cuts: Vec<usize> = from["chunkOffsets"]
            .as_array()
            .map(|cuts| {
                cuts.iter()
                    .map(|cut| cut.as_u64().unwrap() as usize)
                    .collect()
            })
            .unwrap_or_default();
        cuts.push(body.len());
        let mut at = 0;
        let mut pieces = Vec::new();
        for cut in cuts {
            pieces.push(body[at..cut].to_vec());
            at = cut;
        }
        let headers = from["headers"].as_object().unwrap().iter();
        Reply {
            status: from["status"].as_u64().unwrap() as u16,
            headers: headers
                .map(|(n, v)| (n.clone(), v.as_str().unwrap().to_owned()))
                .collect(),
            pieces,
            ending: if from["keepOpen"] == true {
                Ending::KeepOpen
            } else {
                Ending::Complete
            },
        }
    };
    vector["responses"]
        .as_array()
        .unwrap()
        .iter()
        .map(reply)
        .collect()
}

async fn replay(api: &str) {
    for file in files(api, ".expected.json") {
        let vector = read(&file);
        let name = vector["vector"].as_str().unwrap();
        let mut server = Server::start(replies(api, &vector));
        let request = request(&vector, &hello(), &server.base);
        let after = vector["abortAfterEvents"].as_u64();
        check(name, &ask(request, after).await, &expectation(&vector));
        let requests = server.requests().len() as u64;
        assert_eq!(
            Some(requests),
            vector["requestsSeen"].as_u64(),
            "{name}: requests"
        );
        if after.is_some() {
            assert!(
                server.client_hung_up().await,
                "{name}: an aborted connection stays open"
            );
        }
    }
}

#[tokio::test]
async fn anthropic_vectors() {
    replay("anthropic-messages").await;
}

#[tokio::test]
async fn completions_vectors() {
    replay("openai-completions").await;
}

#[tokio::test]
async fn responses_vectors() {
    replay("openai-responses").await;
}

#[tokio::test]
async fn google_vectors() {
    replay("google-generative-ai").await;
}

/// A request to `base` over `api`, without retries.
fn plain(api: &str, base: &str) -> Request {
    let vector = read(&files(api, "01-text-plain.expected.json")[0]);
    request(&vector, &hello(), base)
}

/// The beginning of an answer, and all of it.
fn body(api: &str) -> (Vec<u8>, Vec<u8>) {
    let whole = std::fs::read(vectors().join(api).join("01-text-plain.sse")).unwrap();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let delta = ["Hello", "Hel", "Hi"]
        .iter()
        .find_map(|word| text.find(word))
        .unwrap();
    let end = delta + text[delta..].find("\n\n").unwrap() + 2;
    (whole[..end].to_vec(), whole)
}

/// Changes the recording where pinion differs from it: the recording hides a failure, or differs
/// without a reason.
fn apply_differences(row: &Value, seen: &mut Value) {
    let no_answer = match row["api"].as_str().unwrap() {
        "anthropic-messages" => "Anthropic stream ended without a stop reason",
        "openai-completions" => "Stream ended without finish_reason",
        "openai-responses" => "OpenAI Responses stream ended before a terminal response event",
        _ => "Google stream ended without a finish reason",
    };
    match row["situation"].as_str().unwrap() {
        "HTTP 200 with an empty body" | "HTTP 200 with an HTML body" => {
            *seen = json!([["start", "error"], "error", no_answer]);
        }
        "timeoutMs 300, no headers in time" => {
            *seen = json!([["error"], "error", "Request timed out."]);
        }
        "abort before response headers" | "abort signalled before call" => {
            *seen = json!([["error"], "aborted", "Request was aborted."]);
        }
        _ => {}
    }
}

async fn situation(row: &Value) -> Option<(Vec<StreamEvent>, usize)> {
    let api = row["api"].as_str().unwrap();
    let situation = row["situation"].as_str().unwrap();
    let (beginning, _) = body(api);
    let error = |message: &str| json!({"error": {"message": message}}).to_string();
    let reply = match situation {
        "connection refused" => Reply::default(),
        "socket closed before response headers" => {
            Reply::default().ending(Ending::CloseBeforeHeaders)
        }
        "socket reset in mid-body" => Reply::stream(&[&beginning]).ending(Ending::Broken),
        "timeoutMs 300, no headers in time" | "abort before response headers" => {
            Reply::default().ending(Ending::Silent)
        }
        "abort signalled before call" => Reply::default(),
        "HTTP 200 with an empty body" => Reply::new(200, ""),
        "HTTP 200 with an HTML body" => Reply::new(200, "<html><body>Hi</body></html>"),
        "HTTP 502 with an HTML body" => Reply::new(502, "<html><body>Bad Gateway</body></html>"),
        "HTTP 401 JSON" => Reply::new(
            401,
            &match api {
                "anthropic-messages" => json!({"type": "error", "error":
                {"type": "authentication_error", "message": "invalid x-api-key"}})
                .to_string(),
                "google-generative-ai" => json!({"error": {"code": 401,
                "message": "API key not valid", "status": "UNAUTHENTICATED"}})
                .to_string(),
                _ => error("Incorrect API key provided"),
            },
        ),
        "HTTP 503 empty body" => Reply::new(503, ""),
        "HTTP 500 always, retry setting left at default" => Reply::new(
            500,
            &json!({"error":
            {"message": "boom", "type": "server_error", "code": 500, "status": "INTERNAL"}})
            .to_string(),
        ),
        "HTTP 500 with x-should-retry: false" => {
            Reply::new(500, &error("boom")).header("x-should-retry", "false")
        }
        "HTTP 400 never retried" => Reply::new(400, &error("bad")),
        // Keys are looked up before a request is made, and silence has its own test.
        _ => return None,
    };
    let mut server = Server::start(vec![reply]);
    let base = match situation {
        "connection refused" => "http://127.0.0.1:9".to_owned(),
        _ => server.base.clone(),
    };
    let mut request = plain(api, &base);
    request.options.retry.max_retries = match situation {
        "HTTP 500 always, retry setting left at default" => 2,
        "HTTP 500 with x-should-retry: false" | "HTTP 400 never retried" => 2,
        _ => 0,
    };
    if situation.starts_with("timeoutMs") {
        request.options.timeouts.first_byte = Duration::from_millis(300);
    }
    if situation == "abort signalled before call" {
        request.cancel.cancel();
    }
    if situation == "abort before response headers" {
        let (cancel, requested) = (request.cancel.clone(), server.requested());
        tokio::spawn(async move {
            requested.await;
            cancel.cancel();
        });
    }
    let events = ask(request, None).await;
    if matches!(
        situation,
        "abort before response headers" | "timeoutMs 300, no headers in time"
    ) {
        assert!(server.client_hung_up().await, "{row}");
    }
    Some((events, server.requests().len()))
}

#[tokio::test]
async fn failed_connections_have_the_recorded_texts() {
    let mut checked = 0;
    for row in rows("transport-errors.jsonl") {
        let Some((events, requests)) = situation(&row).await else {
            continue;
        };
        let (recorded, message) = in_vector_form(&events);
        let kinds: Vec<&Value> = recorded.iter().map(|event| &event["type"]).collect();
        let seen = json!([kinds, message["stopReason"], message["errorMessage"]]);
        let mut expected = json!([row["events"], row["stopReason"], row["errorMessage"]]);
        if row["situation"] == "socket reset in mid-body" {
            // The number of earlier deltas depends on the recorded body.
            assert!(
                matches!(kinds[..], [start, .., _] if start == "start"),
                "{row}"
            );
            expected[0] = seen[0].clone();
        }
        apply_differences(&row, &mut expected);
        assert_eq!(seen, expected, "{row}");
        assert_eq!(json!(requests), row["requests"], "{row}");
        checked += 1;
    }
    assert_eq!(checked, 4 * 14);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_with_cause_and_tries() {
    let provider = HttpProvider::new();
    for tries in 1..=2 {
        let mut request = plain("anthropic-messages", "http://user:planted@127.0.0.1:9");
        // A retry cannot succeed on a local port on which no program listens.
        request.options.retry.max_retries = 2;
        let events: Vec<StreamEvent> = provider.stream(request).collect().await;
        assert!(matches!(events.last(), Some(StreamEvent::End(_))));
        let unreachable = provider.unreachable().unwrap();
        assert_eq!(unreachable.tries, tries);
        let words = unreachable.to_string();
        assert!(
            words.starts_with(
                "http://127.0.0.1:9/v1/messages could not be reached: connection refused ("
            ),
            "{words}"
        );
    }
    let server = Server::start(vec![Reply::new(400, "no")]);
    let request = plain("anthropic-messages", &server.base);
    let _: Vec<StreamEvent> = provider.stream(request).collect().await;
    assert_eq!(provider.unreachable(), None);
}

#[tokio::test]
async fn an_answer_that_falls_silent_times_out() {
    for api in APIS {
        let (beginning, _) = body(api);
        let mut server = Server::start(vec![Reply::stream(&[&beginning]).ending(Ending::KeepOpen)]);
        let mut request = plain(api, &server.base);
        request.options.timeouts.idle = Duration::from_millis(200);
        let message = end(request).await;
        let text = message.error_message.as_deref();
        assert_eq!(
            text,
            Some("Stream idle timeout: no data for 0.2 s (timed out)"),
            "{api}"
        );
        assert!(
            !message.content.is_empty(),
            "{api}: what was received stays"
        );
        assert!(pinion_llm::is_retryable(&message));
        assert!(server.client_hung_up().await);
    }
}

#[tokio::test]
async fn the_whole_request_may_have_a_limit() {
    let (beginning, _) = body("anthropic-messages");
    for reply in [
        Reply::default().ending(Ending::Silent),
        Reply::stream(&[&beginning]).ending(Ending::KeepOpen),
        Reply::stream(&[&beginning, b"event: ping\ndata: {\"type\":\"ping\"}\n\n"])
            .ending(Ending::Endless),
        Reply::new(503, "").header("retry-after", "50"),
    ] {
        let server = Server::start(vec![reply]);
        let mut request = plain("anthropic-messages", &server.base);
        request.options.timeouts.total = Some(Duration::from_millis(300));
        request.options.retry.max_retries = 2;
        let message = end(request).await;
        let text = message.error_message.as_deref();
        assert_eq!(text, Some("Request not finished after 0.3 s (timed out)"));
        assert!(pinion_llm::is_retryable(&message));
    }
}

#[tokio::test]
async fn a_timeout_of_zero_is_none() {
    let (_, whole) = body("anthropic-messages");
    let server = Server::start(vec![Reply::stream(&[&whole])]);
    let mut request = plain("anthropic-messages", &server.base);
    let timeouts = &mut request.options.timeouts;
    (timeouts.connect, timeouts.first_byte, timeouts.idle) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    assert_eq!(end(request).await.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn a_server_that_wants_too_long_a_wait_fails_at_once() {
    let reply =
        Reply::new(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "120");
    let server = Server::start(vec![reply]);
    let mut request = plain("openai-completions", &server.base);
    request.options.retry.max_retries = 2;
    let message = end(request).await;
    let text = message.error_message.as_deref();
    assert_eq!(
        text,
        Some("Server requested 120s retry delay (max: 60s). 429 slow down")
    );
    assert!(pinion_llm::is_retryable(&message));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn waiting_for_the_next_attempt_can_be_cancelled() {
    let server = Server::start(vec![Reply::new(503, "").header("retry-after", "50")]);
    let mut request = plain("openai-completions", &server.base);
    request.options.retry.max_retries = 2;
    let (cancel, requested) = (request.cancel.clone(), server.requested());
    tokio::spawn(async move {
        requested.await;
        // Nothing shows that the reply has been read; an abort before that has the same result.
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    });
    let message = end(request).await;
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(
        message.error_message.as_deref(),
        Some("Request was aborted.")
    );
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let (beginning, _) = body("openai-completions");
    let mut server = Server::start(vec![Reply::stream(&[&beginning]).ending(Ending::KeepOpen)]);
    let mut stream = HttpProvider::new().stream(plain("openai-completions", &server.base));
    assert!(matches!(stream.next().await, Some(StreamEvent::Start(_))));
    drop(stream);
    assert!(server.client_hung_up().await);
}

#[tokio::test]
async fn the_end_comes_before_the_connection_closes_and_the_connection_is_used_again() {
    for api in [
        "anthropic-messages",
        "openai-completions",
        "openai-responses",
    ] {
        let (_, whole) = body(api);
        let server = Server::start(vec![
            Reply::stream(&[&whole]),
            Reply::stream(&[&whole]).ending(Ending::KeepOpen),
        ]);
        let provider = HttpProvider::new();
        // The rest of a response is drained in another task, so the next request may be too early to use its connection.
        for _ in 0..20 {
            let mut stream = provider.stream(plain(api, &server.base));
            let mut last = None;
            while let Some(event) = stream.next().await {
                last = Some(event);
            }
            let Some(StreamEvent::End(message)) = last else {
                panic!("no end")
            };
            assert_eq!(message.stop_reason, StopReason::Stop, "{api}");
            if server.connections() < server.requests().len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(server.connections() < server.requests().len(), "{api}");
    }
}

#[tokio::test]
async fn error_texts_never_hold_keys() {
    const KEY: &str = "sk-very-secret-key";
    let body = json!({"error": {"message": format!("bad key {KEY} and token tok-abcdefgh")}});
    for api in APIS {
        let server = Server::start(vec![Reply::new(401, &body.to_string())]);
        let mut request = plain(api, &server.base);
        request.options.api_key = Some(Secret::from(KEY.to_owned()));
        request
            .options
            .headers
            .insert("X-Extra-Token".into(), "tok-abcdefgh".into());
        let text = end(request).await.error_message.unwrap();
        assert!(text.contains("bad key *** and token ***"), "{api}: {text}");
        assert!(
            server.requests()[0].contains(KEY),
            "{api}: the key must be sent"
        );
    }
}

#[tokio::test]
async fn redirects_to_another_host_are_not_followed() {
    let other = Server::start(vec![Reply::new(200, "")]);
    let target = format!("{}/v1/messages", other.base);
    let server = Server::start(vec![Reply::new(307, "moved").header("location", &target)]);
    let message = end(plain("anthropic-messages", &server.base)).await;
    assert_eq!(message.error_message.as_deref(), Some("307 moved"));
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn an_unknown_api_and_a_bad_address_end_the_answer() {
    let mut unknown = plain("openai-completions", "http://127.0.0.1:9");
    let mut model = (*unknown.model).clone();
    model.api = "carrier-pigeon".into();
    unknown.model = model.into();
    let text = end(unknown).await.error_message.unwrap();
    assert_eq!(text, "No API provider registered for api: carrier-pigeon");
    let message = end(plain("openai-completions", "not an address")).await;
    assert!(
        message.error_message.unwrap().contains("is not a URL"),
        "bad address"
    );
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_reported() {
    let message = end(plain("openai-completions", "http://no-such-host.invalid")).await;
    let text = message.error_message.as_deref().unwrap();
    assert!(
        text.starts_with("Connection error. ") && text.len() > 20,
        "{text}"
    );
    assert!(pinion_llm::is_retryable(&message));
}

#[tokio::test]
async fn deltas_arrive_one_by_one_as_they_are_sent() {
    let frames: Vec<Vec<u8>> = (0..50)
        .map(|n| {
            let delta = json!({"choices": [{"delta": {"content": format!("w{n} ")}}]});
            format!("data: {delta}\n\n").into_bytes()
        })
        .chain([br#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_vec()])
        .collect();
    let pieces: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
    let server = Server::start(vec![Reply::stream(&pieces)]);
    let events = ask(plain("openai-completions", &server.base), None).await;
    let deltas = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::Delta { .. }));
    assert_eq!(deltas.count(), 50);
}

#[tokio::test]
async fn an_answer_that_is_compressed_all_the_same_is_read() {
    let body = std::fs::read(vectors().join("openai-completions/01-text-plain.sse.gz")).unwrap();
    let reply = Reply::stream(&[&body]).header("content-encoding", "gzip");
    let server = Server::start(vec![reply]);
    let message = end(plain("openai-completions", &server.base)).await;
    assert_eq!(
        message.stop_reason,
        StopReason::Stop,
        "{:?}",
        message.error_message
    );
    assert!(server.requests()[0].contains("accept-encoding: identity"));
}
