//! `pinion profiles`: its output, its sources, the keys it never shows, and the files it does not trust.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, sync_channel};

use pinion_testkit::{Exit, Sandbox};
use serde_json::{Value, json};
use support::{args, offline_sandbox, pinion};

struct Ran {
    code: Exit,
    out: String,
    err: String,
}

fn run_with(sandbox: &Sandbox, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
    let output = pinion()
        .command(sandbox, &args(arguments))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: Exit::of(output.status),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    run_with(sandbox, arguments, &[])
}

/// Returns the lines of JSON on stdout of a run that succeeds.
fn rows(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let ran = run(sandbox, arguments);
    assert_eq!(
        ran.code,
        Exit::Code(0),
        "{arguments:?}: {}{}",
        ran.out,
        ran.err
    );
    let lines = ran.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn write(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.root().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns a sandbox with the user's own profiles, with keys in every place that can hold one.
fn sandbox() -> Sandbox {
    let sandbox = offline_sandbox(&json!({}));
    write(
        &sandbox,
        "home/.pinocchio/config.yaml",
        "profile: {active: fast, registries: [team.yaml]}\nprofiles:\n  fast:\n    display_name: Quick\n    stack: [{registry_slug: team, profile_slug: base}]\n    inference_settings: {chat: {engine: gpt-4o-mini}, client: {proxy_url: 'http://u:sk-planted-a@proxy'}}\n",
    );
    write(
        &sandbox,
        "home/.pinocchio/team.yaml",
        "slug: team\nprofiles:\n  base:\n    inference_settings:\n      chat: {api_type: openai, temperature: 0.2}\n      api: {api_keys: {openai-api-key: sk-planted-b}}\n  login:\n    inference_settings: {chat: {engine: c, api_type: claude}}\n    extensions: {pinocchio.oauth@v1: {access_token: sk-planted-c, refresh_token: sk-planted-d, expires_at: '2001-01-01T00:00:00Z'}}\n",
    );
    sandbox
}

#[test]
fn list_tells_every_profile_and_which_one_counts() {
    let sandbox = sandbox();
    let rows = rows(&sandbox, &["profiles", "list"]);
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{}/{} active={} default={} {} {} {}",
                row["registry"].as_str().unwrap(),
                row["profile"].as_str().unwrap(),
                row["active"],
                row["default"],
                row["engine"],
                row["apiType"],
                row["stack"]
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"config-inline/fast active=true default=true "gpt-4o-mini" "openai" ["team/base"]"#,
            r#"team/base active=false default=true null "openai" []"#,
            r#"team/login active=false default=false "c" "claude" []"#,
        ]
    );
    assert_eq!(rows[0]["displayName"], json!("Quick"));
}

#[test]
fn show_tells_what_a_run_would_have() {
    let sandbox = sandbox();
    let shown = &rows(&sandbox, &["profiles", "show"])[0];
    assert_eq!(shown["profile"], json!("fast"));
    assert_eq!(shown["lineage"], json!(["team/base", "config-inline/fast"]));
    assert_eq!(
        shown["inference_settings"]["chat"]["engine"],
        json!("gpt-4o-mini")
    );
    assert_eq!(
        shown["inference_settings"]["chat"]["temperature"],
        json!(0.2)
    );
    assert_eq!(
        shown["inference_settings"]["api"]["api_keys"],
        json!({"openai-api-key": "***"})
    );
    assert_eq!(shown["profile_settings"]["chat"].get("top_p"), None);
    let shown = &rows(&sandbox, &["profiles", "show", "Login"])[0];
    assert_eq!(shown["profile"], json!("login"));
    assert_eq!(
        shown["extensions"]["pinocchio.oauth@v1"]["access_token"],
        json!("***")
    );
    let ran = run(&sandbox, &["profiles", "show", "nobody"]);
    assert_eq!(ran.code, Exit::Code(1));
    assert_eq!(ran.out, "");
    assert!(
        ran.err
            .contains("there is no profile \"nobody\"; the profiles are: base, fast, login"),
        "{}",
        ran.err
    );
}

#[test]
fn debug_tells_who_said_what_and_who_is_asked() {
    let sandbox = sandbox();
    let told = &rows(&sandbox, &["profiles", "debug"])[0];
    assert_eq!(
        told["settings"]["chat.temperature"],
        json!({"value": 0.2, "from": "profile config-inline/fast"})
    );
    assert_eq!(
        told["settings"]["chat.top_p"],
        json!({"value": 1, "from": "defaults"})
    );
    assert_eq!(told["engine"]["api"], json!("openai-completions"));
    assert_eq!(
        told["engine"]["baseUrl"],
        json!("https://api.openai.com/v1")
    );
    let read: Vec<&str> = told["documents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|document| document["state"] == "read")
        .map(|document| document["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        read,
        [sandbox
            .home()
            .join(".pinocchio/config.yaml")
            .to_str()
            .unwrap()]
    );
    let told = &rows(&sandbox, &["profiles", "debug", "--profile=login"])[0];
    assert_eq!(told["engine"]["code"], json!("login_unusable"));
    let bare = offline_sandbox(&json!({}));
    let told = &rows(&bare, &["profiles", "debug"])[0];
    assert_eq!(told["engine"]["model"], json!("demo"));
    assert!(
        told["engine"]["notices"][0]
            .as_str()
            .unwrap()
            .contains("offline/demo")
    );
}

#[test]
fn no_key_is_ever_shown() {
    let sandbox = sandbox();
    let env = [
        ("PINOCCHIO_GEMINI_API_KEY", "sk-planted-e"),
        ("OPENAI_API_KEY", "sk-planted-f"),
    ];
    for arguments in [
        &["profiles", "list"][..],
        &["profiles", "list", "--json"],
        &["profiles", "show"],
        &["profiles", "show", "login"],
        &["profiles", "debug"],
        &["profiles", "debug", "--profile", "login"],
    ] {
        let ran = run_with(&sandbox, arguments, &env);
        assert_eq!(ran.code, Exit::Code(0), "{arguments:?}: {}", ran.err);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(!all.contains("planted"), "{arguments:?}: {all}");
        assert!(!ran.out.is_empty());
    }
}

#[test]
fn a_repository_that_is_not_trusted_is_not_obeyed() {
    let sandbox = sandbox();
    write(&sandbox, "work/.git/HEAD", "ref: refs/heads/main\n");
    write(
        &sandbox,
        "work/.pinocchio.yml",
        "profile: {active: evil}\nprofiles: {evil: {inference_settings: {api: {base_urls: {openai-base-url: 'https://evil.example'}}}}}\n",
    );
    let ran = run(&sandbox, &["profiles", "debug"]);
    assert_eq!(ran.code, Exit::Code(0), "{}", ran.err);
    assert!(!ran.out.contains("evil"), "{}", ran.out);
    assert!(
        ran.err.contains("not trusted") && ran.err.contains("pinion trust"),
        "{}",
        ran.err
    );
    let ran = run(&sandbox, &["profiles", "show", "--trust"]);
    assert!(ran.out.contains("evil.example"), "{}{}", ran.out, ran.err);
    assert_eq!(run(&sandbox, &["trust"]).code, Exit::Code(0));
    let ran = run(&sandbox, &["profiles", "show"]);
    assert!(ran.out.contains("evil.example"), "{}{}", ran.out, ran.err);
    assert_eq!(ran.err, "");
    let ran = run(&sandbox, &["profiles", "show", "--no-trust"]);
    assert!(!ran.out.contains("evil"), "{}", ran.out);
}

#[test]
fn mistakes_are_told_with_their_lines_and_codes() {
    let sandbox = offline_sandbox(&json!({}));
    write(
        &sandbox,
        "work/bad.yaml",
        "profile: {}\nopenai-chat: {}\nprofiles:\n  x: {colour: 1}\n",
    );
    let ran = run(&sandbox, &["profiles", "list", "--config-file", "bad.yaml"]);
    assert_eq!((ran.code, ran.out.as_str()), (Exit::Code(1), ""));
    assert!(
        ran.err
            .contains("bad.yaml:2:1: \"openai-chat\" is no longer a key"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("bad.yaml:4:7: profiles.x has no \"colour\""),
        "{}",
        ran.err
    );
    let ran = run(
        &sandbox,
        &["profiles", "list", "--config-file", "none.yaml"],
    );
    assert_eq!(ran.code, Exit::Code(1));
    for arguments in [
        &["profiles", "lst"][..],
        &["profiles", "list", "--colour"],
        &["profiles", "show", "--profile"],
    ] {
        assert_eq!(
            run(&sandbox, arguments).code,
            Exit::Code(2),
            "{arguments:?}"
        );
    }
    let help = run(&sandbox, &["profiles", "--help"]);
    assert!(help.out.contains("Examples:") && help.code == Exit::Code(0));
    assert_eq!(run(&sandbox, &["profiles"]).out, help.out);
    let none = run(&sandbox, &["profiles", "list"]);
    assert_eq!((none.code, none.out.as_str()), (Exit::Code(0), ""));
}

/// Starts a server that answers one chat completion, and returns its port and the request.
fn completions() -> (u16, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, got) = sync_channel(1);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        sender
            .send((head, serde_json::from_slice(&body).unwrap()))
            .unwrap();
        let answer = "data: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"from the profile\"}}]}\n\ndata: {\"id\":\"r\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}{answer}").as_bytes());
    });
    (port, got)
}

#[test]
fn a_profile_directs_a_run_and_beats_its_options() {
    let sandbox = offline_sandbox(&json!({}));
    let (port, got) = completions();
    let profile = |allowed: &str| {
        format!(
            "profiles:\n  local:\n    inference_settings:\n      chat: {{engine: llama, api_type: openai, temperature: 0.3, stop: [END]}}\n      api:\n        api_keys: {{openai-api-key: sk-planted-g}}\n        base_urls: {{openai-base-url: 'http://127.0.0.1:{port}/v1'}}\n        {allowed}\n"
        )
    };
    write(
        &sandbox,
        "work/x.yaml",
        "name: x\nshort: x\nprompt: Hello\n",
    );
    write(
        &sandbox,
        "home/.pinocchio/config.yaml",
        &profile("allow_http: {openai: true}"),
    );
    let ran = run(&sandbox, &["run-command", "x.yaml", "--rpc"]);
    assert_eq!(ran.code, Exit::Code(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("engine_init_failed"), "{}", ran.out);
    assert!(
        ran.out.contains("api.allow_local_networks.openai: true"),
        "{}",
        ran.out
    );

    let allowed = "allow_http: {openai: true}\n        allow_local_networks: {openai: true}";
    write(&sandbox, "home/.pinocchio/config.yaml", &profile(allowed));
    let arguments = [
        "run-command",
        "x.yaml",
        "--ai-engine",
        "ignored",
        "--ai-top-p",
        "0.9",
    ];
    let ran = run(&sandbox, &arguments);
    assert_eq!(ran.code, Exit::Code(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("from the profile"), "{}", ran.out);
    let (head, body) = got.recv_timeout(support::HANG).unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    assert!(
        head.contains("authorization: Bearer sk-planted-g"),
        "{head}"
    );
    for (name, value) in [
        ("model", json!("llama")),
        ("temperature", json!(0.3)),
        ("top_p", json!(0.9)),
        ("stop", json!(["END"])),
    ] {
        assert_eq!(body[name], value, "{name}");
    }
    assert!(!format!("{}{}", ran.out, ran.err).contains("planted"));
    let ran = run(
        &sandbox,
        &["run-command", "x.yaml", "--print-inference-settings"],
    );
    assert!(
        ran.out.contains("engine: llama") && ran.out.contains("***"),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(!ran.out.contains("planted"), "{}", ran.out);
}
