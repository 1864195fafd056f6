//! Who may have a name, and what becomes of the one who had it.

use std::time::Duration;

use serde_json::{Value, json};

use super::provider::{Came, Stream, Wire};
use super::{aliases, base64, hub, invoke};

/// Registers, and gives what the hub says to that.
fn register(hub: &super::Running, name: &str, clips: Value) -> (Stream, Value) {
    let stream = Stream::open(hub, "ProviderStream", Wire::Grpc);
    stream.message();
    stream.send(json!({"register": {"providerName": name, "clips": clips}}));
    let answer = stream.message()["registerResponse"].clone();
    (stream, answer)
}

#[test]
fn one_who_is_refused_takes_nobodys_place() {
    let hub = hub();
    let old = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let _other = Stream::provider(&hub, Wire::Grpc, "two", json!([{"alias": "b"}]));
    let call = invoke(&hub, "a", "go");
    let id = old.message()["invokeCommand"]["requestId"].clone();
    let (new, answer) = register(&hub, "one", json!([{"alias": "a"}, {"alias": "b"}]));
    assert_eq!(answer["message"], "clip \"b\" already exists");
    assert_eq!(new.came(), Came::End(Ok(())));
    // All is as it was, also what is on its way.
    assert_eq!(aliases(&hub), ["a", "b"]);
    let result = json!({"requestId": id, "output": base64("1"), "done": true});
    old.send(json!({ "invokeResult": result }));
    assert_eq!(call.join().unwrap().0, 200);
    old.send(json!({"clipAdded": {"clip": {"alias": "c"}}}));
    super::eventually("it may still add clips", || aliases(&hub).len() == 3);
    // One who is accepted does take it.
    let (_new, answer) = register(&hub, "one", json!([{"alias": "a"}]));
    assert_eq!(answer["accepted"], true);
    assert_eq!(old.end().unwrap_err().0, "unavailable");
    assert_eq!(aliases(&hub), ["a", "b"]);
}

#[test]
fn names_of_the_hub_itself_are_nobody_elses() {
    let hub = hub();
    for name in ["pinixd", " PinixD ", "builtin", "BUILTIN"] {
        let (stream, answer) = register(&hub, name, json!([{"alias": "a"}]));
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("the hub's own"), "{name}: {message}");
        assert_eq!(stream.came(), Came::End(Ok(())));
        let runtime = Stream::open(&hub, "RuntimeStream", Wire::Grpc);
        runtime.send(json!({"register": {"name": name}}));
        let answer = runtime.message()["registerResponse"].clone();
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains("the hub's own"), "{name}: {message}");
    }
    assert!(aliases(&hub).is_empty());
    // What begins like one is another.
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
fn a_log_goes_on_when_its_provider_takes_its_own_place() {
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
    // Who takes its clip away ends the log of it.
    new.send(json!({"clipRemoved": {"name": "a"}}));
    assert_eq!(reader.came(), Came::End(Ok(())));
}

#[test]
fn a_log_is_there_again_when_a_lost_provider_is() {
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
    // It is nobody else's.
    drop(new);
    reader.end().unwrap_err();
    let other = Stream::provider(&hub, Wire::Grpc, "two", clips);
    let reader = follow(&hub, "a");
    assert!(reader.is_quiet(Duration::from_millis(100)));
    drop(other);
}
