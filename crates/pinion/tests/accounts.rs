//! Logins and keys through the real binary: stored, listed, tested, renewed once by many processes, and never shown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use pinion_testkit::Sandbox;
use serde_json::{Value, json};
use support::{args, offline_sandbox, pinion};

const KEY: &str = "gsk-planted-key-0123456789";

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = pinion().command(sandbox, &args(arguments));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run_with(sandbox: &Sandbox, arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = command(sandbox, arguments);
    command
        .stdin(Stdio::piped())
        .envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    finished(child)
}

fn run(sandbox: &Sandbox, arguments: &[&str], input: &str) -> Ran {
    run_with(sandbox, arguments, input, &[])
}

fn finished(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn stored(sandbox: &Sandbox) -> Value {
    let text = std::fs::read_to_string(sandbox.agent().join("auth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A server that answers each request with the same reply, and can hold its answers back.
struct Server {
    base: String,
    requests: Arc<Mutex<Vec<String>>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Server {
    fn start(status: u16, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            gate: Arc::new((Mutex::new(true), Condvar::new())),
        };
        let (requests, gate) = (Arc::clone(&server.requests), Arc::clone(&server.gate));
        let body = body.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (requests, gate, body) =
                    (Arc::clone(&requests), Arc::clone(&gate), body.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let (mut request, mut length) = (String::new(), 0);
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line).unwrap_or_default() == 0 {
                            return;
                        }
                        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                            length = value.trim().parse().unwrap();
                        }
                        request += &line;
                        if line == "\r\n" {
                            break;
                        }
                    }
                    let mut rest = vec![0; length];
                    reader.read_exact(&mut rest).unwrap();
                    request += &String::from_utf8(rest).unwrap();
                    requests.lock().unwrap().push(request);
                    let open = gate
                        .1
                        .wait_while(gate.0.lock().unwrap(), |open| !*open)
                        .unwrap();
                    drop(open);
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status} S\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                    );
                    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
                });
            }
        });
        server
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn hold(&self) {
        *self.gate.0.lock().unwrap() = false;
    }

    fn release(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }

    fn wait_for_request(&self) {
        while self.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_key_is_stored_for_its_owner_alone_listed_without_showing_it_and_removed() {
    let sandbox = offline_sandbox(&json!({}));
    sandbox.add_agent_files(
        &json!({"auth.json": r#"{"later":{"type":"unknown","deep":[1,{"x":2}]}}"#}),
    );
    let ran = run(&sandbox, &["login", "groq"], &format!("{KEY}\n"));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "Stored the key of groq.\n"),
        "{}",
        ran.err
    );
    let file = sandbox.agent().join("auth.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let expected = json!({"later": {"type": "unknown", "deep": [1, {"x": 2}]}, "groq": {"type": "api_key", "key": KEY}});
    assert_eq!(stored(&sandbox), expected);
    assert!(!sandbox.agent().join("auth.json.lock").exists());

    let variables = [("MISTRAL_API_KEY", "planted-environment-key")];
    let listed = run_with(&sandbox, &["auth", "list"], "", &variables);
    assert!(
        listed.out.contains("groq") && listed.out.contains("MISTRAL_API_KEY"),
        "{}",
        listed.out
    );
    let json_list = run_with(&sandbox, &["auth", "list", "--json"], "", &variables);
    let list: Value = serde_json::from_str(&json_list.out).unwrap();
    let groq = list
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["provider"] == "groq")
        .unwrap();
    assert_eq!(
        (&groq["kind"], &groq["usable"]),
        (&json!("key"), &json!(true))
    );
    for ran in [&ran, &listed, &json_list] {
        assert!(!ran.all().contains("planted"), "{}", ran.all());
    }
    let printed = run(
        &sandbox,
        &["auth", "print-api-key", "--provider", "groq"],
        "",
    );
    assert_eq!(printed.out, format!("{KEY}\n"));

    let ran = run(&sandbox, &["logout", "groq"], "");
    assert_eq!(
        ran.out, "Removed the stored credential of groq.\n",
        "{}",
        ran.err
    );
    assert_eq!(
        stored(&sandbox),
        json!({"later": {"type": "unknown", "deep": [1, {"x": 2}]}})
    );
    let ran = run(&sandbox, &["logout", "groq"], "");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "There is no stored credential of groq.\n")
    );
}

#[test]
fn a_typed_key_is_never_a_command_or_a_variable() {
    let sandbox = offline_sandbox(&json!({}));
    for key in ["!touch-planted $HOME", "$HOME-planted", "a$$b-planted"] {
        let ran = run(&sandbox, &["login", "groq"], &format!("{key}\n"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let printed = run(
            &sandbox,
            &["auth", "print-api-key", "--provider", "groq"],
            "",
        );
        assert_eq!(printed.out, format!("{key}\n"));
    }
}

#[test]
fn a_key_is_tested_with_one_request_before_it_is_stored() {
    let refusal = json!({"error": {"message": format!("Invalid API Key {KEY}")}}).to_string();
    let server = Server::start(401, &refusal);
    let sandbox = offline_sandbox(&json!({}));
    let models = |base: &str| {
        let models = json!({"providers": {"groq": {"baseUrl": base}}}).to_string();
        std::fs::write(sandbox.agent().join("models.json"), models).unwrap();
    };
    models(&server.base);
    let ran = run(&sandbox, &["login", "groq", "--test"], &format!("{KEY}\n"));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("Invalid API Key ***") && ran.err.contains("Nothing was stored."),
        "{}",
        ran.err
    );
    assert!(!ran.all().contains("planted"), "{}", ran.all());
    assert!(!sandbox.agent().join("auth.json").exists());
    assert_eq!(server.requests().len(), 1);
    assert!(server.requests()[0].contains(&format!("Bearer {KEY}")));

    let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Server::start(200, answer);
    models(&server.base);
    let ran = run(&sandbox, &["login", "groq", "--test"], &format!("{KEY}\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(stored(&sandbox)["groq"]["key"], KEY);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_pinion_does_not_imitate_is_said_with_what_to_do_instead() {
    let sandbox = offline_sandbox(&json!({}));
    for (provider, instead) in [
        ("openai-codex", "sign in to the provider openai instead"),
        ("google-gemini-cli", "GEMINI_API_KEY"),
        ("google-antigravity", "google-vertex"),
    ] {
        let ran = run(&sandbox, &["login", provider], "");
        assert_eq!(ran.code, Some(1), "{provider}: {}", ran.all());
        assert!(ran.err.contains(instead), "{provider}: {}", ran.err);
    }
    assert!(!sandbox.agent().join("auth.json").exists());
    // A key of the same vendor can be stored.
    let ran = run(&sandbox, &["login", "anthropic"], "sk-ant-planted\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("pinion does not imitate them"),
        "{}",
        ran.err
    );
}

#[test]
fn wrong_command_lines_change_nothing() {
    let sandbox = offline_sandbox(&json!({}));
    for (line, said) in [
        (&["login", "gorq"][..], "did you mean groq?"),
        (&["login", "groq", "mistral"], "pinion login"),
        (&["login", "groq", "--tset"], "--test"),
        (&["login"], "name the provider"),
        (&["logout", "gorq"], "did you mean groq?"),
        (&["auth", "lst"], "pinion auth list"),
    ] {
        let ran = run(&sandbox, line, "key\n");
        assert_eq!(ran.code, Some(2), "{line:?}: {}", ran.all());
        assert!(ran.err.contains(said), "{line:?}: {}", ran.err);
    }
    let ran = run(&sandbox, &["login", "groq"], "");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let ran = run(&sandbox, &["login", "groq"], "\n");
    assert!(ran.err.contains("API key is missing"), "{}", ran.err);
    assert!(!sandbox.agent().join("auth.json").exists());
    let help = run(&sandbox, &["login", "--help"], "");
    assert!(
        help.out.contains("pinion hub login") && help.out.contains("pinion mcp login"),
        "{}",
        help.out
    );
}

#[test]
fn clouds_are_configured_with_variables_of_their_entry() {
    let sandbox = offline_sandbox(&json!({}));
    let ran = run(
        &sandbox,
        &["login", "cloudflare-ai-gateway"],
        "cf-planted-key\naccount\ngateway\n",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let expected = json!({"type": "api_key", "key": "cf-planted-key",
        "env": {"CLOUDFLARE_ACCOUNT_ID": "account", "CLOUDFLARE_GATEWAY_ID": "gateway"}});
    assert_eq!(stored(&sandbox)["cloudflare-ai-gateway"], expected);
}

fn expiring(sandbox: &Sandbox) {
    let entries = json!({
        "other": {"type": "unknown", "deep": {"x": [1, 2, 3]}},
        "kimi-coding": {"type": "oauth", "access": "planted-old-access", "refresh": "planted-old-refresh", "expires": 1},
        "groq": {"type": "api_key", "key": "planted-groq-key"},
    });
    std::fs::write(sandbox.agent().join("auth.json"), entries.to_string()).unwrap();
}

fn tokens() -> String {
    json!({"access_token": "planted-new-access", "refresh_token": "planted-new-refresh", "expires_in": 86_400}).to_string()
}

const TOKEN: [&str; 4] = ["auth", "print-bearer-token", "--provider", "kimi-coding"];

#[test]
fn sixty_four_processes_renew_an_expiring_login_once() {
    let sandbox = offline_sandbox(&json!({}));
    let server = Server::start(200, &tokens());
    expiring(&sandbox);
    server.hold();
    let children: Vec<Child> = (0..64)
        .map(|_| {
            let mut command = command(&sandbox, &TOKEN);
            command
                .stdin(Stdio::null())
                .env("KIMI_CODE_OAUTH_HOST", &server.base);
            command.spawn().unwrap()
        })
        .collect();
    server.wait_for_request();
    server.release();
    for child in children {
        let ran = finished(child);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "planted-new-access\n"),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("planted"), "{}", ran.err);
    }
    assert_eq!(server.requests().len(), 1, "one renewal");
    let after = stored(&sandbox);
    assert_eq!(after["kimi-coding"]["refresh"], "planted-new-refresh");
    assert_eq!(
        after["other"],
        json!({"type": "unknown", "deep": {"x": [1, 2, 3]}})
    );
    assert_eq!(after["groq"]["key"], "planted-groq-key");
    assert!(!sandbox.agent().join("auth.json.lock").exists());
}

#[test]
fn a_process_killed_in_the_middle_of_a_renewal_blocks_the_others_for_thirty_seconds_at_most() {
    let sandbox = offline_sandbox(&json!({}));
    let server = Server::start(200, &tokens());
    expiring(&sandbox);
    server.hold();
    let start = |server: &Server| {
        let mut command = command(&sandbox, &TOKEN);
        command
            .stdin(Stdio::null())
            .env("KIMI_CODE_OAUTH_HOST", &server.base);
        command.spawn().unwrap()
    };
    let mut first = start(&server);
    server.wait_for_request();
    first.kill().unwrap();
    first.wait().unwrap();
    let lock = sandbox.agent().join("auth.json.lock");
    assert!(lock.is_dir(), "the lock of a killed process stays");
    // The file is whole: nothing was written yet.
    assert_eq!(
        stored(&sandbox)["kimi-coding"]["refresh"],
        "planted-old-refresh"
    );
    server.release();
    let waiting: Vec<Child> = (0..8).map(|_| start(&server)).collect();
    // Thirty seconds pass for the lock.
    let old = SystemTime::now() - Duration::from_secs(31);
    std::fs::File::open(&lock)
        .unwrap()
        .set_modified(old)
        .unwrap();
    for child in waiting {
        let ran = finished(child);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "planted-new-access\n"),
            "{}",
            ran.err
        );
    }
    assert_eq!(
        server.requests().len(),
        2,
        "the killed one, and one renewal"
    );
    assert!(!lock.exists());
}

#[test]
fn tokens_are_in_no_log_error_session_or_event() {
    let sandbox = offline_sandbox(&json!({}));
    let refusal =
        json!({"error": "invalid_grant", "error_description": "planted-old-refresh is spent"})
            .to_string();
    let oauth = Server::start(400, &refusal);
    let models = Server::start(
        401,
        &json!({"error": {"message": "bad planted-new-access"}}).to_string(),
    );
    let file = json!({"providers": {"kimi-coding": {"baseUrl": models.base}}}).to_string();
    std::fs::write(sandbox.agent().join("models.json"), file).unwrap();
    let log = sandbox.work().join("pinion.log");
    let prompt = |server: &Server| {
        let line = [
            "--mode",
            "json",
            "--log",
            "trace",
            "--log-file",
            log.to_str().unwrap(),
            "--model",
            "kimi-coding/kimi-for-coding",
            "hello",
        ];
        run_with(
            &sandbox,
            &line,
            "",
            &[("KIMI_CODE_OAUTH_HOST", server.base.as_str())],
        )
    };
    expiring(&sandbox);
    let refused = prompt(&oauth);
    assert!(
        refused
            .out
            .contains("OAuth refresh failed for kimi-coding: "),
        "{}",
        refused.all()
    );
    let oauth = Server::start(200, &tokens());
    let renewed = prompt(&oauth);
    assert!(renewed.out.contains("bad ***"), "{}", renewed.all());
    assert!(models.requests()[0].contains("Bearer planted-new-access"));
    let mut written = vec![
        refused.all(),
        renewed.all(),
        std::fs::read_to_string(&log).unwrap(),
    ];
    let sessions = sandbox.session_files();
    assert!(!sessions.is_empty());
    written.extend(
        sessions
            .iter()
            .map(|(_, path)| std::fs::read_to_string(path).unwrap()),
    );
    for text in written {
        for token in [
            "planted-old-access",
            "planted-old-refresh",
            "planted-new-access",
            "planted-new-refresh",
        ] {
            assert!(!text.contains(token), "{token} in {text}");
        }
    }
}
