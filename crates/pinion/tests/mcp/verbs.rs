//! The verbs `mcp`, `auth` and `config`, under both names of the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use pinion_testkit::mcp::{self, HttpServer};
use pinion_testkit::{Sandbox, Stage};
use serde_json::{Value, json};

use crate::stage::{Client, call, results, text};

/// A sandbox in which both names of the program run.
struct Home {
    sandbox: Sandbox,
}

impl Home {
    fn new() -> Self {
        let sandbox = Sandbox::new(9);
        std::fs::write(sandbox.agent().join("server.py"), mcp::SERVER).unwrap();
        let link = sandbox.root().join("pi");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pinion"), link).unwrap();
        Self { sandbox }
    }

    fn command(&self, name: &str, words: &[&str]) -> Command {
        let program = match name {
            "pi" => self.sandbox.root().join("pi"),
            _ => PathBuf::from(env!("CARGO_BIN_EXE_pinion")),
        };
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .envs(self.sandbox.environment())
            .current_dir(self.sandbox.work())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, name: &str, words: &[&str]) -> (Option<i32>, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(name, words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    }

    fn config(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.sandbox.agent().join("mcp.json")).unwrap())
            .unwrap()
    }
}

#[test]
fn servers_are_added_listed_and_removed() {
    let home = Home::new();
    let server = home.sandbox.agent().join("server.py");
    let server = server.to_str().unwrap();
    for name in ["pinion", "pi"] {
        let words = [
            "mcp",
            "add",
            "lab",
            "--env",
            "A=b=c",
            "--exposure",
            "direct",
            "--timeout",
            "5",
            "--",
            "python3",
            server,
            "",
        ];
        let (code, said, errors) = home.run(name, &words);
        assert_eq!(code, Some(0), "{errors}");
        assert!(said.starts_with("Added MCP server lab in "), "{said}");
        let expected = json!({"command": "python3", "args": [server, ""], "env": {"A": "b=c"},
            "exposure": "direct", "timeout": 5.0});
        assert_eq!(home.config()["mcpServers"]["lab"], expected);
        let (code, said, _) = home.run(name, &["mcp", "list"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.starts_with("lab  connected  stdio  direct  "),
            "{said}"
        );
        assert!(said.contains("\n  echo  Returns the text.\n"), "{said}");
        let (code, said, _) = home.run(name, &["mcp", "list", "--json"]);
        assert_eq!(code, Some(0));
        let listed: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(listed["servers"][0]["tools"].as_array().unwrap().len(), 10);
        let (code, said, _) = home.run(name, &["mcp", "remove", "lab"]);
        assert_eq!(code, Some(0));
        assert!(said.starts_with("Removed MCP server lab from "), "{said}");
        let (code, _, errors) = home.run(name, &["mcp", "remove", "lab"]);
        assert_eq!(code, Some(1));
        assert!(errors.contains("has no server \"lab\""), "{errors}");
    }
}

#[test]
fn a_failed_server_and_a_bad_entry_fail_the_list() {
    let home = Home::new();
    let mut entry = mcp::entry(&home.sandbox.agent(), "die");
    entry["description"] = "x".into();
    let config = json!({"mcpServers": {"lab": entry, "bad": {"url": 5}, "off": {"command": "none", "enabled": false}}});
    std::fs::write(home.sandbox.agent().join("mcp.json"), config.to_string()).unwrap();
    let (code, said, _) = home.run("pinion", &["mcp", "list"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("lab  failed") && said.contains("code 4"),
        "{said}"
    );
    assert!(said.contains("| started with die"), "{said}");
    assert!(said.contains("off  disabled"), "{said}");
    assert!(said.contains("server \"bad\": \"url\" must be"), "{said}");
    let (code, said, _) = home.run("pinion", &["doctor"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("server \"bad\""), "{said}");
}

#[test]
fn wrong_words_are_refused_and_never_a_prompt() {
    let home = Home::new();
    for (name, words, expected) in [
        ("pi", &["mcp", "lst"][..], "unknown command"),
        ("pi", &["auth", "chek"], "Did you mean `pinion auth check`?"),
        ("pi", &["config", "extra"], "extra"),
        ("pi", &["mcp", "add", "x"], "name a command after --"),
        (
            "pi",
            &["mcp", "add", "x", "--url", "u"],
            "\"url\" must begin with http",
        ),
        ("pi", &["mcp", "add", "a b", "--", "x"], "letters, digits"),
        (
            "pinion",
            &["mcp", "login", "none"],
            "there is no MCP server \"none\"",
        ),
        ("pinion", &["auth", "check"], "--provider or --model"),
        (
            "pinion",
            &["auth", "print-api-key", "--provider", "mok"],
            "Did you mean mock?",
        ),
        (
            "pinion",
            &["auth", "print-bearer-token", "--provider", "mock"],
            "there is no login for mock",
        ),
    ] {
        let (code, _, errors) = home.run(name, words);
        assert!(
            code != Some(0) && errors.contains(expected),
            "{words:?}: {code:?} {errors}"
        );
    }
    let (code, said, _) = home.run("pi", &["mcp"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("logout"), "{said}");
}

#[test]
fn credentials_are_checked_and_printed() {
    let home = Home::new();
    for name in ["pinion", "pi"] {
        let (code, said, _) = home.run(name, &["auth", "check", "--provider", "mock"]);
        assert_eq!((code, said.as_str()), (Some(0), "ready\n"));
        let (code, said, _) = home.run(name, &["auth", "check", "--provider", "openai", "--json"]);
        let expected = json!({"status": "not_ready", "provider": "openai", "reason": "credentials_not_configured"});
        assert_eq!(code, Some(1));
        assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), expected);
        let (code, said, _) = home.run(name, &["auth", "check", "--provider", "none"]);
        assert_eq!((code, said.as_str()), (Some(1), "not_ready\n"));
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    let auth = json!({
        "openai": {"type": "api_key", "key": "sk-test-0123456789"},
        "anthropic": {"type": "oauth", "access": "token-0123456789", "expires": now + 600_000},
    });
    let file = home.sandbox.agent().join("auth.json");
    std::fs::write(&file, auth.to_string()).unwrap();
    let (code, said, _) = home.run("pi", &["auth", "print-api-key", "--provider", "openai"]);
    assert_eq!((code, said.as_str()), (Some(0), "sk-test-0123456789\n"));
    let words = ["auth", "print-bearer-token", "--provider", "anthropic"];
    let (code, _, errors) = home.run("pi", &words);
    assert_eq!(code, Some(1));
    assert!(errors.contains("expires too soon"), "{errors}");
    let words = [&words[..], &["--min-expiry", "5m"]].concat();
    let (code, said, _) = home.run("pi", &words);
    assert_eq!((code, said.as_str()), (Some(0), "token-0123456789\n"));
    let (code, _, errors) = home.run("pi", &["auth", "print-api-key", "--provider", "anthropic"]);
    assert_eq!(code, Some(1), "{errors}");
}

#[test]
fn config_lists_packages() {
    let home = Home::new();
    for words in [&["config"][..], &["config", "-l"]] {
        let (code, said, errors) = home.run("pi", words);
        assert_eq!(code, Some(0), "{errors}");
        assert!(said.contains("settings.json"), "{said}");
    }
}

/// Signs in as a browser does: opens the address and follows its redirect.
fn browse(url: &str) {
    let get = |url: &str| {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get(url);
    let line = answer
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("location:"));
    let back = line.unwrap().split_once(": ").unwrap().1.trim();
    // Another request to the same address is refused.
    assert!(get(&back.replace("/callback", "/other")).starts_with("HTTP/1.1 404"));
    assert!(get(back).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_sign_in_is_stored_used_renewed_and_deleted() {
    let home = Home::new();
    let directory = tempfile::tempdir().unwrap();
    let server = HttpServer::start(directory.path(), &["oauth"]);
    let (code, ..) = home.run(
        "pi",
        &[
            "mcp",
            "add",
            "web",
            "--url",
            &server.url(),
            "--exposure",
            "direct",
        ],
    );
    assert_eq!(code, Some(0));
    let (code, said, _) = home.run("pi", &["mcp", "list"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("requires a sign-in: run `pinion mcp login web`"),
        "{said}"
    );
    let mut login = home
        .command("pi", &["mcp", "login", "web", "--timeout", "20"])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("http://"))
        .unwrap();
    assert!(
        url.contains("code_challenge_method=S256") && url.contains("scope=texts"),
        "{url}"
    );
    browse(&url);
    assert!(login.wait().unwrap().success());
    let file = home.sandbox.agent().join("mcp-auth.json");
    let mut stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let key = format!("mcp__web|{}", server.url());
    assert_eq!(stored[&key]["tokens"]["access_token"], "token-first");
    let (code, said, _) = home.run("pi", &["mcp", "list"]);
    assert_eq!(code, Some(0), "{said}");
    // A token that has expired is renewed.
    stored[&key]["tokensExpireAt"] = 5.into();
    std::fs::write(&file, stored.to_string()).unwrap();
    let (code, said, _) = home.run("pi", &["mcp", "list"]);
    assert_eq!(code, Some(0), "{said}");
    let stored: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(stored[&key]["tokens"]["access_token"], "token-second");
    let (code, ..) = home.run("pi", &["mcp", "logout", "web"]);
    assert_eq!(code, Some(0));
    let (code, ..) = home.run("pi", &["mcp", "list"]);
    assert_eq!(code, Some(1));
}

#[test]
fn a_refused_token_is_renewed_during_a_session() {
    let directory = tempfile::tempdir().unwrap();
    let server = HttpServer::start(directory.path(), &["oauth", "revoked"]);
    let turns = json!({"turns": [call("mcp__web__echo", json!({"text": "signed in"})), {"steps": ["done"]}]});
    let stage = Stage::new(env!("CARGO_BIN_EXE_pinion"), turns);
    let state = json!({"serverUrl": server.url(), "clientInformation": {"client_id": "client-1"},
        "tokens": {"access_token": "token-first", "refresh_token": "refresh-first", "token_type": "Bearer"}});
    stage.sandbox.add_agent_files(&json!({
        "mcp.json": {"mcpServers": {"web": {"url": server.url(), "exposure": "direct"}}},
        "mcp-auth.json": {format!("mcp__web|{}", server.url()): state},
    }));
    let mut client = Client::start(stage, &[]);
    let lines = client.run();
    assert_eq!(text(&results(&lines)[0]), "signed in");
    client.finish();
}
