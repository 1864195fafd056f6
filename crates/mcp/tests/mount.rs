//! MCP servers as clips: programs and URLs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::sync::{Arc, Once};
use std::time::Duration;

use common::fake::Fake;
use futures_util::StreamExt;
use pinion_clip::logs::ClipLog;
use pinion_clip::{CallError, ClipState};
use pinion_mcp::{
    Admission, Gateway, GatewayScope, HttpServer, Mount, MountConfig, MountLimits, Target,
};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

const PROBE: &str = env!("CARGO_BIN_EXE_mcp-probe");

fn quick() -> MountLimits {
    MountLimits {
        backoff: Duration::from_millis(10),
        longest_backoff: Duration::from_millis(50),
        ..MountLimits::default()
    }
}

fn mounted(target: Target) -> Mount {
    static GUARDIAN: Once = Once::new();
    GUARDIAN.call_once(|| {
        let arguments = vec![pinion_process::GUARDIAN_ARGUMENT.into()];
        pinion_process::set_guardian(PROBE.into(), arguments);
    });
    let config = MountConfig {
        limits: quick(),
        ..MountConfig::new("lab", target)
    };
    Mount::new(config, ClipLog::in_memory().into())
}

/// A mounted program, and the file in which it records its starts.
struct MountedProbe {
    root: TempDir,
    mount: Mount,
}

impl MountedProbe {
    fn new(words: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let words = [PROBE, "server"].iter().chain(words);
        let mount = mounted(Target::Command {
            words: words.map(Into::into).collect(),
            directory: root.path().to_owned(),
            variables: vec![
                ("PROBE_STARTS".into(), root.path().join("starts").into()),
                ("GIVEN_TOKEN".into(), "x".into()),
            ],
            pass: Vec::new(),
        });
        Self { root, mount }
    }

    fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.root.path().join("starts"));
        starts.map_or(0, |starts| starts.lines().count())
    }

    async fn ask(&self, command: &str, input: &Value) -> Result<Value, CallError> {
        ask(&self.mount, command, input).await
    }
}

async fn ask(mount: &Mount, command: &str, input: &Value) -> Result<Value, CallError> {
    let mut answers = mount.invoke(command, input.to_string().into(), None);
    let mut outputs = Vec::new();
    let read = async {
        while let Some(output) = answers.next().await {
            outputs.push(serde_json::from_slice(&output?).unwrap());
        }
        Ok(())
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read);
    read.await.expect("an answer in time")?;
    Ok(if outputs.len() == 1 {
        outputs.remove(0)
    } else {
        outputs.into()
    })
}

fn answered(outcome: Result<Value, CallError>) -> Failure {
    match outcome {
        Err(CallError::Answered(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn unanswered(outcome: Result<Value, CallError>) -> Failure {
    match outcome {
        Err(CallError::Unanswered(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

/// Waits until the log contains `wanted`.
async fn logged(mount: &Mount, wanted: &str) {
    let found = async {
        loop {
            let lines = mount.logs().tail(1000);
            if lines.iter().any(|line| line.message.contains(wanted)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), found).await;
    assert!(
        found.is_ok(),
        "{wanted} is not in {:?}",
        mount.logs().tail(1000)
    );
}

#[tokio::test]
async fn tools_are_commands() {
    let probe = MountedProbe::new(&[]);
    let asleep = probe.mount.snapshot();
    assert_eq!(asleep.status.state, ClipState::Sleeping);
    assert_eq!((probe.starts(), asleep.manifest.commands.len()), (0, 0));
    let seen = probe.mount.inspect().await.unwrap();
    assert_eq!(seen.status.state, ClipState::Running);
    let manifest = &seen.manifest;
    assert_eq!(
        (
            manifest.name.as_str(),
            manifest.package.as_str(),
            manifest.version.as_str()
        ),
        ("lab", "probe", "0.1")
    );
    assert_eq!(
        (manifest.description.as_str(), manifest.domain.as_str()),
        ("A probe", "mcp")
    );
    assert_eq!(manifest.patterns, ["Ask nicely."]);
    assert_eq!(manifest.commands.len(), 13);
    let say = manifest.command("say").unwrap();
    assert_eq!(
        (say.description.as_str(), say.input.as_str()),
        ("Does say", r#"{"type":"object"}"#)
    );

    assert_eq!(
        probe.ask("echo", &json!({"a": [1, null]})).await.unwrap(),
        json!({"a": [1, null]})
    );
    assert_eq!(
        probe.ask("say", &json!({"text": "hé\n"})).await.unwrap(),
        json!("hé\n")
    );
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    assert_eq!(
        probe.ask("image", &json!({})).await.unwrap(),
        json!(["here:", image])
    );
    assert_eq!(
        probe.ask("group verb", &json!({})).await.unwrap(),
        json!("grouped")
    );
    let failed = answered(probe.ask("fail", &json!({})).await);
    assert_eq!(
        (failed.code, &*failed.message),
        (Code::Internal, "it cannot be done")
    );
    let unknown = unanswered(probe.ask("fly", &json!({})).await);
    assert_eq!(unknown.code, Code::NotFound);
    let wrong = unanswered(probe.ask("echo", &json!([1])).await);
    assert_eq!(wrong.code, Code::InvalidArgument);
    assert_eq!(probe.starts(), 1);
}

#[tokio::test]
async fn a_server_of_the_newest_revision() {
    let probe = MountedProbe::new(&["modern"]);
    assert_eq!(
        probe.ask("echo", &json!({"a": 1})).await.unwrap(),
        json!({"a": 1})
    );
    assert_eq!(probe.mount.snapshot().manifest.version, "0.2");
}

#[tokio::test]
async fn secrets_are_not_handed_over() {
    // SAFETY: set before anything else runs in this process, which nextest has for this test alone.
    #[allow(unsafe_code, reason = "the environment is what is tested")]
    unsafe {
        std::env::set_var("LAB_API_KEY", "secret");
        std::env::set_var("LAB_PLAIN", "plain");
    }
    let probe = MountedProbe::new(&[]);
    let seen = probe.ask("environment", &json!({})).await.unwrap();
    let names = seen["names"].as_array().unwrap();
    assert!(names.contains(&json!("LAB_PLAIN")) && names.contains(&json!("GIVEN_TOKEN")));
    assert!(!names.contains(&json!("LAB_API_KEY")), "{names:?}");
}

#[tokio::test]
async fn a_server_that_dies_ends_every_call_and_is_started_again() {
    let probe = MountedProbe::new(&[]);
    let first = probe.ask("pid", &json!({})).await.unwrap();
    let (nothing, so) = (json!({}), json!({"ms": 60_000}));
    let hanging = futures_util::future::join_all((0..20).map(|_| probe.ask("hang", &nothing)));
    let dying = async {
        let hanging = || {
            let lines = probe.mount.logs().tail(1000);
            let hanging = lines.iter().filter(|line| line.message.contains("hanging"));
            hanging.count()
        };
        while hanging() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        probe.ask("die", &nothing).await
    };
    let (hung, slow, died) = tokio::join!(hanging, probe.ask("slow", &so), dying);
    for outcome in hung.into_iter().chain([slow, died]) {
        let failure = unanswered(outcome);
        assert_eq!(failure.code, Code::Unavailable);
        assert!(
            failure.message.contains("exit code 3"),
            "{}",
            failure.message
        );
    }
    assert_eq!(probe.mount.snapshot().status.state, ClipState::Error);
    logged(&probe.mount, "error: dying").await;
    let second = probe.ask("pid", &json!({})).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(
        (probe.starts(), probe.mount.snapshot().status.state),
        (2, ClipState::Running)
    );
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let probe = MountedProbe::new(&["broken"]);
    for _ in 0..3 {
        let failure = unanswered(probe.ask("echo", &json!({})).await);
        assert_eq!(failure.code, Code::Unavailable);
        assert!(
            failure.message.contains("exit code 7"),
            "{}",
            failure.message
        );
    }
    assert_eq!(probe.starts(), 3);
    logged(&probe.mount, "it is broken").await;
    let missing = mounted(Target::Command {
        words: vec!["/nowhere/at/all".into()],
        directory: "/".into(),
        variables: Vec::new(),
        pass: Vec::new(),
    });
    let failure = unanswered(ask(&missing, "echo", &json!({})).await);
    assert!(
        failure.message.contains("cannot be started"),
        "{}",
        failure.message
    );
    assert_eq!(missing.snapshot().status.state, ClipState::Error);
}

#[tokio::test]
async fn a_call_nobody_wants_is_taken_back() {
    let probe = MountedProbe::new(&[]);
    probe.mount.inspect().await.unwrap();
    let mut answers = probe.mount.invoke("hang", "{}".into(), None);
    let waited = tokio::time::timeout(Duration::from_millis(50), answers.next()).await;
    assert!(waited.is_err());
    drop(answers);
    logged(&probe.mount, "cancelled").await;
    let deadline = Instant::now() + Duration::from_millis(50);
    let mut answers = probe.mount.invoke("hang", "{}".into(), Some(deadline));
    let late = answers.next().await.unwrap().unwrap_err();
    assert_eq!(late.failure().code, Code::DeadlineExceeded);
    assert!(answers.next().await.is_none());
    assert_eq!(probe.ask("echo", &json!({})).await.unwrap(), json!({}));
    assert_eq!(probe.starts(), 1);
}

#[tokio::test]
async fn a_server_may_ask_and_change_and_make_noise() {
    let probe = MountedProbe::new(&[]);
    let told = probe.ask("ask", &json!({})).await.unwrap();
    let mut answers = told["answers"].as_array().unwrap().clone();
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(
        answers[0],
        json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    assert_eq!(
        (&answers[1]["id"], &answers[1]["error"]["code"]),
        (&json!("r"), &json!(-32601))
    );

    let mut changes = probe.mount.watch();
    probe.ask("learn", &json!({})).await.unwrap();
    let learned = changes.wait_for(|seen| seen.manifest.command("fly").is_some());
    tokio::time::timeout(Duration::from_secs(20), learned)
        .await
        .unwrap()
        .unwrap();

    assert_eq!(
        probe.ask("noise", &json!({"lines": 99})).await.unwrap(),
        json!("done")
    );
    logged(&probe.mount, "this is no message").await;
    let failure = unanswered(probe.ask("noise", &json!({"lines": 100})).await);
    assert!(
        failure.message.contains("100 lines in a row"),
        "{}",
        failure.message
    );
    assert_eq!(probe.ask("echo", &json!({})).await.unwrap(), json!({}));
    assert_eq!(probe.starts(), 2);
}

#[tokio::test]
async fn stopping_ends_the_program_and_a_call_starts_it_again() {
    let probe = MountedProbe::new(&[]);
    let pid = probe.ask("pid", &json!({})).await.unwrap();
    probe.mount.stop().await;
    logged(&probe.mount, "input ended").await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(probe.mount.snapshot().status.state, ClipState::Sleeping);
    assert_ne!(probe.ask("pid", &json!({})).await.unwrap(), pid);
    assert_eq!(probe.starts(), 2);
}

#[tokio::test]
async fn a_hundred_calls_at_once() {
    let probe = MountedProbe::new(&[]);
    let inputs: Vec<Value> = (0..100)
        .map(|number| json!({"n": number, "text": "x".repeat(2000)}))
        .collect();
    let calls = inputs.iter().map(|input| probe.ask("echo", input));
    let answers = futures_util::future::join_all(calls).await;
    for (input, answer) in inputs.iter().zip(answers) {
        assert_eq!(*input, answer.unwrap());
    }
    assert_eq!(probe.starts(), 1);
}

#[tokio::test]
async fn nothing_outlives_its_owner() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let mut owner = Command::new(PROBE)
        .arg("own")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    let mut output = BufReader::new(owner.stdout.take().unwrap());
    output.read_line(&mut pid).unwrap();
    let server = format!("/proc/{}", pid.trim());
    assert!(std::path::Path::new(&server).exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = async {
        while std::path::Path::new(&server).exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(20), gone).await;
    assert!(gone.is_ok(), "{server} is still there");
}

/// Starts this crate's gateway as a server at a URL.
async fn gateway() -> (String, Arc<Fake>, DropGuard) {
    let fake = Fake::new();
    let gateway = Gateway::new(fake.clone(), GatewayScope::Clip("todo".into()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let ending = CancellationToken::new();
    let server = HttpServer::new(gateway.into(), Admission::with_token("secret"));
    tokio::spawn(server.serve(listener, ending.clone()));
    (url, fake, ending.drop_guard())
}

fn at(url: &str, token: &str) -> Mount {
    mounted(Target::Http {
        url: url.to_owned(),
        headers: vec![("authorization".into(), format!("Bearer {token}"))],
    })
}

#[tokio::test]
async fn a_server_at_an_address() {
    let (url, fake, server) = gateway().await;
    let mount = at(&url, "secret");
    assert_eq!(mount.inspect().await.unwrap().manifest.package, "todo");
    assert_eq!(
        ask(&mount, "add", &json!({"title": "x"})).await.unwrap(),
        json!({"added": "x"})
    );
    assert_eq!(
        ask(&mount, "count", &json!({"to": 2})).await.unwrap(),
        json!("1 2 ")
    );
    let failed = answered(ask(&mount, "fail", &json!({})).await);
    assert_eq!(failed.message, "it rained");
    // A slow answer comes as a stream; dropping it cancels the call.
    let mut answers = mount.invoke("wait", "{}".into(), None);
    let waited = tokio::time::timeout(Duration::from_millis(700), answers.next()).await;
    assert!(waited.is_err());
    assert_eq!(fake.live(), 1);
    drop(answers);
    fake.wait_for_live(0).await;
    mount.stop().await;
    assert_eq!(
        ask(&mount, "add", &json!({"title": "y"})).await.unwrap(),
        json!({"added": "y"})
    );
    drop(server);
    let gone = unanswered(ask(&mount, "add", &json!({})).await);
    assert_eq!(gone.code, Code::Unavailable);
}

#[tokio::test]
async fn an_address_that_is_none() {
    let (url, _fake, _server) = gateway().await;
    for (mount, words, code) in [
        (at(&url, "wrong"), "HTTP 401", Code::Unauthenticated),
        (
            at(&url.replace("/mcp", "/other"), "secret"),
            "the MCP server is at /mcp",
            Code::Unavailable,
        ),
        (
            at("http://127.0.0.1:1/mcp", "secret"),
            "127.0.0.1:1",
            Code::Unavailable,
        ),
        (
            at("ftp://example.invalid", "secret"),
            "no address",
            Code::Unavailable,
        ),
    ] {
        let failure = unanswered(ask(&mount, "add", &json!({})).await);
        assert_eq!(failure.code, code, "{words}");
        assert!(
            failure.message.contains(words),
            "{words}: {}",
            failure.message
        );
    }
}
