//! Provider names: which session may use one, and the end of the session that had it.

use std::time::Duration;

use serde_json::{Value, json};

use super::provider::{Received, Stream, Wire};
use super::{aliases, base64, hub, invoke};

/// Registers a provider and returns the hub's answer.
fn register(hub: &super::Running, name: &str, clips: Value) -> (Stream, Value) {
    let stream = Stream::open(hub, "ProviderStream", Wire::Grpc);
    stream.message();
    stream.send(json!({"register": {"providerName": name, "clips": clips}}));
    let answer = stream.message()["registerResponse"].clone();
    (stream, answer)
}

#[test]
fn a_refused_registration_replaces_no_session() {
    let hub = hub();
    let old = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let _other = Stream::provider(&hub, Wire::Grpc, "two", json!([{"alias": "b"}]));
    let call = invoke(&hub, "a", "go");
    let id = old.message()["invokeCommand"]["requestId"].clone();
    let (new, answer) = register(&hub, "one", json!([{"alias": "a"}, {"alias": "b"}]));
    assert_eq!(answer["message"], "clip \"b\" already exists");
    assert_eq!(new.came(), Received::End(Ok(())));
    // The earlier session is unchanged, including its running call.
    assert_eq!(aliases(&hub), ["a", "b"]);
    let result = json!({"requestId": id, "output": base64("1"), "done": true});
    old.send(json!({ "invokeResult": result }));
    assert_eq!(call.join().unwrap().0, 200);
    old.send(json!({"clipAdded": {"clip": {"alias": "c"}}}));
    super::eventually("it may still add clips", || aliases(&hub).len() == 3);
    // An accepted registration replaces the session.
    let (_new, answer) = register(&hub, "one", json!([{"alias": "a"}]));
    assert_eq!(answer["accepted"], true);
    assert_eq!(old.end().unwrap_err().0, "unavailable");
    assert_eq!(aliases(&hub), ["a", "b"]);
}

#[test]
fn names_of_the_hub_are_reserved() {
    let hub = hub();
    for name in ["pinixd", " PinixD ", "builtin", "BUILTIN"] {
        let (stream, answer) = register(&hub, name, json!([{"alias": "a"}]));
        let message = answer["message"].as_str().unwrap();
        assert!(
            message.contains("reserved for the hub"),
            "{name}: {message}"
        );
        assert_eq!(stream.came(), Received::End(Ok(())));
        let runtime = Stream::open(&hub, "RuntimeStream", Wire::Grpc);
        runtime.send(json!({"register": {"name": name}}));
        let answer = runtime.message()["registerResponse"].clone();
        let message = answer["message"].as_str().unwrap();
        assert!(
            message.contains("reserved for the hub"),
            "{name}: {message}"
        );
    }
    assert!(aliases(&hub).is_empty());
    // A name that only starts with a reserved one is allowed.
    for name in ["pinixd-box-9000", "builtins"] {
        let (_stream, answer) = register(&hub, name, json!([]));
        assert_eq!(answer["accepted"], true, "{name}");
    }
}

/// Reads the log of a clip.
fn follow(hub: &super::Running, clip: &str) -> Stream {
    let mut stream = Stream::open(hub, "GetLogs", Wire::ConnectJson);
    stream.send(json!({"clipName": clip, "follow": true}));
    stream.finish();
    stream
}

fn log(stream: &Stream, message: &str) {
    stream.send(json!({"log": {"alias": "a", "level": "info", "message": message}}));
}

#[test]
fn a_log_continues_when_its_provider_reconnects() {
    let hub = hub();
    let clips = json!([{"alias": "a"}]);
    let old = Stream::provider(&hub, Wire::Grpc, "one", clips.clone());
    log(&old, "before");
    let reader = follow(&hub, "a");
    assert_eq!(reader.message()["message"], "before");
    let new = Stream::provider(&hub, Wire::Grpc, "one", clips);
    log(&new, "after");
    assert_eq!(reader.message()["message"], "after");
    let late = follow(&hub, "a");
    assert_eq!(late.message()["message"], "before");
    assert_eq!(late.message()["message"], "after");
    // Removing a clip ends its log.
    new.send(json!({"clipRemoved": {"name": "a"}}));
    assert_eq!(reader.came(), Received::End(Ok(())));
}

#[test]
fn a_log_returns_with_its_lost_provider() {
    let hub = hub();
    let clips = json!([{"alias": "a"}]);
    let mut old = Stream::provider(&hub, Wire::Grpc, "one", clips.clone());
    log(&old, "before");
    let reader = follow(&hub, "a");
    assert_eq!(reader.message()["message"], "before");
    old.kill();
    assert_eq!(reader.end().unwrap_err().0, "unavailable");
    let new = Stream::provider(&hub, Wire::Grpc, "one", clips.clone());
    let reader = follow(&hub, "a");
    assert_eq!(reader.message()["message"], "before");
    log(&new, "after");
    assert_eq!(reader.message()["message"], "after");
    // Other providers do not get the log.
    drop(new);
    reader.end().unwrap_err();
    let other = Stream::provider(&hub, Wire::Grpc, "two", clips);
    let reader = follow(&hub, "a");
    assert!(reader.is_quiet(Duration::from_millis(100)));
    drop(other);
}
