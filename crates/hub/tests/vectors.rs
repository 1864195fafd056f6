//! The recorded exchanges in `tests/pinix/connect`, replayed against a hub with the clips that they call.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Answer, CLIP, Running, python_clip, request};
use pinion_access::Mode;
use pinion_hub::Settings;
use serde_json::{Value, json};

/// The recorded hub admits every caller, which pinion's does only on request.
fn hub() -> Running {
    let settings = Settings {
        any_origin: true,
        ..Settings::default()
    };
    let hub = Running::with(Mode::OpenLocal, settings);
    let clip = python_clip(CLIP);
    hub.install("todo", clip.path());
    hub.install("feed", clip.path());
    hub
}

fn vector(name: &str) -> Value {
    let file = format!(
        "{}/../../tests/pinix/connect/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The body of a message: given as text, as bytes, or as frames.
fn body(message: &Value) -> Vec<u8> {
    if let Some(text) = message["body"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(hex) = message["body_hex"].as_str() {
        return unhex(hex);
    }
    let mut bytes = Vec::new();
    for frame in message["frames"].as_array().into_iter().flatten() {
        let payload = frame[1].to_string();
        bytes.push(frame[0].as_u64().unwrap() as u8);
        bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        bytes.extend_from_slice(payload.as_bytes());
    }
    bytes
}

fn ask(hub: &Running, asked: &Value) -> Answer {
    let headers: Vec<(&str, &str)> = asked["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "authorization")
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    let method = asked["method"].as_str().unwrap_or("POST");
    let path = asked["path"].as_str().unwrap();
    request(hub.address, method, path, &headers, &body(asked))
}

fn check(what: &str, expected: &Value, answer: &Answer) {
    let status = expected["status"].as_u64().unwrap();
    assert_eq!(u64::from(answer.status), status, "{what}: {answer:?}");
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        assert_eq!(
            answer.header(name),
            value.as_str(),
            "{what}: {name} of {answer:?}"
        );
    }
    if expected.get("body_hex").is_some() || expected.get("body").is_some() {
        let wanted = body(expected);
        let same = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
        let texts = (
            String::from_utf8_lossy(&wanted),
            String::from_utf8_lossy(&answer.body),
        );
        assert!(
            wanted == answer.body
                || (same(&wanted).is_some() && same(&wanted) == same(&answer.body)),
            "{what}: {texts:?}"
        );
    }
    if let Some(wanted) = expected.get("body_json") {
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["error"]["code"], wanted["error"]["code"], "{what}");
        assert!(body["error"]["message"].is_string(), "{what}");
    }
}

fn play(hub: &Running, name: &str, skip: &[&str]) {
    let exchanges = vector(name)["exchanges"].clone();
    let first = &exchanges[0]["response"];
    let mut played = 0;
    for exchange in exchanges.as_array().unwrap() {
        let case = exchange["case"].as_str().unwrap_or_default();
        if skip.contains(&case) {
            continue;
        }
        let (asked, expected) = (&exchange["request"], &exchange["response"]);
        let expected = match expected.get("same_as") {
            Some(_) => first,
            None => expected,
        };
        check(
            &format!("{name}: {case} {asked}"),
            expected,
            &ask(hub, asked),
        );
        played += 1;
    }
    assert_eq!(played + skip.len(), exchanges.as_array().unwrap().len());
}

#[test]
fn calls_that_want_one_answer() {
    play(&hub(), "c01-invoke-unary", &[]);
}

#[test]
fn streamed_answers_in_all_forms() {
    play(&hub(), "c02-invoke-stream-json", &[]);
}

/// The skipped ones have their own tests: they need another hub or another peer.
#[test]
fn failures_in_each_form() {
    let elsewhere = [
        "no token where one is required",
        "clip token tries to install",
        "clip offline",
    ];
    play(&hub(), "c03-error-forms", &elsewhere);
}

#[test]
fn a_missing_token_is_reported() {
    let hub = Running::start(Mode::Secured);
    let exchanges = vector("c03-error-forms")["exchanges"].clone();
    let of = |case: &str| {
        let all = exchanges.as_array().unwrap();
        all.iter().find(|it| it["case"] == case).unwrap().clone()
    };
    let case = of("no token where one is required");
    check("no token", &case["response"], &ask(&hub, &case["request"]));
}

#[test]
fn files_over_the_hub() {
    play(&hub(), "c07-data", &[]);
}

#[test]
fn manifests_under_both_names() {
    let hub = hub();
    let (status, first) = hub.call("GetClipManifest", r#"{"clipName":"todo"}"#);
    let (again, second) = hub.call("GetManifest", r#"{"clip_name":"todo"}"#);
    assert_eq!((status, again), (200, 200));
    assert_eq!(first, second);
    let manifest = &first["manifest"];
    assert_eq!(manifest["name"], "todo");
    assert_eq!(manifest["package"], "local/todo");
    assert_eq!(
        manifest["commands"][3],
        json!({"name": "list", "input": "{\"type\":\"object\"}"})
    );
}

#[test]
fn hub_info_requires_no_token() {
    let hub = Running::start(Mode::Secured);
    for token in [None, Some("pnx_of_another_hub_altogether_0123456789")] {
        let (status, info) = hub.call_as(token, "HubInfo", "{}");
        assert_eq!(status, 200, "{info}");
        let exchanges = vector("c08-info-logs-manifest")["exchanges"].clone();
        let wanted: Value =
            serde_json::from_str(exchanges[0]["response"]["body"].as_str().unwrap()).unwrap();
        for key in ["mode", "name", "features", "protocol"] {
            assert_eq!(info[key], wanted[key], "{key}");
        }
        assert!(info["startedAtUnixMs"].is_string());
        assert_eq!(info["authRequired"], true);
    }
}

#[test]
fn pages_of_a_clip() {
    let hub = hub();
    let clip = python_clip(CLIP);
    std::fs::create_dir(clip.path().join("web")).unwrap();
    std::fs::write(clip.path().join("web/style.css"), "body { color: red; }\n").unwrap();
    std::fs::write(clip.path().join("web/index.html"), "<!doctype html>start").unwrap();
    hub.install("todo", clip.path());
    play(&hub, "c06-clip-web", &[]);
    let page = request(hub.address, "GET", "/clips/todo/", &[], b"");
    assert_eq!(page.header("content-security-policy"), None);
}
