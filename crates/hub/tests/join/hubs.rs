//! Whole hubs and runtimes that join: with real clips, remote installations, restarts.

use std::sync::Arc;

use pinion_access::Mode;
use pinion_clip::Programs;
use pinion_hub::{
    Accepts, JoinOptions, Mode as HubMode, OfferedClips, Settings, join, open_runtime,
};
use serde_json::{Value, json};

use super::common::{Running, python_clip, request};
use super::stage::{
    aliases, decoded, eventually, invoke, join_from, log, options, quick, until_joined,
};

const CLIP: &str = r#"
import json, sys
def say(**message): print(json.dumps(message, separators=(",", ":")), flush=True)
say(type="register", manifest={"package": "@acme/todo", "commands": [
    {"name": "echo"}, {"name": "ask"}, {"name": "keep"}, {"name": "list"}]})
for line in sys.stdin:
    message = json.loads(line)
    kind, id = message["type"], message.get("id")
    if kind == "invoke" and message["command"] == "echo": say(type="result", id=id, output=message["input"])
    elif kind == "invoke" and message["command"] == "ask":
        asked = id
        say(type="invoke", id="x1", clip=message["input"][0], command="echo", input={"from": "todo"})
    elif kind == "invoke" and message["command"] == "list":
        asked = id
        say(type="list_clips", id="x2")
    elif kind == "result": say(type="result", id=asked, output=message.get("output", message.get("clips")))
    elif kind == "error": say(type="error", id=asked, error=message["error"])
    elif kind == "list_clips_result": say(type="result", id=asked, output=[clip["name"] for clip in message["clips"]])
"#;

fn hub_only() -> Running {
    let settings = Settings {
        mode: HubMode::HubOnly,
        ..Settings::default()
    };
    Running::with(Mode::Secured, settings)
}

#[test]
fn a_runtime_is_installed_on_from_far_away() {
    let hub = hub_only();
    let root = tempfile::tempdir().unwrap();
    let mut options = options(hub.address, &hub.token, "pinixd-box-1");
    options.accepts = Accepts::CallsAndInstalls;
    let inside = hub.runtime.enter();
    let (runtime, skipped) = open_runtime(root.path(), &options, Programs::default()).unwrap();
    assert!(skipped.is_empty());
    let joined = join(options.clone(), runtime.clone(), log()).unwrap();
    drop(inside);
    eventually("it takes clips", || {
        let (_, answer) = hub.call("ListProviders", "{}");
        answer["providers"][0]["acceptsManage"] == true
    });
    until_joined(&joined);
    let place = python_clip(CLIP);
    std::fs::create_dir(place.path().join("web")).unwrap();
    std::fs::write(place.path().join("web/a.txt"), "hello web").unwrap();
    for alias in ["todo", "other"] {
        let added = hub.install(alias, place.path());
        assert_eq!(added["clip"]["provider"], "pinixd-box-1");
        assert_eq!(added["clip"]["name"], alias);
    }
    assert_eq!(aliases(&hub), ["other", "todo"]);
    assert_eq!(invoke(&hub, "todo", "echo", &json!(5)), (200, json!([5])));
    // One clip calls another through the hub.
    let (status, answer) = invoke(&hub, "todo", "ask", &json!("other"));
    assert_eq!(
        (status, &answer),
        (200, &json!({"from": "todo"})),
        "{answer}"
    );
    let (status, answer) = invoke(&hub, "todo", "ask", &json!("nobody"));
    assert_eq!(status, 500);
    assert!(
        answer["message"].as_str().unwrap().contains("nobody"),
        "{answer}"
    );
    // Files.
    let body = json!({"clipName": "todo", "path": "n/a.txt", "content": "aGk="}).to_string();
    let (status, written) = hub.call("DataWrite", &body);
    assert_eq!(
        (status, &written["uri"]),
        (200, &json!("pinix://todo/n/a.txt"))
    );
    let (_, read) = hub.call("DataRead", r#"{"clipName":"todo","path":"n/a.txt"}"#);
    assert_eq!(read["content"], "aGk=");
    let (_, listed) = hub.call("DataRead", r#"{"clipName":"todo","operation":"list"}"#);
    assert_eq!(listed["entries"][0]["type"], "directory");
    let (status, gone) = hub.call("DataRead", r#"{"clipName":"todo","path":"gone"}"#);
    assert_eq!((status, &gone["error"]["code"]), (200, &json!("not_found")));
    let (_, page) = hub.call(
        "GetClipWeb",
        r#"{"clipName":"todo","path":"a.txt","offset":6}"#,
    );
    assert_eq!(page["content"], "d2Vi", "{page}");
    assert_eq!(page["totalSize"], "9");
    let authorization = format!("Bearer {}", hub.token);
    let headers = [("authorization", authorization.as_str())];
    let page = request(hub.address, "GET", "/clips/todo/a.txt", &headers, b"");
    assert_eq!(
        (page.status, page.body.as_slice()),
        (200, &b"hello web"[..])
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("sandbox ") && !policy.contains("same-origin"));
    // Removed, with its data.
    let (status, _) = hub.call("RemoveClip", r#"{"clipName":"todo","purge":true}"#);
    assert_eq!(status, 200);
    assert_eq!(aliases(&hub), ["other"]);
    assert!(!root.path().join("data/todo").exists());
    let (status, failed) = hub.call("AddClip", r#"{"source":"local/x:/nowhere/at/all"}"#);
    assert_ne!(status, 200, "{failed}");
    hub.runtime.block_on(async {
        joined.leave().await;
        runtime.shut_down().await;
    });
    assert!(aliases(&hub).is_empty());
}

fn offer_all(
    from: &Running,
    to: &Running,
    name: &str,
) -> (JoinOptions, Arc<dyn pinion_hub::Offer>) {
    let mut options = options(to.address, &to.token, name);
    options.is_hub = true;
    (options, from.hub.offer(OfferedClips::All))
}

#[test]
fn two_hubs_join_each_other_and_one_is_restarted() {
    let place = python_clip(CLIP);
    let one = Running::start(Mode::Secured);
    let two = Running::start(Mode::Secured);
    one.install("alpha", place.path());
    two.install("beta", place.path());
    let (options, offer) = offer_all(&two, &one, "two");
    let two_at_one = join_from(&two, options, offer);
    let (options, offer) = offer_all(&one, &two, "one");
    let one_at_two = join_from(&one, options, offer);
    let both = ["alpha".to_owned(), "beta".to_owned()];
    eventually("both see both", || {
        aliases(&one) == both && aliases(&two) == both
    });
    assert_eq!(invoke(&one, "beta", "echo", &json!(1)), (200, json!([1])));
    assert_eq!(invoke(&two, "alpha", "echo", &json!(2)), (200, json!([2])));
    // Calls across both hubs and back.
    let (status, answer) = invoke(&one, "beta", "ask", &json!("alpha"));
    assert_eq!((status, answer), (200, json!({"from": "todo"})));

    let (address, token) = (two.address, two.token.clone());
    drop(two_at_one);
    let root = two.stop();
    eventually("what was there is gone", || aliases(&one) == ["alpha"]);
    let two = Running::at(root, Some(address), Mode::Secured, Settings::default());
    assert_eq!(two.token, token);
    eventually("it is joined again", || aliases(&two) == both);
    let (options, offer) = offer_all(&two, &one, "two");
    let _again = join_from(&two, options, offer);
    eventually("both see both again", || aliases(&one) == both);
    assert_eq!(invoke(&one, "beta", "echo", &json!(3)), (200, json!([3])));
    assert_eq!(invoke(&two, "alpha", "echo", &json!(4)), (200, json!([4])));
    drop(one_at_two);
}

#[test]
fn a_hub_shows_what_it_was_told_to() {
    let place = python_clip(CLIP);
    let (one, two) = (Running::start(Mode::Secured), Running::start(Mode::Secured));
    one.install("alpha", place.path());
    let _edge = super::provider::Stream::provider(
        &one,
        super::provider::Wire::Grpc,
        "edge",
        json!([{"alias": "phone"}]),
    );
    let clips = |shown| -> Vec<String> { one.hub.offer(shown).clips().into_keys().collect() };
    assert_eq!(clips(OfferedClips::Installed), ["alpha"]);
    assert_eq!(clips(OfferedClips::All), ["alpha", "phone"]);
    let mut options = JoinOptions::new(
        format!("http://{}", two.address),
        Some(two.token.clone()),
        "one",
    );
    options.limits = quick();
    let joined = join_from(&one, options, one.hub.offer(OfferedClips::Installed));
    eventually("it is there", || aliases(&two) == ["alpha"]);
    // The other hub may not install here.
    let (status, answer) = two.call("AddClip", r#"{"source":"local/x:/x","provider":"one"}"#);
    assert_eq!(status, 403, "{answer}");
    let (_, listing) = two.call("Invoke", r#"{"clipName":"alpha","command":"list"}"#);
    let names: Vec<Value> = decoded(&listing).as_array().cloned().unwrap_or_default();
    assert_eq!(names, ["alpha", "phone"], "{listing}");
    one.runtime.block_on(joined.leave());
    assert!(aliases(&two).is_empty());
}
