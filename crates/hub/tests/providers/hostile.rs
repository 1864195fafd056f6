//! Providers that break the protocol.

use std::time::Duration;

use serde_json::json;

use super::provider::{Received, Stream, Wire};
use super::{aliases, base64, eventually, follow, hub, hub_with, invoke, output};

#[test]
fn the_first_message_must_register() {
    let hub = hub();
    for wire in Wire::ALL {
        let stream = Stream::open(&hub, "ProviderStream", wire);
        assert!(stream.message().get("providerHello").is_some());
        stream.send(json!({"ping": {"sentAtUnixMs": "1"}}));
        let refused = stream.message()["registerResponse"].clone();
        assert_eq!(
            refused["message"],
            "first provider message must be register"
        );
        assert_eq!(refused.get("accepted"), None);
        assert_eq!(stream.came(), Received::End(Ok(())));
    }
    let typed = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
    typed.message();
    // Heartbeats and log lines are allowed before the registration.
    typed.send(json!({"type": "Heartbeat"}));
    typed.send(json!({"type": "Log", "level": "info", "message": "hello"}));
    typed.send(json!({"type": "InvokeResponse", "requestId": "x"}));
    assert_eq!(typed.message()["accepted"], false);
    assert_eq!(typed.came(), Received::End(Ok(())));
}

#[test]
fn invalid_bytes_end_only_their_stream() {
    let hub = hub();
    for wire in Wire::ALL {
        for junk in [
            &b"\xff\xff\xff\xff"[..],
            b"{\"type\":",
            b"[1]",
            b"\x0a\xff\x01",
        ] {
            let stream = Stream::open(&hub, "ProviderStream", wire);
            stream.message();
            stream.send_raw(junk);
            let (code, _) = stream.end().unwrap_err();
            assert_eq!(code, "invalid_argument", "{wire:?} {junk:?}");
        }
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "a"}]));
        stream.send_raw(b"\xff\xff\xff\xff");
        assert_eq!(stream.end().unwrap_err().0, "invalid_argument");
        eventually("its clips are gone", || aliases(&hub).is_empty());
    }
}

#[test]
fn silent_providers_time_out() {
    let hub = hub_with(|limits| limits.first_message_timeout = Duration::from_millis(100));
    for wire in Wire::ALL {
        for method in ["ProviderStream", "RuntimeStream"] {
            let stream = Stream::open(&hub, method, wire);
            assert_eq!(stream.end().unwrap_err().0, "deadline_exceeded");
        }
        // Heartbeats do not count as a registration.
        let stream = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
        for _ in 0..5 {
            stream.send(json!({"type": "Heartbeat"}));
        }
        assert_eq!(stream.end().unwrap_err().0, "deadline_exceeded");
    }
}

#[test]
fn registrations_have_limits() {
    let hub = hub();
    let clip = |number: usize| json!({"alias": format!("c{number}")});
    let refused = |clips: serde_json::Value| {
        let stream = Stream::open(&hub, "ProviderStream", Wire::ConnectProto);
        stream.message();
        stream.send(json!({"register": {"providerName": "big", "clips": clips}}));
        let answer = stream.message()["registerResponse"].clone();
        assert_eq!(answer.get("accepted"), None, "{answer}");
        assert_eq!(stream.came(), Received::End(Ok(())));
        assert!(aliases(&hub).is_empty());
        answer["message"].as_str().unwrap().to_owned()
    };
    let many: Vec<_> = (0..1001).map(clip).collect();
    assert!(refused(json!(many)).contains("1000 clips"));
    let commands: Vec<_> = (0..501)
        .map(|it| json!({"name": format!("c{it}")}))
        .collect();
    assert!(refused(json!([{"alias": "a", "commands": commands}])).contains("501 commands"));
    let long = "x".repeat(5 << 20);
    assert!(refused(json!([{"alias": "a", "description": long}])).contains("bytes"));
    let twice = refused(json!([{"alias": "a"}, {"alias": " A "}]));
    assert_eq!(twice, "clip \"a\" already registered in request");
    assert!(refused(json!([{"alias": "a"}, {"alias": "-_-"}])).contains("alias"));
    let nameless = Stream::open(&hub, "ProviderStream", Wire::Grpc);
    nameless.message();
    nameless.send(json!({"register": {"providerName": "  ", "clips": []}}));
    let answer = nameless.message();
    assert_eq!(
        answer["registerResponse"]["message"],
        "provider_name is required"
    );

    let thousand: Vec<_> = (0..1000).map(clip).collect();
    let stream = Stream::provider(&hub, Wire::Grpc, "big", json!(thousand));
    assert_eq!(aliases(&hub).len(), 1000);
    // One more clip exceeds the limit; registering an existing one again does not.
    stream.send(json!({"clipAdded": {"clip": {"alias": "c5", "version": "2"}}}));
    eventually("it is replaced", || {
        let route = hub.hub.table().get("c5").unwrap();
        route.endpoint.snapshot().manifest.version == "2"
    });
    stream.send(json!({"clipAdded": {"clip": {"alias": "more"}}}));
    assert_eq!(stream.end().unwrap_err().0, "resource_exhausted");
    assert!(aliases(&hub).is_empty());
}

#[test]
fn a_second_registration_ends_the_stream() {
    let hub = hub();
    for wire in Wire::ALL {
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "a"}]));
        stream.send(json!({"register": {"providerName": "one", "clips": []}}));
        let expected = (
            "invalid_argument".into(),
            "register message is only allowed once".into(),
        );
        assert_eq!(stream.end(), Err(expected));
        eventually("its clips are gone", || aliases(&hub).is_empty());
    }
}

#[test]
fn an_alias_of_another_provider_cannot_be_added() {
    let hub = hub();
    let first = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let second = Stream::provider(&hub, Wire::Grpc, "two", json!([{"alias": "b"}]));
    second.send(json!({"clipAdded": {"clip": {"alias": "a"}}}));
    let expected = ("already_exists".into(), "clip \"a\" already exists".into());
    assert_eq!(second.end(), Err(expected));
    // Nor can it be removed.
    let third = Stream::provider(&hub, Wire::Grpc, "three", json!([{"alias": "c"}]));
    third.send(json!({"clipRemoved": {"name": "a"}}));
    third.send(json!({"clipRemoved": {"name": "c"}}));
    eventually("its own is gone", || aliases(&hub) == ["a"]);
    drop(first);
}

#[test]
fn results_for_calls_of_other_providers_are_ignored() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::ConnectJson, "one", json!([{"alias": "a"}]));
    let other = Stream::provider(&hub, Wire::ConnectJson, "two", json!([{"alias": "b"}]));
    let call = invoke(&hub, "a", "go");
    let id = stream.message()["invokeCommand"]["requestId"].clone();
    let answer = |id: &serde_json::Value, text: &str| {
        let output = base64(text);
        json!({"invokeResult": {"requestId": id, "output": output, "done": true}})
    };
    other.send(answer(&id, "\"stolen\""));
    other.send(answer(&json!(""), "1"));
    other.send(answer(&json!("no-such-id"), "1"));
    other.send(json!({"getClipWebResult": {"requestId": id}}));
    other.send(json!({"dataResult": {"requestId": id}}));
    // Unknown messages are ignored.
    other.send(json!({"manageResult": {"requestId": id}, "somethingNew": 1}));
    other.send(json!({"ping": {"sentAtUnixMs": "7"}}));
    assert_eq!(other.message()["pong"]["sentAtUnixMs"], "7");
    stream.send(answer(&id, "\"own\""));
    assert_eq!(output(&call.join().unwrap().1), "own");
    stream.send(answer(&id, "\"again\""));
    let next = invoke(&hub, "a", "go");
    let id = stream.message()["invokeCommand"]["requestId"].clone();
    stream.send(answer(&id, "\"next\""));
    assert_eq!(output(&next.join().unwrap().1), "next");
}

#[test]
fn messages_after_the_end_of_a_call_are_dropped() {
    let hub = hub();
    let stream = Stream::typed(&hub, "one", json!([{"alias": "a"}]));
    let caller = follow(&hub, "a", "go");
    let id = stream.message()["requestId"].clone();
    stream.send(json!({"type": "InvokeStreamChunk", "requestId": id, "chunk": 1}));
    stream.send(json!({"type": "InvokeStreamEnd", "requestId": id}));
    stream.send(json!({"type": "InvokeStreamChunk", "requestId": id, "chunk": 2}));
    stream.send(json!({"type": "InvokeResponse", "requestId": id, "error": "late"}));
    assert_eq!(output(&caller.message()), 1);
    assert_eq!(caller.came(), Received::End(Ok(())));
}

#[test]
fn silence_ends_only_sessions_that_have_sent_pings() {
    let hub = hub_with(|limits| {
        limits.heartbeat_timeout = Duration::from_millis(300);
        limits.heartbeat_interval = Duration::from_millis(100);
    });
    let quiet = Stream::provider(&hub, Wire::Grpc, "quiet", json!([{"alias": "quiet"}]));
    let json_ = Stream::provider(&hub, Wire::ConnectJson, "json", json!([{"alias": "json"}]));
    let greeted = Stream::provider(&hub, Wire::Grpc, "greeted", json!([{"alias": "greeted"}]));
    greeted.send(json!({"ping": {"sentAtUnixMs": "1"}}));
    for stream in [&json_, &greeted] {
        let expected = ("unavailable".into(), "heartbeat timeout".into());
        assert_eq!(stream.end(), Err(expected));
    }
    assert_eq!(aliases(&hub), ["quiet"]);
    drop(quiet);
    let runtime = Stream::open(&hub, "RuntimeStream", Wire::ConnectJson);
    runtime.send(json!({"register": {"name": "r"}}));
    assert_eq!(runtime.end().unwrap_err().0, "unavailable");
}

#[test]
fn a_provider_replaces_only_its_own_session() {
    let hub = hub();
    let old = Stream::provider(
        &hub,
        Wire::Grpc,
        "one",
        json!([{"alias": "a"}, {"alias": "b"}]),
    );
    let caller = follow(&hub, "a", "go");
    old.message();
    let new = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let expected = ("unavailable".into(), "provider disconnected".into());
    assert_eq!(caller.end(), Err(expected));
    assert_eq!(old.end().unwrap_err().0, "unavailable");
    assert_eq!(aliases(&hub), ["a"]);
    let call = invoke(&hub, "a", "go");
    let id = new.message()["invokeCommand"]["requestId"].clone();
    let result = json!({"requestId": id, "output": base64("1"), "done": true});
    new.send(json!({ "invokeResult": result }));
    assert_eq!(call.join().unwrap().0, 200);

    // Another token is another provider.
    let grant = pinion_access::Grant::Super;
    let store = hub.hub.gate().store();
    let minted = store.mint(pinion_access::NewToken::new(grant)).unwrap();
    let token = minted.token.reveal().to_owned();
    let thief = Stream::open_as(&hub, "ProviderStream", Wire::Grpc, Some(&token));
    thief.message();
    thief.send(json!({"register": {"providerName": "one", "clips": []}}));
    let refused = thief.message()["registerResponse"]["message"].clone();
    assert_eq!(refused, "provider \"one\" already connected");
    assert_eq!(thief.came(), Received::End(Ok(())));
    assert_eq!(aliases(&hub), ["a"]);
}

#[test]
fn streams_need_http_2() {
    let hub = hub();
    for method in ["ProviderStream", "RuntimeStream"] {
        let path = format!("/pinix.v2.HubService/{method}");
        let headers = [("content-type", "application/connect+json")];
        let answer = super::common::request(hub.address, "POST", &path, &headers, b"");
        assert_eq!(answer.status, 505);
    }
}
