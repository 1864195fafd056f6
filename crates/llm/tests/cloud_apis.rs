//! Requests and answers of Bedrock, of ChatGPT subscriptions, of Azure and of Vertex AI, as recorded with pi 1.5.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::StreamExt;
use pinion_cloud::aws::AwsCredentials;
use pinion_llm::{
    CloudIdentity, Environment, HttpProvider, Provider, Request, ResponseDecoder, StreamEvent,
    build_request,
};
use pinion_message::{AssistantMessage, Secret};
use serde_json::{Value, json};
use support::expectation::{ErrorText, Expectation, check};
use support::server::{Ending, Reply, Server};
use support::{context, files, hello, images_after_results, read, request, vectors};

/// A request as a vector describes it, with its environment.
fn of_vector(vector: &Value, context: &Value, base: &str) -> Request {
    let mut vector = vector.clone();
    if base != "http://test"
        && vector["model"]["baseUrl"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    {
        vector["model"]["baseUrl"] = json!(base);
    }
    let vector = &vector;
    let mut built = request(vector, context, base);
    let environment: BTreeMap<String, String> = vector
        .get("environment")
        .map(|it| serde_json::from_value(it.clone()).unwrap())
        .unwrap_or_default();
    let variable = |name: &str| environment.get(name).cloned();
    let key = vector["options"]["apiKey"].as_str().map(str::to_owned);
    let options = &mut built.options;
    match vector["model"]["api"].as_str().unwrap() {
        "bedrock-converse-stream" => {
            let key = key.or_else(|| variable("AWS_BEARER_TOKEN_BEDROCK"));
            options.api_key = key.map(Secret::from);
            let id = variable("AWS_ACCESS_KEY_ID").unwrap_or_else(|| "dummy-access-key".into());
            let secret =
                variable("AWS_SECRET_ACCESS_KEY").unwrap_or_else(|| "dummy-secret-key".into());
            let keys = AwsCredentials::new(&id, &secret, variable("AWS_SESSION_TOKEN").as_deref());
            options.identity = Some(CloudIdentity::Aws {
                keys: options.api_key.is_none().then_some(keys),
                profile_region: None,
            });
        }
        _ => {
            if let Some(key) = key {
                options.api_key = Some(Secret::from(key));
            }
        }
    }
    options.environment = Environment::Fixed(environment);
    built
}

/// Texts whose wording differs from the captured requests.
const FILLERS: [(&str, &str); 5] = [
    ("msg_pi_1_1", "msg_1"),
    ("Tool result image:", "Images from the tool results above:"),
    // Ids that the program makes up.
    ("\"msg_pi_", "\"msg_"),
    (
        "(image omitted: model does not support images)",
        "[image left out: this model cannot see images]",
    ),
    (
        "(tool image omitted: model does not support images)",
        "[tool image left out: this model cannot see images]",
    ),
];

fn in_our_words(expected: &Value) -> Value {
    let mut text = expected.to_string();
    for (theirs, ours) in FILLERS {
        text = text.replace(theirs, ours);
    }
    serde_json::from_str(&text).unwrap()
}

fn path(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap();
    &rest[rest.find('/').unwrap()..]
}

/// Compares a request with the captured one, apart from `ignored` headers.
fn compare(name: &str, built: &pinion_llm::HttpRequest, expected: &Value, ignored: &[&str]) {
    let captured = expected["path"].as_str().unwrap();
    match captured.starts_with("http") {
        true => assert_eq!(built.url, captured, "{name}"),
        false => assert_eq!(path(&built.url), captured, "{name}"),
    }
    let mut headers: BTreeMap<String, String> =
        serde_json::from_value(expected["headers"].clone()).unwrap();
    let mut sent: BTreeMap<String, String> = built.headers.iter().cloned().collect();
    for name in ignored {
        headers.remove(*name);
        sent.remove(*name);
    }
    assert_eq!(sent, headers, "{name}");
    let body: Value = serde_json::from_slice(&built.body).unwrap();
    let expected = in_our_words(&expected["body"]);
    if body != expected {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        panic!(
            "{name}\nsent {}\nexpected {}",
            pretty(&body),
            pretty(&expected)
        );
    }
}

fn check_folder(folder: &str, ignored: &[&str], skip: &[&str]) -> usize {
    let mut checked = 0;
    for file in files(&format!("requests/{folder}"), ".json") {
        let vector = read(&file);
        let name = vector["scenario"].as_str().unwrap();
        if skip.iter().any(|part| name.contains(part)) {
            continue;
        }
        let built = build_request(&of_vector(&vector, &context(&vector), "http://test"));
        match vector.get("error").filter(|error| !error.is_null()) {
            Some(_) => assert!(built.is_err(), "{name}"),
            None => compare(name, &built.unwrap(), &vector["request"], ignored),
        }
        checked += 1;
    }
    checked
}

const SIGNATURE: [&str; 4] = [
    "authorization",
    "host",
    "x-amz-date",
    "x-amz-content-sha256",
];

#[test]
fn requests_to_bedrock() {
    // Strict tools: no tool of pinion asks for them. Signatures have a test of their own.
    let checked = check_folder(
        "bedrock-converse-stream",
        &[],
        &["32-strict", "40-sigv4", "41-sigv4", "42-sigv4", "43-skip"],
    );
    assert_eq!(checked, 28);
    let ignored = [&SIGNATURE[..], &["x-amz-security-token"]].concat();
    let others: Vec<_> = files("requests/bedrock-converse-stream", ".json");
    for file in others
        .iter()
        .filter(|file| file.to_string_lossy().contains("/4"))
    {
        let vector = read(file);
        let name = vector["scenario"].as_str().unwrap();
        let built = build_request(&of_vector(&vector, &context(&vector), "http://test")).unwrap();
        compare(name, &built, &vector["request"], &ignored);
    }
}

#[tokio::test]
async fn requests_to_bedrock_are_signed_when_they_are_sent() {
    for name in [
        "40-sigv4-static-keys",
        "41-sigv4-session-token-custom-header",
        "42-sigv4-arn-model",
        "43-skip-auth",
    ] {
        let file = vectors().join(format!("requests/bedrock-converse-stream/{name}.json"));
        let vector = read(&file);
        let body = std::fs::read(vectors().join("bedrock/01-text.bin")).unwrap();
        let server = Server::start(vec![Reply::stream(&[&body])]);
        let message = end(of_vector(&vector, &context(&vector), &server.base)).await;
        assert_eq!(message.error_message, None, "{name}");
        let seen = &server.requests()[0];
        let header = |name: &str| {
            let line = seen
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_default().to_owned()
        };
        let captured = &vector["request"]["headers"];
        let (sent, recorded) = (
            header("authorization"),
            captured["authorization"].as_str().unwrap(),
        );
        let scope = |text: &str| {
            let parts: Vec<&str> = text.split(['=', '/', ',']).collect();
            (
                parts[1].to_owned(),
                parts[3].to_owned(),
                parts[4].to_owned(),
            )
        };
        assert_eq!(scope(&sent), scope(recorded), "{name}: {sent}");
        assert!(
            sent.contains("SignedHeaders=content-type;host;x-amz-date"),
            "{name}: {sent}"
        );
        assert_eq!(
            header("x-amz-security-token"),
            captured["x-amz-security-token"]
                .as_str()
                .unwrap_or_default()
        );
        assert_eq!(
            header("x-extra"),
            captured["x-extra"].as_str().unwrap_or_default()
        );
        assert!(
            !seen.contains("x-amz-evil") && !seen.contains("dropped"),
            "{seen}"
        );
        for secret in ["wJalrXUtnFEMI", "dummy-secret-key"] {
            assert!(!seen.contains(secret));
        }
    }
}

#[test]
fn requests_of_chatgpt_subscriptions() {
    // The name of the program and the compression are pinion's own.
    let checked = check_folder(
        "openai-codex-responses",
        &["originator", "content-encoding"],
        &[],
    );
    assert_eq!(checked, 23);
}

#[test]
fn requests_to_azure() {
    // The reference damages the query of another host.
    let checked = check_folder("azure-openai-responses", &[], &["34-base-other-host"]);
    assert_eq!(checked, 12);
}

#[test]
fn requests_to_vertex() {
    let mut checked = 0;
    for file in files("requests/google-vertex", ".json") {
        let vector = read(&file);
        let built = build_request(&of_vector(&vector, &context(&vector), "http://test")).unwrap();
        let mut expected = vector["request"].clone();
        expected["body"]["contents"] = images_after_results(&expected["body"]["contents"]);
        compare(vector["scenario"].as_str().unwrap(), &built, &expected, &[]);
        checked += 1;
    }
    assert_eq!(checked, 10);
}

#[test]
fn application_default_credentials_are_sent_as_a_bearer_token() {
    let mut checked = 0;
    for line in include_str!("vectors/vertex-adc.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let file = &files("requests/google-vertex", "01-basic-off.json")[0];
        let mut vector = read(file);
        vector["model"]["baseUrl"] = case["baseUrl"].clone();
        vector["environment"] = case["environment"].clone();
        let mut request = of_vector(&vector, &context(&vector), "http://test");
        request.options.api_key = None;
        let quota = case["credentialsFile"]["quota_project_id"].as_str();
        request.options.identity = Some(CloudIdentity::Google {
            token: Secret::from("ya29.TOKEN"),
            quota_project: quota.map(str::to_owned),
        });
        let built = build_request(&request);
        let requests = case["requests"].as_array().unwrap();
        let Some(expected) = requests.get(1) else {
            if requests.is_empty() {
                assert_eq!(built.unwrap_err(), case["error"].as_str().unwrap());
            }
            continue;
        };
        let built = built.unwrap();
        assert_eq!(built.url, expected["url"].as_str().unwrap());
        let header = |name: &str| {
            built
                .headers
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        for name in ["authorization", "x-goog-user-project", "x-goog-api-key"] {
            assert_eq!(header(name), expected["headers"][name].as_str(), "{name}");
        }
        checked += 1;
    }
    assert_eq!(checked, 5);
}

#[test]
fn a_chatgpt_login_leaves_out_what_the_server_refuses() {
    let file = vectors().join("requests/logins/openai-chatgpt-basic.json");
    let vector = read(&file);
    let built = build_request(&of_vector(&vector, &context(&vector), "http://test")).unwrap();
    let body: Value = serde_json::from_slice(&built.body).unwrap();
    for member in ["max_output_tokens", "temperature", "prompt_cache_retention"] {
        assert!(body.get(member).is_none(), "{member}: {body}");
    }
    assert_eq!(body["store"], json!(false));
    let mut with_key = of_vector(&vector, &context(&vector), "http://test");
    with_key.options.api_key = Some(Secret::from("sk-key"));
    let body: Value = serde_json::from_slice(&build_request(&with_key).unwrap().body).unwrap();
    for member in ["max_output_tokens", "temperature", "prompt_cache_retention"] {
        assert!(body.get(member).is_some(), "{member}: {body}");
    }
}

#[test]
fn a_workload_sends_its_token_as_a_bearer_token() {
    let file = vectors().join("requests/logins/anthropic-auth-token-header.json");
    let vector = read(&file);
    let mut request = of_vector(&vector, &context(&vector), "http://test");
    request.options.headers.clear();
    request.options.api_key = Some(Secret::from("sk-ant-wif"));
    request.options.identity = Some(CloudIdentity::Workload);
    let built = build_request(&request).unwrap();
    let headers: BTreeMap<_, _> = built.headers.into_iter().collect();
    assert_eq!(headers["authorization"], "Bearer sk-ant-wif");
    assert!(headers["anthropic-beta"].starts_with("oauth-2025-04-20"));
    assert!(!headers.contains_key("x-api-key"));
    // A gateway's token is a header of the caller.
    let mut request = of_vector(&vector, &context(&vector), "http://test");
    request.options.api_key = None;
    let headers: BTreeMap<_, _> = build_request(&request)
        .unwrap()
        .headers
        .into_iter()
        .collect();
    assert_eq!(headers["authorization"], "Bearer gw-token");
    assert!(!headers.contains_key("x-api-key"));
}

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

/// The expectation of a response vector of version 1.5.
fn expected(folder: &str, name: &str, vector: &Value) -> Expectation {
    let mut events: Vec<Value> = vector["events"].as_array().unwrap().clone();
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        event.remove("partial");
        if let Some(call) = event.get_mut("toolCall").and_then(Value::as_object_mut) {
            call.remove("argumentsError");
        }
    }
    let mut message = vector["message"].clone();
    let members = message.as_object_mut().unwrap();
    let error = members.remove("errorMessage").unwrap_or(Value::Null);
    for newer in ["rawStopReason", "diagnostics", "durationMs", "endTurn"] {
        members.remove(newer);
    }
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("argumentsError");
    }
    let usage = message["usage"].as_object_mut().unwrap();
    for newer in ["reasoning", "cacheWrite1h"] {
        usage.remove(newer);
    }
    usage["cost"]
        .as_object_mut()
        .unwrap()
        .remove("totalFromProvider");
    let error = match (folder, name) {
        (_, "52-abort-mid-stream") => ErrorText::Contains("Request was aborted"),
        (_, "17-cut-mid-frame") => ErrorText::Contains("Truncated event stream"),
        (_, "18-bad-message-crc" | "19-bad-prelude-crc") => ErrorText::Contains("checksum"),
        (_, "48-http-gateway-plain") => ErrorText::Contains("403 Forbidden by gateway"),
        ("codex", "11-bad-json") => ErrorText::Contains("Could not parse an event"),
        // The recorded clock stood still.
        ("codex", "20-http-usage-limit") => {
            ErrorText::Contains("You have hit your ChatGPT usage limit (plus plan). Try again in ~")
        }
        ("codex", "26-http-429-long-retry-after") => {
            ErrorText::Contains("Server requested 3600s retry delay (max: 60s)")
        }
        _ => ErrorText::Exactly(error),
    };
    Expectation {
        events,
        message,
        error,
    }
}

fn body(folder: &str, response: &Value) -> Vec<u8> {
    std::fs::read(
        vectors()
            .join(folder)
            .join(response["bodyFile"].as_str().unwrap()),
    )
    .unwrap()
}

fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    name.trim_end_matches(".expected.json").to_owned()
}

/// The vectors of a folder that pinion's tools can reach.
fn cases(folder: &str) -> Vec<(String, Value)> {
    let files = files(folder, ".expected.json");
    let cases = files.iter().map(|file| (name_of(file), read(file)));
    // No tool of pinion asks for strict sampling.
    cases.filter(|(name, _)| !name.starts_with("51-")).collect()
}

fn response_request(vector: &Value, folder: &str, base: &str) -> Request {
    let mut request = of_vector(vector, &hello(), base);
    request.options.retry.max_retries =
        vector["options"]["maxRetries"].as_u64().unwrap_or_default() as u32;
    request.options.api_key = Some(Secret::from(match folder {
        "codex" => {
            "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.s"
        }
        _ => "bearer-token",
    }));
    request
}

async fn replay(folder: &str, count: usize) {
    let cases = cases(folder);
    assert_eq!(cases.len(), count);
    for (name, vector) in cases {
        let replies = vector["responses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|response| {
                let body = body(folder, response);
                let size = vector["chunkBytes"].as_u64().unwrap_or(u64::MAX) as usize;
                let headers = response.get("headers").and_then(Value::as_object);
                Reply {
                    status: response["status"].as_u64().unwrap() as u16,
                    headers: headers
                        .into_iter()
                        .flatten()
                        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                        .collect(),
                    pieces: body
                        .chunks(size.min(body.len()).max(1))
                        .map(<[u8]>::to_vec)
                        .collect(),
                    ending: match vector["keepOpen"] == true {
                        true => Ending::KeepOpen,
                        false => Ending::Complete,
                    },
                }
            });
        let server = Server::start(replies.collect());
        let request = response_request(&vector, folder, &server.base);
        let events = ask(request, vector["abortAfterEvents"].as_u64()).await;
        check(&name, &events, &expected(folder, &name, &vector));
        assert_eq!(
            server.requests().len() as u64,
            vector["requestsSeen"].as_u64().unwrap(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn bedrock_vectors_over_a_real_server() {
    replay("bedrock", 43).await;
}

#[tokio::test]
async fn codex_vectors_over_a_real_server() {
    replay("codex", 22).await;
}

/// The events and the message as text, without the times.
fn summary(request: &Request, pieces: &[&[u8]]) -> String {
    let mut decoder = ResponseDecoder::new(request).unwrap();
    decoder.begin();
    for piece in pieces {
        decoder.push(piece);
    }
    decoder.finish();
    let mut summary = String::new();
    let mut ends = 0;
    while let Some(event) = decoder.next_event() {
        summary += &match event {
            StreamEvent::Start(_) => "start\n".to_owned(),
            StreamEvent::End(mut message) => {
                ends += 1;
                message.timestamp = 0;
                format!("{}\n", json!(message))
            }
            other => format!("{other:?}\n"),
        };
    }
    assert_eq!(ends, 1, "{summary}");
    summary
}

#[test]
fn streams_cut_at_every_byte_decode_alike() {
    for folder in ["bedrock", "codex"] {
        for (name, vector) in cases(folder) {
            let response = vector["responses"].as_array().unwrap().last().unwrap();
            if response["status"] != 200 {
                continue;
            }
            let request = response_request(&vector, folder, "http://test");
            let body = body(folder, response);
            let whole = summary(&request, &[&body]);
            let single: Vec<&[u8]> = body.chunks(1).collect();
            assert_eq!(summary(&request, &single), whole, "{name}");
            for cut in 0..body.len() {
                let (head, tail) = body.split_at(cut);
                assert_eq!(summary(&request, &[head, tail]), whole, "{name} at {cut}");
                // A body that ends there ends once, and never as a success with half of a frame.
                summary(&request, &[head]);
            }
        }
    }
}

#[tokio::test]
async fn error_texts_of_clouds_hold_no_secret() {
    let (_, vector) = cases("bedrock").remove(0);
    let text =
        json!({"message": "bad token SECRET-SESSION-TOKEN and key SECRET-ACCESS-KEY"}).to_string();
    let server = Server::start(vec![Reply::new(400, &text)]);
    let mut request = response_request(&vector, "bedrock", &server.base);
    request.options.api_key = None;
    request.options.identity = Some(CloudIdentity::Aws {
        keys: Some(AwsCredentials::new(
            "AKID",
            "SECRET-ACCESS-KEY",
            Some("SECRET-SESSION-TOKEN"),
        )),
        profile_region: None,
    });
    assert!(!format!("{:?}", request.options.identity).contains("SECRET"));
    let message = end(request).await;
    assert_eq!(
        message.error_message.as_deref(),
        Some("400 bad token *** and key ***")
    );
    assert!(server.requests()[0].contains("x-amz-security-token: SECRET-SESSION-TOKEN"));
}
