//! The exchanges in `tests/pinix/provider`: the provider's side replayed against a hub. Ids and times are the hub's
//! own.

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::common::{self, Running};
use super::provider::{Received, Stream, Wire};
use super::{aliases, eventually, follow, hub, hub_with, output, unbase64};

fn vector(name: &str) -> Value {
    let file = format!(
        "{}/../../tests/pinix/provider/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn events(vector: &Value) -> Vec<(String, Value)> {
    let events = vector["events"].as_array().unwrap().iter();
    let pair = |event: &Value| {
        let direction = event["dir"].as_str().unwrap().to_owned();
        (direction, event["message"].clone())
    };
    events.map(pair).collect()
}

/// Maps the ids of a vector to the hub's ids.
#[derive(Default)]
struct Ids(HashMap<String, String>);

impl Ids {
    /// Asserts that `came` contains what was expected; it may have further members.
    fn check(&mut self, expected: &Value, came: &Value) {
        if let Err(place) = self.compare("", expected, came) {
            panic!("at {place}:\nexpected {expected}\ncame     {came}");
        }
    }

    fn compare(&mut self, key: &str, expected: &Value, came: &Value) -> Result<(), String> {
        let is_same = match (key, expected, came) {
            ("sessionId" | "requestId", Value::String(expected), Value::String(came)) => {
                let known = self.0.entry(expected.clone()).or_insert(came.clone());
                let id = uuid::Uuid::parse_str(came);
                known == came
                    && id.is_ok_and(|id| id.get_version_num() == 4 && id.to_string() == *came)
            }
            ("sentAtUnixMs" | "timeoutMs", _, Value::String(came)) => {
                came.parse::<i64>().is_ok_and(|it| it > 0)
            }
            (_, Value::Object(expected), Value::Object(came)) => {
                for (key, value) in expected {
                    let came = came.get(key).unwrap_or(&Value::Null);
                    self.compare(key, value, came)
                        .map_err(|place| format!("{key}.{place}"))?;
                }
                true
            }
            (_, Value::Array(expected), Value::Array(came)) if expected.len() == came.len() => {
                for (expected, came) in expected.iter().zip(came) {
                    self.compare(key, expected, came)?;
                }
                true
            }
            ("alias", Value::String(expected), Value::String(came)) if expected.contains('-') => {
                let base = |text: &str| text[..text.len() - 4].to_owned();
                expected.len() == came.len() && base(expected) == base(came)
            }
            _ => expected == came,
        };
        is_same.then_some(()).ok_or_else(|| key.to_owned())
    }

    /// Replaces the vector's ids in a message with the hub's.
    fn translate(&self, message: &Value) -> Value {
        let mut text = message.to_string();
        for (ours, theirs) in &self.0 {
            text = text.replace(ours, theirs);
        }
        serde_json::from_str(&text).unwrap()
    }
}

/// Makes the call that leads to `message`, as its caller would.
fn call(hub: &Running, message: &Value, limit: Option<&'static str>) -> JoinHandle<(u16, Value)> {
    let (method, body) = if let Some(web) = message.get("getClipWebCommand") {
        let body = json!({"clipName": web["clipName"], "path": web["path"],
            "offset": web["offset"], "length": web["length"]});
        ("GetClipWeb", body)
    } else if let Some(data) = message.get("dataCommand") {
        let body = json!({"clipName": data["clipName"], "path": data["path"],
            "operation": data["operation"]});
        ("Data", body)
    } else {
        let command = message.get("invokeCommand").unwrap_or(message);
        let clip = command.get("clipName").or(command.get("alias"));
        let body = json!({"clipName": clip, "command": command["command"],
            "input": command["input"]});
        ("Invoke", body)
    };
    let (address, token) = (hub.address, hub.token.clone());
    std::thread::spawn(move || {
        let headers: Vec<_> = limit
            .map(|it| ("connect-timeout-ms", it))
            .into_iter()
            .collect();
        common::post(address, &token, method, &headers, &body.to_string())
    })
}

fn is_call(message: &Value) -> bool {
    let keys = ["invokeCommand", "getClipWebCommand", "dataCommand"];
    message["type"] == "InvokeRequest" || keys.iter().any(|key| message.get(key).is_some())
}

/// Replays all events. Returns the answers that callers received.
fn play(hub: &Running, stream: &Stream, events: &[(String, Value)]) -> Vec<(u16, Value)> {
    let mut ids = Ids::default();
    let mut calls = Vec::new();
    for (direction, message) in events {
        match direction.as_str() {
            "hub>provider" => {
                if is_call(message) {
                    calls.push(call(hub, message, None));
                }
                ids.check(message, &stream.message());
            }
            "provider>hub" => stream.send(ids.translate(message)),
            other => panic!("{other}"),
        }
    }
    calls.into_iter().map(|call| call.join().unwrap()).collect()
}

#[test]
fn p01_a_typed_provider_registers_and_answers() {
    let (hub, vector) = (hub(), vector("p01-typed-unary"));
    let stream = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
    let mut events = events(&vector);
    // Only pinion's hub sends these after a registration.
    let clips = json!([{"suggested": "browser", "alias": "browser"}]);
    let granted = json!({"type": "ClipsRegistered", "clips": clips});
    events.insert(2, ("hub>provider".into(), granted));
    let answers = play(&hub, &stream, &events);
    assert_eq!(answers[0].0, 200);
    assert_eq!(output(&answers[0].1), vector["client_result"]);
    assert_eq!(aliases(&hub), ["browser"]);
    let (_, manifest) = hub.call("GetClipManifest", r#"{"alias":"browser"}"#);
    let input = manifest["manifest"]["commands"][0]["input"]
        .as_str()
        .unwrap();
    let input: Value = serde_json::from_str(input).unwrap();
    assert_eq!(input["required"], json!(["url"]));
}

#[test]
fn p02_a_registering_provider_answers_over_every_wire() {
    let vector = vector("p02-register-unary");
    for wire in Wire::ALL {
        let hub = hub();
        let stream = Stream::open(&hub, "ProviderStream", wire);
        let answers = play(&hub, &stream, &events(&vector));
        let title = json!({"title": "Example Domain"});
        assert_eq!(output(&answers[0].1), title, "{wire:?}");
    }
}

fn ticks(caller: &Stream) {
    let parts = [caller.message(), caller.message()].map(|part| output(&part));
    assert_eq!(parts, [json!({"tick": 1}), json!({"tick": 2})]);
    assert_eq!(caller.end(), Ok(()));
}

#[test]
fn p03_answers_in_parts_mean_the_same_in_both_spellings() {
    let vector = vector("p03-stream");
    let typed: Vec<Value> = events(&vector).into_iter().map(|(_, it)| it).collect();
    let public = vector["equivalent"].as_array().unwrap();
    let hub = hub();
    let stream = Stream::typed(&hub, "one", json!([{"alias": "feed", "commands": []}]));
    let replay = |hub: &Running, stream: &Stream, messages: &[Value]| {
        let caller = follow(hub, "feed", "monitor");
        let mut ids = Ids::default();
        ids.check(&messages[0], &stream.message());
        for message in &messages[1..] {
            stream.send(ids.translate(message));
        }
        ticks(&caller);
    };
    replay(&hub, &stream, &typed);
    for wire in Wire::ALL {
        let hub = super::hub();
        let stream = Stream::provider(&hub, wire, "two", json!([{"alias": "feed"}]));
        replay(&hub, &stream, public);
    }
}

#[test]
fn p04_a_provider_that_breaks_off_fails_what_was_open() {
    let (hub, vector) = (hub(), vector("p04-disconnect-inflight"));
    let mut stream = Stream::typed(&hub, "one", json!([{"alias": "feed"}]));
    let events = events(&vector);
    let mut ids = Ids::default();
    let caller = follow(&hub, "feed", "monitor");
    ids.check(&events[0].1, &stream.message());
    stream.send(ids.translate(&events[1].1));
    assert_eq!(output(&caller.message()), json!({"tick": 1}));
    let single = call(&hub, &events[2].1, None);
    ids.check(&events[2].1, &stream.message());
    stream.kill();
    let end = caller.end().unwrap_err();
    let expected = ("unavailable".into(), "provider disconnected".into());
    assert_eq!(end, expected);
    let (status, body) = single.join().unwrap();
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")));
    assert_eq!(body["error"]["code"], "UNAVAILABLE");
    eventually("the clip is gone", || aliases(&hub).is_empty());
    let (status, body) = call(&hub, &events[2].1, None).join().unwrap();
    assert_eq!((status, &body["code"]), (503, &json!("unavailable")));
}

#[test]
fn p05_an_alias_that_is_taken_is_refused_or_replaced() {
    let (hub, vector) = (hub(), vector("p05-alias-conflict"));
    let _first = Stream::provider(&hub, Wire::Grpc, "first", json!([{"alias": "browser"}]));
    let events = events(&vector);
    for wire in Wire::ALL {
        let second = Stream::open(&hub, "ProviderStream", wire);
        second.message();
        second.send(events[0].1.clone());
        Ids::default().check(&events[1].1, &second.message());
        assert_eq!(second.came(), Received::End(Ok(())), "{wire:?}");
    }
    let third = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
    play(&hub, &third, &events[4..]);
    let name = aliases(&hub)[1].clone();
    // The provider receives calls under the name it suggested.
    let caller = follow(&hub, &name, "go");
    assert_eq!(third.message()["alias"], "browser");
    drop(caller);
    let again = json!([{"package": "other-browser", "alias": "browser", "version": "2"}]);
    third.send(json!({"type": "RegisterClips", "clips": again}));
    let granted = third.message_with("ClipsRegistered");
    assert_eq!(granted["clips"][0]["alias"], name.as_str());
}

#[test]
fn p06_typed_providers_are_greeted_and_left_when_silent() {
    let hub = hub_with(|limits| {
        limits.heartbeat_interval = Duration::from_millis(150);
        limits.heartbeat_timeout = Duration::from_millis(500);
    });
    let stream = Stream::typed(&hub, "one", json!([{"alias": "feed"}]));
    let events = events(&vector("p06-heartbeat-typed"));
    let started = std::time::Instant::now();
    for _ in 0..6 {
        Ids::default().check(&events[0].1, &stream.message());
        stream.send(events[1].1.clone());
    }
    let time = started.elapsed();
    assert!(time > Duration::from_millis(600), "greetings are answered");
    let expected = ("unavailable".into(), "heartbeat timeout".into());
    assert_eq!(stream.end(), Err(expected));
    assert!(aliases(&hub).is_empty());
}

#[test]
fn p07_greetings_of_registering_providers_are_echoed() {
    for wire in Wire::ALL {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([]));
        for (direction, message) in events(&vector("p07-heartbeat-register")) {
            match direction.as_str() {
                "provider>hub" => stream.send(message),
                "hub>provider" => assert_eq!(stream.message(), message),
                _ => {}
            }
        }
    }
}

fn asking(hub: &Running, method: &str, body: &Value) -> JoinHandle<(u16, Value)> {
    let (address, token) = (hub.address, hub.token.clone());
    let (method, body) = (method.to_owned(), body.to_string());
    std::thread::spawn(move || common::post(address, &token, &method, &[], &body))
}

#[test]
fn p08_a_runtime_installs_and_removes() {
    let vector = vector("p08-install-remove");
    for wire in Wire::ALL {
        let hub = super::hub_only();
        let provider = Stream::provider(&hub, wire, "pinixd-box-9001", json!([]));
        let runtime = Stream::open(&hub, "RuntimeStream", wire);
        let mut ids = Ids::default();
        let mut client: Option<JoinHandle<(u16, Value)>> = None;
        for (direction, message) in events(&vector) {
            match direction.as_str() {
                "runtime>hub (RuntimeStream)" => runtime.send(ids.translate(&message)),
                "hub>runtime (RuntimeStream)" => ids.check(&message, &runtime.message()),
                "provider>hub" => provider.send(ids.translate(&message)),
                asked if asked.starts_with("client>hub ") => {
                    client = Some(asking(&hub, &asked["client>hub ".len()..], &message));
                }
                _ => {
                    let (status, answer) = client.take().unwrap().join().unwrap();
                    assert_eq!(status, 200, "{answer}");
                    ids.check(&message, &answer);
                }
            }
        }
        assert!(aliases(&hub).is_empty());
        let (_, providers) = hub.call("ListProviders", "{}");
        assert_eq!(providers["providers"][0]["acceptsManage"], true);
    }
}

#[test]
fn p08_a_typed_runtime_installs_and_removes() {
    let vector = vector("p08-install-remove");
    let hub = hub();
    let stream = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
    stream.message();
    let register = json!({"type": "RegisterClips", "providerName": "rt", "runtime": true});
    stream.send(register);
    stream.message();
    let steps = vector["typed_equivalent"].as_array().unwrap();
    let wanted = json!({"source": "@acme/todo@0.3.0", "provider": "rt"});
    let adding = asking(&hub, "AddClip", &wanted);
    Ids::default().check(&steps[0], &stream.message());
    stream.send(steps[1].clone());
    let (status, added) = adding.join().unwrap();
    assert_eq!((status, &added["clip"]["name"]), (200, &json!("todo")));
    let removing = asking(&hub, "RemoveClip", &json!({"clipName": "todo"}));
    Ids::default().check(&steps[2], &stream.message_with("RuntimeUninstall"));
    stream.send(steps[3].clone());
    assert_eq!(removing.join().unwrap().0, 200);
    // A failed installation is a log line about the package.
    let failing = asking(&hub, "AddClip", &wanted);
    stream.message_with("RuntimeInstall");
    let line = json!({"type": "Log", "alias": "@acme/todo", "level": "error",
        "message": "no such version"});
    stream.send(line);
    let (status, body) = failing.join().unwrap();
    assert_eq!((status, &body["message"]), (500, &json!("no such version")));
}

#[test]
fn p09_files_are_fetched_from_the_provider() {
    let vector = vector("p09-web-and-data");
    for wire in Wire::ALL {
        let hub = hub();
        let clips = json!([{"alias": "todo", "hasWeb": true}]);
        let stream = Stream::provider(&hub, wire, "one", clips);
        let answers = play(&hub, &stream, &events(&vector));
        let [web, read, stat] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(unbase64(&web.1["content"]), "color:");
        assert_eq!(web.1["totalSize"], "21");
        assert_eq!(web.1["etag"], "\"abc\"");
        assert_eq!(unbase64(&read.1["content"]), "hello");
        assert_eq!(stat.0, 200);
        assert_eq!(stat.1["error"]["code"], "not_found");
    }
}

#[test]
fn p10_calls_that_nobody_waits_for_are_cancelled() {
    let vector = vector("p10-cancel-deadline");
    let events = events(&vector);
    for wire in Wire::ALL {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "feed"}]));
        let mut ids = Ids::default();
        let mut caller = follow(&hub, "feed", "monitor");
        ids.check(&events[0].1, &stream.message());
        caller.kill();
        ids.check(&events[2].1, &stream.message());
        // The late result has no caller.
        stream.send(ids.translate(&events[3].1));
        let late = call(&hub, &events[5].1, Some("300"));
        ids.check(&events[5].1, &stream.message());
        ids.check(&events[7].1, &stream.message());
        let (status, body) = late.join().unwrap();
        assert_eq!((status, &body["code"]), (504, &json!("deadline_exceeded")));
    }
}

#[test]
fn p11_lines_are_logged_and_clips_withdrawn() {
    let vector = vector("p11-log-unregister");
    let typed: Vec<Value> = events(&vector).into_iter().map(|(_, it)| it).collect();
    let public = vector["equivalent"].as_array().unwrap().clone();
    for (messages, is_typed) in [(typed, true), (public, false)] {
        let hub = hub();
        let clips = json!([{"alias": "browser"}]);
        let stream = if is_typed {
            Stream::typed(&hub, "one", clips)
        } else {
            Stream::provider(&hub, Wire::ConnectProto, "one", clips)
        };
        stream.send(messages[0].clone());
        let route = hub.hub.table().get("browser").unwrap();
        let log = route.endpoint.log().unwrap();
        eventually("the line is there", || !log.tail(1).is_empty());
        let line = &log.tail(1)[0];
        assert_eq!(
            (line.level.name(), line.origin.name()),
            ("warn", "provider")
        );
        assert_eq!(&*line.message, "tab crashed");
        stream.send(messages[1].clone());
        eventually("the clip is gone", || aliases(&hub).is_empty());
        // The provider closed its session.
        let command = json!({"alias": "browser", "command": "x", "input": {}});
        assert_eq!(call(&hub, &command, None).join().unwrap().0, 404);
    }
}
