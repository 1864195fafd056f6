//! Calls to clips of providers: order, concurrency, further input, slow readers.

use std::time::Duration;

use pinion_access::Grant;
use serde_json::{Value, json};

use super::provider::{Received, Stream, Wire};
use super::{aliases, base64, eventually, follow, hub, hub_with, invoke, output, unbase64};

fn command(stream: &Stream) -> (Value, String) {
    let command = stream.message_with("invokeCommand")["invokeCommand"].clone();
    let id = command["requestId"].as_str().unwrap().to_owned();
    (command, id)
}

fn result(id: &str, text: &str, done: bool) -> Value {
    json!({"invokeResult": {"requestId": id, "output": base64(text), "done": done}})
}

#[test]
fn results_may_come_in_any_order() {
    for wire in Wire::ALL {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "todo"}]));
        let calls: Vec<_> = (0..20)
            .map(|number| (number, invoke(&hub, "todo", &format!("c{number}"))))
            .collect();
        let mut asked: Vec<_> = (0..20).map(|_| command(&stream)).collect();
        asked.reverse();
        for (command, id) in &asked {
            stream.send(result(id, &command["command"].to_string(), true));
        }
        for (number, call) in calls {
            let (status, answer) = call.join().unwrap();
            assert_eq!(
                (status, output(&answer)),
                (200, json!(format!("c{number}")))
            );
        }
    }
}

#[test]
fn one_hub_serves_both_dialects() {
    let hub = hub();
    let public = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "a"}]));
    let typed = Stream::typed(&hub, "two", json!([{"alias": "b"}]));
    let (a, b) = (invoke(&hub, "a", "go"), invoke(&hub, "b", "go"));
    let request = typed.message();
    typed.send(json!({"type": "InvokeResponse", "requestId": request["requestId"], "output": "b"}));
    let (_, id) = command(&public);
    public.send(result(&id, "\"a\"", true));
    assert_eq!(output(&a.join().unwrap().1), "a");
    assert_eq!(output(&b.join().unwrap().1), "b");
}

#[test]
fn failures_of_the_clip_are_answers() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::ConnectJson, "one", json!([{"alias": "todo"}]));
    let caller = follow(&hub, "todo", "boom");
    let (_, id) = command(&stream);
    stream.send(result(&id, "1", false));
    let error = json!({"code": "FAILED_PRECONDITION", "message": "not now"});
    stream.send(json!({"invokeResult": {"requestId": id, "error": error}}));
    stream.send(result(&id, "2", true));
    assert_eq!(output(&caller.message()), 1);
    let last = caller.message();
    assert_eq!(last["error"]["code"], "failed_precondition");
    assert_eq!(caller.came(), Received::End(Ok(())));
    let call = invoke(&hub, "todo", "boom");
    let (_, id) = command(&stream);
    stream.send(json!({"invokeResult": {"requestId": id, "error": {"message": "boom"}}}));
    let (status, body) = call.join().unwrap();
    assert_eq!((status, &body["code"]), (500, &json!("internal")));
}

#[test]
fn a_call_that_ends_without_output_gives_an_empty_object() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::ConnectProto, "one", json!([{"alias": "todo"}]));
    let call = invoke(&hub, "todo", "go");
    let (_, id) = command(&stream);
    // Empty parts are ignored.
    stream.send(json!({"invokeResult": {"requestId": id}}));
    stream.send(json!({"invokeResult": {"requestId": id, "done": true}}));
    assert_eq!(output(&call.join().unwrap().1), json!({}));
}

#[test]
fn unlisted_commands_are_rejected_by_the_hub() {
    let hub = hub();
    let clips = json!([{"alias": "todo", "commands": [{"name": "list"}]}]);
    let stream = Stream::provider(&hub, Wire::Grpc, "one", clips);
    let (status, body) = invoke(&hub, "todo", "drop").join().unwrap();
    assert_eq!(status, 404);
    let expected = "clip \"todo\" does not support command \"drop\"";
    assert_eq!(body["message"], expected);
    assert!(stream.is_quiet(Duration::from_millis(50)));
}

#[test]
fn ten_thousand_parts_arrive_in_order() {
    for wire in [Wire::ConnectJson, Wire::Grpc] {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "feed"}]));
        let caller = follow(&hub, "feed", "monitor");
        let (_, id) = command(&stream);
        for number in 0..10_000 {
            stream.send(result(&id, &number.to_string(), false));
        }
        stream.send(json!({"invokeResult": {"requestId": id, "done": true}}));
        for number in 0..10_000 {
            assert_eq!(output(&caller.message()), number, "{wire:?}");
        }
        assert_eq!(caller.came(), Received::End(Ok(())));
    }
}

#[test]
fn further_input_is_passed_on_as_it_comes() {
    for wire in Wire::ALL {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "todo"}]));
        let mut caller = Stream::open(&hub, "InvokeStream", wire);
        let start = json!({"clipName": "todo", "command": "talk", "input": base64("0")});
        caller.send(json!({ "start": start }));
        let (command, id) = command(&stream);
        assert_eq!(unbase64(&command["input"]), "0");
        assert_eq!(command["openInput"], true);
        for number in 1..4 {
            caller.send(json!({"chunk": {"data": base64(&number.to_string())}}));
            let input = stream.message()["invokeInput"].clone();
            assert_eq!(input["requestId"], id.as_str());
            assert_eq!(unbase64(&input["data"]), number.to_string());
            stream.send(result(&id, &number.to_string(), false));
            assert_eq!(output(&caller.message()), number);
        }
        caller.finish();
        let last = stream.message()["invokeInput"].clone();
        assert_eq!((&last["done"], last.get("data")), (&json!(true), None));
        stream.send(result(&id, "9", true));
        assert_eq!(output(&caller.message()), 9);
        assert_eq!(caller.came(), Received::End(Ok(())));
    }
}

#[test]
fn a_last_part_is_passed_on_as_it_came() {
    for wire in [Wire::ConnectJson, Wire::Grpc] {
        let hub = hub();
        let stream = Stream::provider(&hub, wire, "one", json!([{"alias": "todo"}]));
        let caller = Stream::open(&hub, "InvokeStream", wire);
        caller.send(json!({"start": {"clipName": "todo", "command": "talk"}}));
        let (_, id) = command(&stream);
        caller.send(json!({"chunk": {"data": base64("1"), "done": true}}));
        let input = stream.message()["invokeInput"].clone();
        assert_eq!(unbase64(&input["data"]), "1");
        assert_eq!(input["done"], true, "{wire:?}");
        stream.send(result(&id, "9", true));
        assert_eq!(output(&caller.message()), 9);
        assert!(stream.is_quiet(Duration::from_millis(50)), "{wire:?}");
    }
}

/// A provider with the command `add`, which requires the text member `text`.
fn adder(hub: &super::Running, wire: Wire) -> Stream {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    });
    let commands = json!([{"name": "add", "input": schema.to_string()}]);
    let clips = json!([{"alias": "notes", "commands": commands}]);
    Stream::provider(hub, wire, "one", clips)
}

fn open_add(hub: &super::Running, wire: Wire, input: &str) -> Stream {
    let caller = Stream::open(hub, "InvokeStream", wire);
    let start = json!({"clipName": "notes", "command": "add", "input": base64(input)});
    caller.send(json!({ "start": start }));
    caller
}

#[test]
fn an_input_in_pieces_is_checked_before_the_provider_sees_it() {
    for wire in Wire::ALL {
        let hub = hub();
        let stream = adder(&hub, wire);
        let pieces = ["", "{\"te", "xt\":", "5}"];
        let wrong = "the input of \"notes add\" is wrong: \"text\" must be a string, not 5";
        for first in 0..pieces.len() {
            let caller = open_add(&hub, wire, &pieces[..=first].concat());
            for piece in &pieces[first + 1..] {
                caller.send(json!({"chunk": {"data": base64(piece)}}));
            }
            // It does not wait for the end of the input.
            let refused = ("invalid_argument".to_owned(), wrong.to_owned());
            assert_eq!(caller.end().unwrap_err(), refused, "{wire:?}");
        }
        let mut caller = open_add(&hub, wire, "{\"text\":");
        caller.finish();
        let (code, message) = caller.end().unwrap_err();
        assert_eq!(code, "invalid_argument");
        assert!(message.ends_with("it is not JSON text"), "{message}");
        assert!(stream.is_quiet(Duration::from_millis(50)), "{wire:?}");

        let caller = open_add(&hub, wire, "{\"te");
        caller.send(json!({"chunk": {"data": base64("xt\":\"x\"} \n"), "done": true}}));
        let (command, id) = command(&stream);
        assert_eq!(unbase64(&command["input"]), "{\"text\":\"x\"} \n");
        assert_eq!(command.get("openInput"), None);
        stream.send(result(&id, "1", true));
        assert_eq!(output(&caller.message()), 1);
    }
}

#[test]
fn a_stream_that_follows_a_checked_input_stays_a_stream() {
    for wire in Wire::ALL {
        let hub = hub();
        let stream = adder(&hub, wire);
        let mut caller = open_add(&hub, wire, "{\"text\":\"}\\\"");
        caller.send(json!({"chunk": {"data": base64("\"}more")}}));
        let (command, id) = command(&stream);
        assert_eq!(unbase64(&command["input"]), "{\"text\":\"}\\\"\"}more");
        assert_eq!(command["openInput"], true);
        for number in 1..4 {
            caller.send(json!({"chunk": {"data": base64(&number.to_string())}}));
            let input = stream.message()["invokeInput"].clone();
            assert_eq!(unbase64(&input["data"]), number.to_string());
            stream.send(result(&id, &number.to_string(), false));
            assert_eq!(output(&caller.message()), number);
        }
        caller.finish();
        assert_eq!(stream.message()["invokeInput"]["done"], true);
        stream.send(result(&id, "9", true));
        assert_eq!(output(&caller.message()), 9);
        assert_eq!(caller.came(), Received::End(Ok(())));
    }
}

#[test]
fn an_input_with_a_schema_has_a_limit() {
    let hub = hub();
    let stream = adder(&hub, Wire::Grpc);
    let caller = open_add(&hub, Wire::Grpc, "{\"text\":\"");
    let part = caller.encode(&json!({"chunk": {"data": base64(&"x".repeat(4 << 20))}}));
    for _ in 0..9 {
        caller.send_raw(&part);
    }
    let (code, message) = caller.end().unwrap_err();
    assert_eq!(code, "resource_exhausted", "{message}");
    assert!(stream.is_quiet(Duration::from_millis(50)));
}

#[test]
fn providers_receive_a_time_limit_only_if_the_caller_set_one() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "todo"}]));
    let call = invoke(&hub, "todo", "go");
    let (command, id) = command(&stream);
    assert_eq!(command.get("timeoutMs"), None);
    stream.send(result(&id, "1", true));
    assert_eq!(call.join().unwrap().0, 200);
}

#[test]
fn providers_receive_the_media_type_of_a_file() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "todo"}]));
    let file = json!({"clip": "todo", "path": "a", "content": base64("x"), "mime": "image/png"});
    let (address, token) = (hub.address, hub.token.clone());
    let writing = std::thread::spawn(move || {
        super::common::post(address, &token, "DataWrite", &[], &file.to_string())
    });
    let command = stream.message_with("dataCommand")["dataCommand"].clone();
    assert_eq!(command["mime"], "image/png");
    stream
        .send(json!({"dataResult": {"requestId": command["requestId"], "uri": "pinix://todo/a"}}));
    assert_eq!(writing.join().unwrap().0, 200);
}

/// A caller that opens a call and never reads its answer.
fn call_without_reading(hub: &super::Running, stream: &Stream) -> (std::net::TcpStream, String) {
    use std::io::Write;
    let body = json!({"clipName": "feed", "command": "pour"}).to_string();
    let mut socket = std::net::TcpStream::connect(hub.address).unwrap();
    let head = format!(
        "POST /pinix.v2.HubService/Invoke HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/connect+json\r\ncontent-length: {}\r\n\r\n",
        hub.token,
        body.len() + 5
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(&[0]).unwrap();
    let length = (body.len() as u32).to_be_bytes();
    socket.write_all(&length).unwrap();
    socket.write_all(body.as_bytes()).unwrap();
    let (_, id) = command(stream);
    (socket, id)
}

#[test]
fn a_caller_that_does_not_read_delays_others_only_briefly() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "feed"}]));
    let (_socket, id) = call_without_reading(&hub, &stream);
    let other = invoke(&hub, "feed", "quick");
    let (_, quick) = command(&stream);
    let chunk = format!("\"{}\"", "x".repeat(128 * 1024));
    let part = stream.encode(&result(&id, &chunk, false));
    for _ in 0..300 {
        stream.send_raw(&part);
    }
    stream.send(result(&quick, "1", true));
    assert_eq!(other.join().unwrap().0, 200);
    let cancel = stream.message_with("invokeCancel");
    assert_eq!(cancel["invokeCancel"]["requestId"], id.as_str());
}

#[test]
fn a_slow_caller_gets_everything_if_no_other_call_waits() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "feed"}]));
    let (mut socket, id) = call_without_reading(&hub, &stream);
    let chunk = format!("\"{}\"", "x".repeat(64 * 1024));
    let part = stream.encode(&result(&id, &chunk, false));
    for _ in 0..400 {
        stream.send_raw(&part);
    }
    stream.send(json!({"invokeResult": {"requestId": id, "done": true}}));
    // Longer than other calls would have to wait.
    std::thread::sleep(Duration::from_millis(600));
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 20];
    let wanted = 400 * base64(&chunk).len();
    while bytes < wanted {
        use std::io::Read;
        bytes += socket.read(&mut buffer).unwrap();
    }
}

#[test]
fn a_revoked_token_ends_the_stream() {
    let hub = super::Running::start(pinion_access::Mode::Secured);
    let store = hub.hub.gate().store();
    let grant = Grant::Hub {
        scope: "@me".parse().unwrap(),
        manage: false,
    };
    let minted = store.mint(pinion_access::NewToken::new(grant)).unwrap();
    let token = minted.token.reveal().to_owned();
    let stream = Stream::open_as(&hub, "ProviderStream", Wire::Grpc, Some(&token));
    stream.message();
    let clips = json!([{"alias": "mine"}]);
    stream.send(json!({"register": {"providerName": "p", "clips": clips}}));
    stream.message();
    // Clips belong to the scope of the token.
    let route = hub.hub.table().get("mine").unwrap();
    assert_eq!(route.scope.as_ref().unwrap().as_str(), "@me");
    // Without the right to manage there is no stream for runtimes.
    let runtime = Stream::open_as(&hub, "RuntimeStream", Wire::Grpc, Some(&token));
    assert_eq!(runtime.end().unwrap_err().0, "permission_denied");
    let nobody = Stream::open_as(&hub, "ProviderStream", Wire::Grpc, None);
    assert_eq!(nobody.end().unwrap_err().0, "unauthenticated");
    store.revoke(&minted.record.id).unwrap();
    assert_eq!(stream.end().unwrap_err().0, "unauthenticated");
    eventually("its clips are gone", || aliases(&hub).is_empty());
}

#[test]
fn a_lost_clip_of_another_scope_is_reported_as_not_found() {
    let hub = super::Running::start(pinion_access::Mode::Secured);
    let [ann, bob] = ["@ann", "@bob"].map(|scope| {
        let scope = scope.parse().unwrap();
        let grant = Grant::Hub {
            scope,
            manage: false,
        };
        let minted = hub
            .hub
            .gate()
            .store()
            .mint(pinion_access::NewToken::new(grant));
        minted.unwrap().token.reveal().to_owned()
    });
    let mut stream = Stream::open_as(&hub, "ProviderStream", Wire::Grpc, Some(&ann));
    stream.message();
    stream.send(json!({"register": {"providerName": "p", "clips": [{"alias": "mine"}]}}));
    stream.message();
    stream.kill();
    eventually("its clips are gone", || aliases(&hub).is_empty());
    let ask = |token: &str, clip: &str| {
        let body = json!({"clip": clip, "command": "go"}).to_string();
        let (status, answer) = hub.call_as(Some(token), "Invoke", &body);
        let message = answer["message"].as_str().unwrap_or_default();
        (status, message.replace(clip, "X"))
    };
    assert_eq!(ask(&ann, "mine").0, 503);
    assert_eq!(ask(&bob, "mine"), ask(&bob, "never"));
    assert_eq!(ask(&bob, "mine").0, 404);
}

#[test]
fn a_provider_sets_the_status_of_its_own_clips_only() {
    let hub = hub();
    let stream = Stream::provider(&hub, Wire::ConnectJson, "one", json!([{"alias": "a"}]));
    let _other = Stream::provider(&hub, Wire::ConnectJson, "two", json!([{"alias": "b"}]));
    for name in ["b", "a"] {
        let changed = json!({"name": name, "status": "CLIP_STATUS_ERROR", "message": "broken"});
        stream.send(json!({ "clipStatusChanged": changed }));
    }
    eventually("it is known", || {
        let (_, answer) = hub.call("ListClips", "{}");
        answer["clips"][0]["status"] == "CLIP_STATUS_ERROR"
    });
    let (_, answer) = hub.call("ListClips", "{}");
    assert_eq!(answer["clips"][0]["statusMessage"], "broken");
    assert_eq!(answer["clips"][1]["status"], "CLIP_STATUS_RUNNING");
}

#[test]
fn unanswered_file_requests_time_out() {
    let hub = hub_with(|limits| {
        limits.web_timeout = Duration::from_millis(100);
        limits.data_timeout = Duration::from_millis(100);
    });
    let clips = json!([{"alias": "a", "hasWeb": true}, {"alias": "b"}]);
    let stream = Stream::provider(&hub, Wire::Grpc, "one", clips);
    let (status, _) = hub.call("GetClipWeb", r#"{"clipName":"a","path":"x"}"#);
    assert_eq!(status, 504);
    let (status, _) = hub.call("DataRead", r#"{"clipName":"a","path":"x"}"#);
    assert_eq!(status, 504);
    stream.message();
    stream.message();
    // The provider is not asked for pages of a clip that has none.
    let (status, _) = hub.call("GetClipWeb", r#"{"clipName":"b","path":"x"}"#);
    assert_eq!(status, 404);
    assert!(stream.is_quiet(Duration::from_millis(50)));
}

#[test]
fn rejected_file_requests_fail_as_calls() {
    let hub = hub_with(|limits| limits.calls = 1);
    let _typed = Stream::typed(&hub, "typed", json!([{"alias": "a"}]));
    let stream = Stream::provider(&hub, Wire::Grpc, "one", json!([{"alias": "b"}]));
    for method in ["DataRead", "DataWrite", "Data"] {
        let (status, body) = hub.call(method, r#"{"clipName":"a","path":"x"}"#);
        assert_eq!((status, &body["code"]), (501, &json!("unimplemented")));
    }
    // The provider may have one call only.
    let call = invoke(&hub, "b", "go");
    let (_, id) = command(&stream);
    let (status, body) = hub.call("DataRead", r#"{"clipName":"b","path":"x"}"#);
    assert_eq!((status, &body["code"]), (429, &json!("resource_exhausted")));
    stream.send(result(&id, "1", true));
    assert_eq!(call.join().unwrap().0, 200);
    // The provider's failure about a file is part of the answer.
    let (address, token) = (hub.address, hub.token.clone());
    let reading = std::thread::spawn(move || {
        let body = r#"{"clipName":"b","path":"x"}"#;
        super::common::post(address, &token, "DataRead", &[], body)
    });
    let id = stream.message_with("dataCommand")["dataCommand"]["requestId"].clone();
    let error = json!({"code": "resource_exhausted", "message": "the file is too long"});
    stream.send(json!({"dataResult": {"requestId": id, "error": error}}));
    let (status, body) = reading.join().unwrap();
    assert_eq!(status, 200);
    assert_eq!(body["error"]["message"], "the file is too long");
}
