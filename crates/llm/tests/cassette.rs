//! Answers that are recorded from a server on loopback and replayed without it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{
    CassetteProvider, HttpProvider, Provider, Providers, Recorder, Registry, RegistryOptions,
    Request, StreamEvent, resolve_model,
};
use pinion_message::{AssistantMessage, Block, Message, Secret, StopReason, UserMessage};
use serde_json::Value;
use support::server::{Ending, Reply, Server};
use support::{files, hello, read, request, vectors};

const ANSWER: &[u8] = include_bytes!("vectors/anthropic-messages/02-thinking-then-text.sse");

fn registry() -> Registry {
    Registry::load(Path::new("/nonexistent"), RegistryOptions::default()).0
}

/// A request to a server with Anthropic's protocol.
fn claude(base: &str, text: &str) -> Request {
    let vector = read(&vectors().join("anthropic-messages/02-thinking-then-text.expected.json"));
    let mut request = request(&vector, &hello(), base);
    request.messages = vec![Arc::new(Message::User(UserMessage::now(vec![
        Block::text(text),
    ])))];
    request
}

/// The same question, for a cassette.
fn replayed(mut request: Request, path: &Path) -> Request {
    let name = format!("cassette:{}", path.display());
    request.model = resolve_model(&registry(), None, &name).unwrap().model;
    request.options.api_key = None;
    request
}

async fn events(provider: &dyn Provider, request: Request) -> Vec<StreamEvent> {
    provider.stream(request).collect().await
}

async fn end(provider: &dyn Provider, request: Request) -> AssistantMessage {
    match events(provider, request).await.pop() {
        Some(StreamEvent::End(message)) => message,
        other => panic!("no end: {other:?}"),
    }
}

/// The event without model, provider, time, and ids that are made of the time.
fn without_names(mut event: StreamEvent) -> String {
    if let StreamEvent::Start(message) | StreamEvent::End(message) = &mut event {
        message.provider.clear();
        message.model.clear();
        message.timestamp = 0;
        message.response_model = None;
    }
    let made_up = regex::Regex::new(r"_\d{13}_\d+").unwrap();
    made_up.replace_all(&format!("{event:?}"), "").into_owned()
}

#[tokio::test]
async fn every_recorded_answer_is_replayed_event_by_event() {
    let directory = tempfile::tempdir().unwrap();
    let mut replays = 0;
    for api in [
        "anthropic-messages",
        "openai-completions",
        "openai-responses",
        "google-generative-ai",
    ] {
        for (number, file) in files(api, ".expected.json").iter().enumerate() {
            let vector = read(file);
            let responses = vector["responses"].as_array().unwrap();
            if responses
                .iter()
                .any(|response| response["keepOpen"] == true)
            {
                continue;
            }
            let server = Server::start(
                responses
                    .iter()
                    .map(|response| reply(api, response))
                    .collect(),
            );
            let path = directory.path().join(format!("{api}-{number}.jsonl"));
            let asked = || request(&vector, &hello(), &server.base);
            let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
            let recorded: Vec<String> = events(&recording, asked())
                .await
                .into_iter()
                .map(without_names)
                .collect();
            let asked = replayed(asked(), &path);
            drop(server);
            let again: Vec<String> = events(&Providers::default(), asked)
                .await
                .into_iter()
                .map(without_names)
                .collect();
            assert_eq!(again, recorded, "{}", file.display());
            replays += 1;
        }
    }
    assert!(replays > 60, "{replays}");
}

fn reply(api: &str, response: &Value) -> Reply {
    let body = std::fs::read(
        vectors()
            .join(api)
            .join(response["bodyFile"].as_str().unwrap()),
    )
    .unwrap();
    let mut reply = Reply {
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        // Cut at unusual positions.
        pieces: body.chunks(37).map(<[u8]>::to_vec).collect(),
        ..Reply::default()
    };
    for (name, value) in response["headers"].as_object().unwrap() {
        reply = reply.header(name, value.as_str().unwrap());
    }
    reply
}

#[tokio::test]
async fn answers_go_to_the_words_they_were_recorded_for_and_then_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.jsonl");
    let answers = ["one", "two", "three"].map(|name| {
        let text = String::from_utf8(ANSWER.to_vec()).unwrap();
        Reply::stream(&[text
            .replace("msg_01TestVector", &format!("msg_{name}"))
            .as_bytes()])
    });
    for (text, answer) in ["one", "two", "three"].into_iter().zip(answers) {
        let server = Server::start(vec![answer]);
        let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
        end(&recording, claude(&server.base, text)).await;
    }
    let providers = Providers::default();
    let ask =
        async |text: &str| end(&providers, replayed(claude("http://nowhere", text), &path)).await;
    assert_eq!(ask("three").await.response_id.as_deref(), Some("msg_three"));
    assert_eq!(
        ask("something else").await.response_id.as_deref(),
        Some("msg_one")
    );
    assert_eq!(ask("two").await.response_id.as_deref(), Some("msg_two"));
    let over = ask("one").await;
    assert_eq!(over.stop_reason, StopReason::Error);
    assert!(
        over.error_message
            .unwrap()
            .ends_with("it has no more answers.")
    );
}

#[tokio::test]
async fn an_answer_that_broke_off_or_was_left_is_replayed_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.jsonl");
    // In the middle of an event.
    let half = &ANSWER[..ANSWER.len() / 2];
    let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
    let broken = Server::start(vec![Reply::stream(&[half]).ending(Ending::Broken)]);
    let recorded = end(&recording, claude(&broken.base, "broken")).await;
    assert_eq!(recorded.error_message.as_deref(), Some("terminated"));

    let endless = Server::start(vec![Reply::stream(&[half]).ending(Ending::KeepOpen)]);
    let asked = claude(&endless.base, "left");
    let cancel = asked.cancel.clone();
    let mut stream = recording.stream(asked);
    while let Some(event) = stream.next().await {
        if matches!(event, StreamEvent::Delta { .. }) {
            cancel.cancel();
        }
    }
    drop(stream);

    let providers = Providers::default();
    let again = end(
        &providers,
        replayed(claude("http://nowhere", "broken"), &path),
    )
    .await;
    assert_eq!(
        (&again.error_message, &again.content),
        (&recorded.error_message, &recorded.content)
    );
    let left = end(
        &providers,
        replayed(claude("http://nowhere", "left"), &path),
    )
    .await;
    assert_eq!(
        left.error_message.as_deref(),
        Some("The recording was cut short")
    );
}

#[tokio::test]
async fn a_cassette_is_private_and_holds_no_key() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.jsonl");
    let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
    let refused = Reply::new(401, "your key sk-planted-1 is wrong");
    let answered = Reply::stream(&[ANSWER]).header("set-cookie", "sk-planted-2");
    for reply in [refused, answered] {
        let server = Server::start(vec![reply]);
        let mut request = claude(&server.base, "hello");
        request.options.api_key = Some(Secret::from("sk-planted-1"));
        request
            .options
            .headers
            .insert("X-Token".into(), "sk-planted-3".into());
        end(&recording, request).await;
    }
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains("sk-planted"), "{text}");

    let name = format!("cassette:{}", path.display());
    let model = resolve_model(&registry(), None, &name).unwrap().model;
    assert_eq!(
        (model.provider.as_str(), model.api.as_str()),
        ("cassette", "anthropic-messages")
    );
    assert!(registry().check_credentials(&model).is_ok());
    assert!(registry().find("cassette", &model.id).is_some());
}

#[test]
fn a_file_that_is_not_a_cassette_is_reported() {
    let error = resolve_model(&registry(), None, "cassette:/nonexistent/x").unwrap_err();
    assert_eq!(error.code(), "unreadable_cassette");
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, words) in [
        ("", "not the header"),
        ("{}", "line 1 is neither"),
        ("{\"type\":\"exchange\"}", "not the header"),
        ("not json", "line 1 is not JSON"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let name = format!("cassette:{}", file.path().display());
        let error = resolve_model(&registry(), None, &name)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_replay_can_be_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.jsonl");
    let server = Server::start(vec![Reply::stream(&[ANSWER])]);
    let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
    end(&recording, claude(&server.base, "one")).await;
    let request = replayed(claude("http://nowhere", "one"), &path);
    request.cancel.cancel();
    assert_eq!(
        end(&Providers::default(), request).await.stop_reason,
        StopReason::Aborted
    );
}

#[tokio::test]
async fn a_paced_replay_obeys_the_limits_of_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tape.jsonl");
    let server = Server::start(vec![Reply::stream(&[ANSWER])]);
    let recording = HttpProvider::recording(Recorder::open(&path).unwrap());
    end(&recording, claude(&server.base, "one")).await;
    let recorded = std::fs::read_to_string(&path).unwrap();
    let at = regex::Regex::new(r#""chunks":\[.*?\]\]"#).unwrap();
    let begins = 200;
    for (name, chunks) in [
        (
            "late",
            format!("[[0,{begins}],[18446744073709551615,9999]]"),
        ),
        ("silent", "[[18446744073709551615,9999]]".to_owned()),
    ] {
        let path = directory.path().join(name);
        let edited = at.replace(&recorded, format!("\"chunks\":{chunks}"));
        assert_ne!(edited, recorded);
        for limit in ["total", "wait", "abort"] {
            // A process replays each cassette once.
            let path = path.with_extension(limit);
            std::fs::write(&path, edited.as_bytes()).unwrap();
            let mut request = replayed(claude("http://nowhere", "one"), &path);
            let cancel = request.cancel.clone();
            let timeouts = &mut request.options.timeouts;
            let expected = match limit {
                "total" => {
                    timeouts.total = Some(Duration::from_millis(50));
                    "Request not finished after 0.05 s (timed out)"
                }
                "wait" => {
                    timeouts.first_byte = Duration::from_millis(50);
                    timeouts.idle = Duration::from_millis(50);
                    match name {
                        "late" => "Stream idle timeout: no data for 0.05 s (timed out)",
                        _ => "Request timed out.",
                    }
                }
                _ => {
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        cancel.cancel();
                    });
                    "Request was aborted"
                }
            };
            let paced = CassetteProvider { paced: true };
            let message = tokio::time::timeout(Duration::from_secs(30), end(&paced, request)).await;
            let message = message.unwrap_or_else(|_| panic!("{name} {limit}: no end"));
            assert_eq!(message.error_message.as_deref(), Some(expected), "{name}");
        }
    }
}
