//! Installing through connected runtimes: the choice of the runtime, reservations, lost runtimes.

use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::common::{self, Running};
use super::provider::{Received, Stream, Wire};
use super::{aliases, hub, hub_only};

struct Peer {
    provider: Stream,
    runtime: Stream,
}

impl Peer {
    fn join(hub: &Running, name: &str) -> Self {
        let provider = Stream::provider(hub, Wire::Grpc, name, json!([]));
        let runtime = Stream::open(hub, "RuntimeStream", Wire::Grpc);
        runtime.send(json!({"register": {"name": name, "hostname": "box"}}));
        let answer = runtime.message();
        assert_eq!(answer["registerResponse"]["accepted"], true, "{answer}");
        Self { provider, runtime }
    }
}

fn ask(hub: &Running, method: &'static str, body: Value) -> JoinHandle<(u16, Value)> {
    let (address, token) = (hub.address, hub.token.clone());
    std::thread::spawn(move || common::post(address, &token, method, &[], &body.to_string()))
}

fn refused(hub: &Running, method: &'static str, body: Value, code: &str, words: &str) {
    let (_, answer) = ask(hub, method, body).join().unwrap();
    assert_eq!(answer["code"], code, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains(words), "{message}");
}

#[test]
fn the_runtime_is_chosen_by_name_or_because_it_is_the_only_one() {
    let hub = hub_only();
    let wanted = json!({"source": "@acme/todo"});
    let no_one = "no runtime is connected";
    refused(
        &hub,
        "AddClip",
        wanted.clone(),
        "failed_precondition",
        no_one,
    );
    let _edge = Stream::provider(&hub, Wire::Grpc, "edge", json!([{"alias": "phone"}]));
    let at = |name: &str| json!({"source": "@acme/todo", "provider": name});
    let no = "provider \"edge\" does not accept manage operations";
    refused(&hub, "AddClip", at("edge"), "permission_denied", no);
    refused(
        &hub,
        "RemoveClip",
        json!({"clipName": "phone"}),
        "permission_denied",
        no,
    );
    refused(&hub, "AddClip", at("nobody"), "not_found", "nobody");

    let one = Peer::join(&hub, "one");
    let adding = ask(&hub, "AddClip", wanted.clone());
    let command = one.runtime.message()["installCommand"].clone();
    assert_eq!(
        (&command["source"], &command["alias"]),
        (&json!("@acme/todo"), &json!("todo"))
    );
    let error = json!({"code": "not_found", "message": "no such package"});
    let result = json!({"requestId": command["requestId"], "error": error});
    one.runtime.send(json!({ "installResult": result }));
    assert_eq!(adding.join().unwrap().0, 404);

    let two = Peer::join(&hub, "two");
    let which = "provider is required when multiple runtimes are connected";
    refused(&hub, "AddClip", wanted, "invalid_argument", which);
    let adding = ask(&hub, "AddClip", at("two"));
    let command = two.runtime.message()["installCommand"].clone();
    two.runtime
        .send(json!({"installResult": {"requestId": command["requestId"]}}));
    let (status, body) = adding.join().unwrap();
    assert_eq!((status, &body["code"]), (500, &json!("internal")));
    let (_, providers) = hub.call("ListProviders", "{}");
    let listed: Vec<_> = providers["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["acceptsManage"] == true))
        .collect();
    assert_eq!(listed, [("edge", false), ("one", true), ("two", true)]);
}

#[test]
fn an_installation_returns_after_the_clip_is_in_the_table() {
    let hub = hub_only();
    let peer = Peer::join(&hub, "one");
    let adding = ask(
        &hub,
        "AddClip",
        json!({"source": "@acme/todo", "alias": "Todo"}),
    );
    let id = peer.runtime.message()["installCommand"]["requestId"].clone();
    // Other owners cannot take the alias meanwhile.
    let other = Stream::open(&hub, "ProviderStream", Wire::Grpc);
    other.message();
    let clips = json!([{"alias": "todo"}]);
    other.send(json!({"register": {"providerName": "other", "clips": clips}}));
    let refused = other.message()["registerResponse"]["message"].clone();
    assert_eq!(refused, "clip \"todo\" already exists");
    // The result arrives before the clip.
    peer.runtime
        .send(json!({"installResult": {"requestId": id, "clip": {"name": "todo"}}}));
    // Time to return too early.
    std::thread::sleep(Duration::from_millis(100));
    assert!(!adding.is_finished());
    let clip = json!({"alias": "todo", "package": "@acme/todo", "version": "1.0.0"});
    peer.provider
        .send(json!({"clipAdded": {"clip": clip, "requestId": id}}));
    let (status, added) = adding.join().unwrap();
    assert_eq!((status, &added["clip"]["version"]), (200, &json!("1.0.0")));
    assert_eq!(added["clip"]["provider"], "one");
    // Installing the same alias again is an upgrade.
    let again = ask(
        &hub,
        "AddClip",
        json!({"source": "@acme/todo@2", "alias": "todo"}),
    );
    let id = peer.runtime.message()["installCommand"]["requestId"].clone();
    let clip = json!({"alias": "todo", "package": "@acme/todo", "version": "2.0.0"});
    peer.provider
        .send(json!({"clipAdded": {"clip": clip, "requestId": id}}));
    peer.runtime
        .send(json!({"installResult": {"requestId": id, "clip": {"name": "todo"}}}));
    assert_eq!(again.join().unwrap().1["clip"]["version"], "2.0.0");
    // Without a requested alias it is another installation.
    let another = ask(&hub, "AddClip", json!({"source": "@acme/todo@2"}));
    let command = peer.runtime.message()["installCommand"].clone();
    assert!(command["alias"].as_str().unwrap().starts_with("todo-"));
    drop(peer);
    assert_eq!(another.join().unwrap().0, 503);
}

#[test]
fn a_lost_runtime_fails_its_requests_and_its_clips_stay() {
    let hub = hub_only();
    let mut peer = Peer::join(&hub, "one");
    peer.provider
        .send(json!({"clipAdded": {"clip": {"alias": "a"}}}));
    super::eventually("it is there", || aliases(&hub) == ["a"]);
    let removing = ask(&hub, "RemoveClip", json!({"clipName": "a", "purge": true}));
    let command = peer.runtime.message()["removeCommand"].clone();
    assert_eq!(
        (&command["alias"], &command["purge"]),
        (&json!("a"), &json!(true))
    );
    peer.runtime.kill();
    let (status, body) = removing.join().unwrap();
    assert_eq!(
        (status, &body["code"]),
        (503, &json!("unavailable")),
        "{body}"
    );
    assert_eq!(aliases(&hub), ["a"]);
    // The runtime may reconnect.
    peer.runtime = Stream::open(&hub, "RuntimeStream", Wire::ConnectProto);
    peer.runtime.send(json!({"register": {"name": "one"}}));
    peer.runtime.message();
    peer.runtime.send(json!({"ping": {"sentAtUnixMs": "3"}}));
    assert_eq!(
        peer.runtime.message(),
        json!({"pong": {"sentAtUnixMs": "3"}})
    );
    let removing = ask(&hub, "RemoveClip", json!({"clipName": "a"}));
    let id = peer.runtime.message()["removeCommand"]["requestId"].clone();
    peer.provider
        .send(json!({"clipRemoved": {"name": "a", "requestId": id}}));
    peer.runtime
        .send(json!({"removeResult": {"requestId": id}}));
    assert_eq!(removing.join().unwrap().0, 200);
    // Without the provider stream a clip cannot be offered.
    drop(peer.provider);
    super::eventually("it is alone", || {
        let log = hub.hub.log().tail(3);
        log.iter().any(|line| line.message.contains("is gone"))
    });
    let message = "provider stream is not connected";
    let wanted = json!({"source": "@acme/x"});
    refused(&hub, "AddClip", wanted, "unavailable", message);
}

#[test]
fn runtimes_have_time_limits_and_valid_names() {
    let hub = super::hub_with(|limits| limits.install_timeout = Duration::from_millis(150));
    let peer = Peer::join(&hub, "one");
    let wanted = json!({"source": "@acme/x", "provider": "one"});
    refused(&hub, "AddClip", wanted, "deadline_exceeded", "in time");
    let wrong = Stream::open(&hub, "RuntimeStream", Wire::ConnectJson);
    wrong.send(json!({"ping": {}}));
    let answer = wrong.message()["registerResponse"].clone();
    assert_eq!(answer["message"], "first runtime message must be register");
    assert_eq!(wrong.came(), Received::End(Ok(())));
    let again = Stream::open(&hub, "RuntimeStream", Wire::ConnectJson);
    again.send(json!({"register": {"name": "one"}}));
    assert_eq!(again.message()["registerResponse"]["accepted"], true);
    assert_eq!(peer.runtime.end().unwrap_err().0, "unavailable");
    again.send(json!({"register": {"name": "one"}}));
    assert_eq!(again.end().unwrap_err().0, "invalid_argument");
}

#[test]
fn a_runtime_receives_no_requests_of_another_scope() {
    let hub = Running::start(pinion_access::Mode::Secured);
    let token = |scope: &str| {
        let grant = pinion_access::Grant::Hub {
            scope: scope.parse().unwrap(),
            manage: true,
        };
        let minted = hub
            .hub
            .gate()
            .store()
            .mint(pinion_access::NewToken::new(grant));
        minted.unwrap().token.reveal().to_owned()
    };
    let (ann, bob) = (token("@ann"), token("@bob"));
    let provider = Stream::open_as(&hub, "ProviderStream", Wire::Grpc, Some(&ann));
    provider.message();
    let clips = json!([{"alias": "notes"}]);
    provider.send(json!({"register": {"providerName": "ann-box", "clips": clips}}));
    provider.message();
    let thief = Stream::open_as(&hub, "RuntimeStream", Wire::Grpc, Some(&bob));
    thief.send(json!({"register": {"name": "ann-box"}}));
    let answer = thief.message()["registerResponse"].clone();
    assert_eq!(answer["message"], "provider \"ann-box\" already connected");
    let clips = |token: &str| hub.call_as(Some(token), "ListClips", "{}").1;
    assert_eq!(clips(&ann)["clips"][0]["name"], "notes");
    assert_eq!(clips(&bob).get("clips"), None);
    let body = json!({"clipName": "notes", "command": "x"}).to_string();
    assert_eq!(hub.call_as(Some(&bob), "Invoke", &body).0, 404);
    let (_, seen) = hub.call_as(Some(&bob), "ListProviders", "{}");
    assert_eq!(seen.get("providers"), None);
    let wanted = r#"{"source":"@acme/x","provider":"ann-box"}"#;
    assert_eq!(hub.call_as(Some(&bob), "AddClip", wanted).0, 404);
}

#[test]
fn a_full_hub_installs_locally_unless_a_runtime_is_named() {
    let hub = hub();
    let peer = Peer::join(&hub, "one");
    let (status, body) = hub.call("AddClip", r#"{"source":"local/x:/nowhere/at/all"}"#);
    assert_ne!(status, 200, "{body}");
    assert!(peer.runtime.is_quiet(Duration::from_millis(50)));
}

#[test]
fn a_clip_that_is_installed_but_not_offered_is_a_failure() {
    let hub = super::hub_with(|limits| limits.settle_timeout = Duration::from_millis(150));
    let peer = Peer::join(&hub, "one");
    let _other = Stream::provider(&hub, Wire::Grpc, "other", json!([{"alias": "theirs"}]));
    for name in ["x", "theirs"] {
        let wanted = json!({"source": "@acme/x", "provider": "one"});
        let adding = ask(&hub, "AddClip", wanted);
        let id = peer.runtime.message()["installCommand"]["requestId"].clone();
        let result = json!({"requestId": id, "clip": {"name": name}});
        peer.runtime.send(json!({ "installResult": result }));
        let (status, body) = adding.join().unwrap();
        assert_eq!(status, 503, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("does not offer it"), "{message}");
    }
}

#[test]
fn a_typed_runtime_may_use_the_requested_name_of_a_clip() {
    let hub = hub_only();
    let runtime = Stream::open(&hub, "ProviderStream", Wire::ConnectJson);
    runtime.message();
    let clips = json!([{"alias": "My Todo", "package": "@acme/todo"}]);
    runtime.send(
        json!({"type": "RegisterClips", "providerName": "one", "runtime": true, "clips": clips}),
    );
    for spelling in ["suggested", "asked"] {
        let suggested = runtime.message_with("ClipsRegistered")["clips"][0]["suggested"].clone();
        let removing = ask(&hub, "RemoveClip", json!({"clipName": suggested}));
        let asked = runtime.message_with("RuntimeUninstall")["alias"].clone();
        assert_eq!(asked, "My Todo");
        let name = match spelling {
            "suggested" => suggested,
            _ => asked,
        };
        runtime.send(json!({"type": "UnregisterClips", "aliases": [name]}));
        assert_eq!(removing.join().unwrap().0, 200);
        runtime.send(json!({"type": "RegisterClips", "clips": clips}));
    }
}
