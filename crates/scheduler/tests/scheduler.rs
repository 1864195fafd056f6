//! The scheduler in a hub: schedules of users and clips, their visibility, and restarts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pinion_access::{Mode as AccessMode, Principal, TokenId};
use pinion_clip::manifest::{Manifest, Schedule};
use pinion_clip::{CallError, ClipState, Programs, Snapshot, Status};
use pinion_hub::{
    Answers, Conflict, Endpoint, Hub, HubCall, InputPart, Owner, Route, Settings, answered, failed,
};
use pinion_scheduler::{ALIAS, scheduler};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};

/// A clip that records its calls.
#[derive(Debug, Default)]
struct Bell {
    schedules: Vec<Schedule>,
    rung: Mutex<Vec<(String, String, String)>>,
}

impl Bell {
    fn rung(&self) -> Vec<(String, String, String)> {
        self.rung.lock().unwrap().clone()
    }
}

impl Endpoint for Bell {
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            status: Status {
                state: ClipState::Running,
                message: String::new(),
            },
            manifest: Arc::new(Manifest {
                schedules: self.schedules.clone(),
                ..Manifest::default()
            }),
        }
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        let input = String::from_utf8(call.input.to_vec()).unwrap();
        let who = call.caller.to_string();
        self.rung
            .lock()
            .unwrap()
            .push((call.command.clone(), input, who));
        match call.command.as_str() {
            "break" => {
                let failure = Failure::new(Code::Internal, "it is cracked");
                failed(CallError::Answered(failure))
            }
            "hang" => Box::pin(futures_util::stream::pending()),
            _ => answered(Bytes::from_static(b"\"ding\"")),
        }
    }
}

fn open(root: &Path) -> Arc<Hub> {
    let opened = pinion_hub::open(
        root,
        "http://127.0.0.1:1",
        Settings::default(),
        AccessMode::Secured,
        Programs::default(),
    );
    let hub = opened.unwrap().hub;
    let clip = scheduler(&hub, &root.join("data/scheduler")).unwrap();
    hub.add_builtin(ALIAS, clip).unwrap();
    hub
}

fn put(hub: &Hub, alias: &str, scope: Option<&str>, bell: Bell) -> Arc<Bell> {
    let bell = Arc::new(bell);
    let route = Route {
        alias: alias.into(),
        owner: Owner::Builtin,
        provider: "test".into(),
        scope: scope.map(|scope| scope.parse().unwrap()),
        endpoint: bell.clone(),
    };
    hub.table().insert(vec![route], Conflict::Refuse).unwrap();
    bell
}

fn user(scope: &str) -> Principal {
    Principal::Hub {
        scope: scope.parse().unwrap(),
        manage: false,
        id: TokenId::from("test"),
    }
}

async fn ask(hub: &Hub, caller: &Principal, command: &str, input: Value) -> Result<Value, Failure> {
    let call = HubCall::new(caller.clone(), command, input.to_string());
    let answer = hub.ask(ALIAS, call).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

async fn ids(hub: &Hub, caller: &Principal) -> Vec<String> {
    let listed = ask(hub, caller, "list", json!({})).await.unwrap();
    let schedules = listed["schedules"].as_array().unwrap().iter();
    schedules
        .map(|schedule| schedule["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn until(mut there: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if there().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not come about");
}

fn every_second(id: &str, command: &str) -> Value {
    json!({"id": id, "clip": "bell", "command": command, "cron": "* * * * * *"})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_when_it_is_due_and_what_came_of_it_is_told() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    let bell = put(&hub, "bell", None, Bell::default());
    let owner = Principal::Super;
    let mut wish = every_second("good", "ring");
    wish["input"] = json!(r#"{"n":1}"#);
    wish["description"] = json!("wakes everybody");
    let added = ask(&hub, &owner, "add", wish).await.unwrap();
    assert_eq!(added, json!({"id": "good", "status": "created"}));
    let bad = ask(&hub, &owner, "add", every_second("bad", "break")).await;
    bad.unwrap();
    until(async || {
        let listed = ask(&hub, &owner, "list", json!({})).await.unwrap();
        let schedules = &listed["schedules"];
        schedules[0]["last_success"].is_string() && schedules[1]["last_error"] == "it is cracked"
    })
    .await;
    let rung = bell.rung();
    assert!(rung.contains(&("ring".into(), r#"{"n":1}"#.into(), "super".into())));
    assert!(rung.contains(&("break".into(), "{}".into(), "super".into())));
    let listed = ask(&hub, &owner, "list", json!({})).await.unwrap();
    let good = &listed["schedules"][0];
    assert_eq!(good["input"], r#"{"n":1}"#);
    assert_eq!(good["description"], "wakes everybody");
    assert_eq!(good["enabled"], true);
    assert!(good["next_run"].is_string() && good["last_error"].is_null());
    let history = ask(&hub, &owner, "history", json!({"id": "good"}))
        .await
        .unwrap();
    let last = &history["executions"][0];
    assert_eq!(
        (&last["success"], &last["output"]),
        (&json!(true), &json!("\"ding\""))
    );
    assert!(last["duration_ms"].is_u64() && last["started_at"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_rests_and_what_is_removed_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    let bell = put(&hub, "bell", None, Bell::default());
    let owner = Principal::Super;
    let yearly = json!({"id": "y", "clip": "bell", "command": "ring", "cron": "0 0 1 1 *"});
    ask(&hub, &owner, "add", yearly).await.unwrap();
    let id = json!({"id": "y"});
    for (command, status) in [("pause", "paused"), ("run", "triggered")] {
        let done = ask(&hub, &owner, command, id.clone()).await.unwrap();
        assert_eq!(done["status"], status);
    }
    until(async || bell.rung().len() == 1).await;
    let listed = ask(&hub, &owner, "list", json!({})).await.unwrap();
    assert_eq!(listed["schedules"][0]["enabled"], false);
    assert!(listed["schedules"][0]["next_run"].is_null());
    for (command, status) in [("resume", "resumed"), ("remove", "removed")] {
        let done = ask(&hub, &owner, command, id.clone()).await.unwrap();
        assert_eq!(done["status"], status);
    }
    assert!(ids(&hub, &owner).await.is_empty());
    let gone = ask(&hub, &owner, "run", id).await.unwrap_err();
    assert_eq!(gone.code, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_clip_declares_comes_and_goes_with_it() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    let owner = Principal::Super;
    let declared = |cron: &str| Schedule {
        command: "ring".into(),
        cron: cron.into(),
        input: "[1]".into(),
        ..Schedule::default()
    };
    let schedules = vec![declared("* * * * * *"), declared("nonsense")];
    let bell = put(
        &hub,
        "bell",
        None,
        Bell {
            schedules,
            ..Bell::default()
        },
    );
    until(async || !bell.rung().is_empty()).await;
    assert_eq!(
        bell.rung()[0],
        ("ring".into(), "[1]".into(), "clip:bell".into())
    );
    assert_eq!(ids(&hub, &owner).await, ["clip:bell:ring"]);
    let id = json!({"id": "clip:bell:ring"});
    let refused = ask(&hub, &owner, "remove", id.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::FailedPrecondition);
    ask(&hub, &owner, "pause", id).await.unwrap();
    hub.table().remove("bell", &Owner::Builtin).unwrap();
    assert!(ids(&hub, &owner).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_or_calls_what_belongs_to_others() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    let secret = put(&hub, "bell", Some("@alice"), Bell::default());
    let (alice, bob) = (user("@alice"), user("@bob"));
    ask(&hub, &alice, "add", every_second("hers", "ring"))
        .await
        .unwrap();
    let mut wish = every_second("his", "ring");
    let refused = ask(&hub, &bob, "add", wish.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::NotFound);
    put(&hub, "gong", None, Bell::default());
    wish["clip"] = json!("gong");
    ask(&hub, &bob, "add", wish).await.unwrap();
    assert_eq!(ids(&hub, &alice).await, ["hers"]);
    assert_eq!(ids(&hub, &bob).await, ["his"]);
    assert_eq!(ids(&hub, &Principal::Super).await, ["hers", "his"]);
    for command in ["pause", "remove", "run", "history"] {
        let refused = ask(&hub, &bob, command, json!({"id": "hers"}))
            .await
            .unwrap_err();
        assert_eq!(refused.code, Code::NotFound, "{command}");
    }
    let history = async |who: &Principal, id: &str| {
        let told = ask(&hub, who, "history", json!({"id": id})).await.unwrap();
        told["executions"].as_array().unwrap().clone()
    };
    until(async || !history(&bob, "his").await.is_empty()).await;
    until(async || !history(&alice, "hers").await.is_empty()).await;
    assert!(
        history(&alice, "hers")
            .await
            .iter()
            .all(|call| call["success"] == true)
    );
    // A clip may leave after it joined.
    hub.table().remove("gong", &Owner::Builtin).unwrap();
    until(async || {
        let his = history(&bob, "his").await;
        his.iter()
            .any(|call| call["error"] == "Clip 'gong' not found")
    })
    .await;
    assert!(
        secret
            .rung()
            .iter()
            .all(|(_, _, who)| who == "clip:scheduler")
    );
    let guest = ask(&hub, &Principal::Guest, "list", json!({}))
        .await
        .unwrap_err();
    assert_eq!(guest.code, Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_and_their_history_outlive_the_hub_and_calls_do_not_pile_up() {
    let home = tempfile::tempdir().unwrap();
    let owner = Principal::Super;
    {
        let hub = open(home.path());
        let bell = put(&hub, "bell", None, Bell::default());
        ask(&hub, &owner, "add", every_second("stuck", "hang"))
            .await
            .unwrap();
        ask(&hub, &owner, "add", every_second("good", "ring"))
            .await
            .unwrap();
        until(async || bell.rung().iter().filter(|it| it.0 == "ring").count() > 2).await;
        let stuck = bell.rung().iter().filter(|it| it.0 == "hang").count();
        assert_eq!(stuck, 1, "a call that goes on is not made again");
        let again = ask(&hub, &owner, "run", json!({"id": "stuck"}))
            .await
            .unwrap_err();
        assert_eq!(again.code, Code::FailedPrecondition);
    }
    let hub = open(home.path());
    assert_eq!(ids(&hub, &owner).await, ["stuck", "good"]);
    let history = ask(&hub, &owner, "history", json!({"id": "good"}))
        .await
        .unwrap();
    assert!(!history["executions"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_wish_is_said() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    let owner = Principal::Super;
    put(&hub, "bell", None, Bell::default());
    let good = every_second("a", "ring");
    ask(&hub, &owner, "add", good.clone()).await.unwrap();
    let with = |name: &str, value: Value| {
        let mut wish = good.clone();
        wish["id"] = json!("b");
        wish[name] = value;
        wish
    };
    let of_scheduler = |command: &str| {
        let mut wish = with("clip", json!(ALIAS));
        wish["command"] = json!(command);
        wish
    };
    for (wish, code, said) in [
        (good.clone(), Code::AlreadyExists, "already"),
        (
            with("clip", json!("bel")),
            Code::NotFound,
            "did you mean \"bell\"?",
        ),
        (
            of_scheduler("lst"),
            Code::NotFound,
            "did you mean \"list\"?",
        ),
        (
            of_scheduler("pause"),
            Code::InvalidArgument,
            "\"id\" is missing",
        ),
        (
            with("cron", json!("soon")),
            Code::InvalidArgument,
            "five fields",
        ),
        (
            with("id", json!("clip:a:b")),
            Code::InvalidArgument,
            "is not a valid id",
        ),
        (
            with("id", json!("")),
            Code::InvalidArgument,
            "is not a valid id",
        ),
        (
            with("input", json!("{")),
            Code::InvalidArgument,
            "input is not JSON",
        ),
        (
            with("command", json!("")),
            Code::InvalidArgument,
            "command is empty",
        ),
        (
            json!({"id": "b"}),
            Code::InvalidArgument,
            "\"clip\" is missing",
        ),
        (
            json!([]),
            Code::InvalidArgument,
            "the input of \"scheduler add\"",
        ),
    ] {
        let failure = ask(&hub, &owner, "add", wish.clone()).await.unwrap_err();
        assert_eq!(failure.code, code, "{wish}: {failure}");
        assert!(failure.message.contains(said), "{wish}: {failure}");
    }
    ask(&hub, &owner, "add", with("input", json!({"n": 1})))
        .await
        .unwrap();
    assert_eq!(ids(&hub, &owner).await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_in_parts_is_collected_and_checked() {
    let home = tempfile::tempdir().unwrap();
    let hub = open(home.path());
    put(&hub, "bell", None, Bell::default());
    let in_parts = |command: &str, input: Value| {
        let text = input.to_string();
        let mut call = HubCall::new(Principal::Super, command, Bytes::new());
        let parts: Vec<Result<InputPart, Failure>> = text
            .as_bytes()
            .chunks(5)
            .map(|part| Ok(InputPart::new(Bytes::copy_from_slice(part), false)))
            .collect();
        call.more = Some(Box::pin(futures_util::stream::iter(parts)));
        hub.ask(ALIAS, call)
    };
    let refused = in_parts("add", json!({"id": "a"})).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.contains("\"clip\" is missing"), "{refused}");
    in_parts("add", every_second("a", "ring")).await.unwrap();
    assert_eq!(ids(&hub, &Principal::Super).await, ["a"]);
}
