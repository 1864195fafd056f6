//! Who may have a name, and what becomes of the one who had it.

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
