//! Offered clips can be called at the other hub as here, and their changes appear there.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pinion_access::Mode;
use pinion_clip::{ClipState, Status};
use pinion_connect::Protocol;
use pinion_hub::JoinState;
use pinion_status::Code;
use serde_json::json;

use super::common::Running;
use super::provider::{Received, Stream, Wire as Codec};
use super::stage::{
    Echo, Proxy, Shelf, aliases, decoded, eventually, invoke, join_from, manifest, options,
    until_joined,
};

#[test]
fn clips_are_called_through_the_hub_that_was_joined() {
    let hub = Running::start(Mode::Secured);
    for protocol in [Protocol::Grpc, Protocol::Connect] {
        let echo = Echo::new("1.0.0");
        let mut options = options(hub.address, &hub.token, "one");
        options.protocol = protocol;
        let joined = join_from(&hub, options, Shelf::with("echo", echo.clone()));
        until_joined(&joined);
        let (status, answer) = invoke(&hub, "echo", "say", &json!({"a": 1}));
        assert_eq!((status, answer), (200, json!([{"a": 1}])));

        // Ten thousand parts, in order.
        let caller = Stream::open(&hub, "InvokeStream", Codec::ConnectProto);
        let call = json!({"clipName": "echo", "command": "count"});
        caller.send(json!({ "start": call }));
        for number in 0..10_000 {
            assert_eq!(decoded(&caller.message()), number);
        }
        assert_eq!(caller.came(), Received::End(Ok(())));

        // Further input.
        let mut caller = Stream::open(&hub, "InvokeStream", Codec::ConnectJson);
        caller.send(json!({"start": {"clipName": "echo", "command": "fed"}}));
        for number in 0..3 {
            caller.send(json!({"chunk": {"data": number}}));
            assert_eq!(decoded(&caller.message()), number);
        }
        caller.finish();
        assert_eq!(caller.came(), Received::End(Ok(())));

        // A caller that disconnects.
        let mut caller = Stream::open(&hub, "InvokeStream", Codec::ConnectJson);
        caller.send(json!({"clip": "echo", "command": "hang", "input": {}}));
        caller.message();
        caller.kill();
        eventually("it is cancelled", || {
            echo.dropped.load(Ordering::SeqCst) == 1
        });
        hub.runtime.block_on(joined.leave());
        assert!(aliases(&hub).is_empty());
        assert_eq!(invoke(&hub, "echo", "say", &json!(1)).0, 404);
    }
}

#[test]
fn changes_are_announced() {
    let hub = Running::start(Mode::Secured);
    let (echo, other) = (Echo::new("1.0.0"), Echo::new("5.0.0"));
    let shelf = Shelf::with("echo", echo.clone());
    let joined = join_from(&hub, options(hub.address, &hub.token, "one"), shelf.clone());
    until_joined(&joined);
    let clip = |index: usize| hub.call("ListClips", "{}").1["clips"][index].clone();
    echo.snapshot.send_modify(|snapshot| {
        snapshot.status = Status {
            state: ClipState::Error,
            message: "it broke".into(),
        };
    });
    eventually("its status is known", || {
        clip(0)["statusMessage"] == "it broke"
    });
    assert_eq!(clip(0)["status"], "CLIP_STATUS_ERROR");
    echo.snapshot
        .send_modify(|snapshot| snapshot.manifest = manifest("2.0.0").into());
    eventually("its version is known", || clip(0)["version"] == "2.0.0");
    shelf.put("other", Some(other.clone()));
    eventually("the other is there", || aliases(&hub) == ["echo", "other"]);
    shelf.put("echo", Some(other));
    eventually("it is replaced", || clip(0)["version"] == "5.0.0");
    shelf.put("echo", None);
    eventually("it is gone", || aliases(&hub) == ["other"]);
}

#[test]
fn a_lost_connection_is_joined_again() {
    let hub = Running::start(Mode::Secured);
    let proxy = Proxy::to(hub.address);
    let echo = Echo::new("1.0.0");
    let mut options = options(proxy.address, &hub.token, "one");
    options.limits.ping_interval = Duration::from_millis(100);
    options.limits.ping_timeout = Duration::from_millis(400);
    let joined = join_from(&hub, options, Shelf::with("echo", echo.clone()));
    until_joined(&joined);
    // Pings hold an idle link open.
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(joined.state(), JoinState::Joined);
    for paused in [false, true] {
        let caller = Stream::open(&hub, "InvokeStream", Codec::ConnectJson);
        caller.send(json!({"clip": "echo", "command": "hang", "input": {}}));
        caller.message();
        if paused {
            // The hub does not notice; the provider reconnects and replaces its own session.
            proxy.pause();
        } else {
            proxy.cut();
        }
        assert_eq!(caller.end().unwrap_err().0, "unavailable");
        eventually("it is called again", || {
            invoke(&hub, "echo", "say", &json!(1)).0 == 200
        });
    }
    eventually("what was open is cancelled", || {
        echo.dropped.load(Ordering::SeqCst) == 2
    });
}

#[test]
fn a_refused_join_waits_before_the_next_attempt() {
    let hub = Running::start(Mode::Secured);
    let wrong = options(hub.address, "pnx_h_wrong", "one");
    let longest = wrong.limits.max_backoff;
    let joined = join_from(&hub, wrong, Shelf::with("echo", Echo::new("1")));
    eventually("it is refused", || {
        matches!(joined.state(), JoinState::Waiting(failure, pause)
            if failure.code == Code::Unauthenticated && pause == longest)
    });
    drop(joined);
    let first = Stream::provider(&hub, Codec::Grpc, "first", json!([{"alias": "echo"}]));
    let second = options(hub.address, &hub.token, "second");
    let joined = join_from(&hub, second, Shelf::with("echo", Echo::new("1")));
    eventually("it is refused", || {
        matches!(joined.state(), JoinState::Waiting(failure, pause)
            if failure.message.contains("already exists") && pause == longest)
    });
    drop(first);
    until_joined(&joined);
}

#[test]
fn two_providers_of_one_name_do_not_replace_each_other_at_once() {
    let hub = Running::start(Mode::Secured);
    let one = options(hub.address, &hub.token, "twin");
    let longest = one.limits.max_backoff;
    let one = join_from(&hub, one, Shelf::with("echo", Echo::new("1")));
    until_joined(&one);
    let other = options(hub.address, &hub.token, "twin");
    let _other = join_from(&hub, other, Shelf::with("echo", Echo::new("2")));
    eventually("the first is told", || {
        matches!(one.state(), JoinState::Waiting(failure, pause)
            if failure.message.contains("another name") && pause == longest)
    });
}

#[test]
fn joining_waits_for_an_unreachable_hub() {
    let hub = Running::start(Mode::OpenLocal);
    // A port without a listener.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let joined = join_from(
        &hub,
        options(address, "x", "one"),
        Shelf::with("echo", Echo::new("1")),
    );
    let mut pauses = Vec::new();
    let mut states = joined.watch();
    while pauses.len() < 6 {
        hub.runtime.block_on(states.changed()).unwrap();
        if let JoinState::Waiting(failure, pause) = &*states.borrow_and_update() {
            assert_eq!(failure.code, Code::Unavailable);
            pauses.push(pause.as_millis());
        }
    }
    assert_eq!(pauses, [20, 40, 80, 160, 200, 200]);
}
