//! `pinion invoke`: its requests, its output and its cancellation.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::stage::Home;

#[test]
fn words_become_the_input() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let echo = |words: &[&str]| {
        let mut all = vec!["invoke", "probe", "echo"];
        all.extend(words);
        home.run(&all).json()
    };
    assert_eq!(echo(&[]), json!({}));
    assert_eq!(
        echo(&[
            "--title",
            "Buy milk",
            "--n=3",
            "--done",
            "--tag",
            "a",
            "--tag",
            "b",
            "--o",
            "{\"x\":[1.50]}"
        ]),
        json!({"title": "Buy milk", "n": 3, "done": true, "tag": ["a", "b"], "o": {"x": [1.5]}})
    );
    assert_eq!(echo(&["Buy milk"]), json!({"title": "Buy milk"}));
    assert_eq!(
        echo(&["{\"whole\":[1,{\"a\":null}]}"]),
        json!({"whole": [1, {"a": null}]})
    );
    let fed = |input: &str, words: &[&str]| {
        let mut all = vec!["invoke", "probe", "echo"];
        all.extend(words);
        home.run_fed("pinion", &all, input.as_bytes()).json()
    };
    assert_eq!(
        fed("{\"from\":\"stdin\"}", &["-"]),
        json!({"from": "stdin"})
    );
    assert_eq!(
        fed("plain text\n", &["-", "--n", "1"]),
        json!({"n": 1, "stdin": "plain text\n"})
    );
    // Standard input is read only on request.
    assert_eq!(fed("{\"from\":\"stdin\"}", &[]), json!({}));
    let said = home.run(&["invoke", "probe", "echo", "a", "b"]).failed(2);
    assert!(said.contains("\"b\" has no name"), "{said}");
}

#[test]
fn answers_are_printed_for_people_or_programs() {
    let home = Home::new();
    let _hub = home.serve_probe();
    assert_eq!(
        home.run(&["invoke", "probe", "text"]).fine(),
        "line one\n\"two\"\n"
    );
    assert_eq!(
        home.run(&["invoke", "probe", "text", "--json"]).fine(),
        "\"line one\\n\\\"two\\\"\"\n"
    );
    assert_eq!(
        home.run(&["invoke", "probe", "count", "3"]).fine(),
        "[1,2,3]\n"
    );
    for words in [
        ["invoke", "--stream", "probe", "count", "3"],
        ["invoke", "probe", "count", "3", "--stream"],
    ] {
        assert_eq!(home.run(&words).fine(), "1\n2\n3\n");
    }
    let help = home.run(&["invoke", "probe", "count", "--help"]).fine();
    assert!(
        help.contains("--to integer, required") && !help.contains("echo"),
        "{help}"
    );
}

#[test]
fn failures_are_on_stderr_with_exit_code_1() {
    let home = Home::new();
    let _hub = home.serve_probe();
    for (words, expected) in [
        (&["probe", "fail"][..], "Error: it is too early"),
        (&["--stream", "probe", "fail"], "Error: it is too early"),
        (&["nobody", "x"], "nobody"),
        (&["probe", "nothing"], "nothing"),
        (&["--timeout", "300ms", "probe", "wait"], "Error:"),
        (
            &["--auth-token", "pns_wrong", "probe", "echo"],
            "does not accept this token",
        ),
    ] {
        let mut all = vec!["invoke"];
        all.extend(words);
        let said = home.run(&all).failed(1);
        assert!(said.contains(expected), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let said = home.run(&["invoke"]).failed(2);
    assert!(said.contains("invoke --help"), "{said}");
    let said = home.run(&["invoke", "probe"]).failed(2);
    assert!(said.contains("which command of probe"), "{said}");
}

#[test]
fn without_a_hub_it_says_what_to_do() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    for words in [
        &["invoke", "--server", &address, "probe", "echo"][..],
        &["clip", "list", "--server", &address],
        &["hub", "info", "--server", &address],
        &["mcp", "probe", "--server", &address],
    ] {
        let said = home.run(words).failed(1);
        assert!(
            said.contains("pinion hub serve") && said.contains(&address),
            "{said}"
        );
    }
    let said = home.run(&["clip", "list", "--server", "ftp://x"]).failed(1);
    assert!(said.contains("ftp://x"), "{said}");
}

#[test]
fn an_interrupt_takes_the_call_back() {
    let home = Home::new();
    let _hub = home.serve_probe();
    for words in [
        &["invoke", "probe", "wait"][..],
        &["invoke", "--stream", "probe", "wait"],
    ] {
        let logged = |what: &str| {
            let log = home.run(&["clip", "logs", "probe", "-n", "100"]).fine();
            log.matches(what).count()
        };
        let before = (logged("waiting"), logged("cancelled"));
        let mut command = home.command("pinion", words);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        home.until("the call", || logged("waiting") > before.0);
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        home.until("the cancellation", || logged("cancelled") > before.1);
    }
}

#[test]
fn a_guarded_clip_wants_its_secret() {
    let home = Home::new();
    let _hub = home.serve();
    home.write_probe("probe");
    home.run(&["clip", "add", "./probe", "--token", "open sesame"])
        .fine();
    let said = home.run(&["invoke", "probe", "echo"]).failed(1);
    assert!(said.contains("invalid clip token"), "{said}");
    let echoed = home.run(&[
        "invoke",
        "--clip-token",
        "open sesame",
        "probe",
        "echo",
        "--a",
        "1",
    ]);
    assert_eq!(echoed.json(), json!({"a": 1}));
}

#[test]
fn many_may_type_at_once() {
    let home = Home::new();
    let _hub = home.serve_probe();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|number| {
                let home = &home;
                scope.spawn(move || {
                    let number = number.to_string();
                    home.run(&["invoke", "probe", "echo", "--n", &number])
                        .json()
                })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(call.join().unwrap(), json!({"n": number}));
        }
    });
}

#[test]
fn tokens_go_only_where_they_belong() {
    let home = Home::new();
    let _hub = home.serve_probe();
    // Another server: it does not receive the local token, whatever it is.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part) {
            bytes.extend_from_slice(&part[..count]);
        }
        bytes
    });
    let ran = home.run(&["clip", "list", "--server", &address, "--timeout", "1s"]);
    assert_eq!(ran.code, 1);
    let token = std::fs::read_to_string(home.root().join("local.token")).unwrap();
    let heard = heard.join().unwrap();
    assert!(!heard.is_empty());
    let has = |bytes: &[u8], what: &str| bytes.windows(what.len()).any(|it| it == what.as_bytes());
    assert!(!has(&heard, token.trim()));
    // A clip, or a program with its variables, calls as itself.
    let mut command = home.command("pinion", &["clip", "list"]);
    command.env("PINIX_TOKEN", "pns_wrong");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let config: Value = json!({"hub": address});
    home.write(".pinion/hub/client.json", &config.to_string());
    assert_eq!(home.run(&["clip", "list", "--timeout", "1s"]).code, 1);
}

/// A clip whose command `relay` calls another clip and returns the answer to that call.
const RELAY: &str = r#"
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

waiting = {}
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "invoke":
        waiting["c" + message["id"]] = message["id"]
        say(type="invoke_clip", id="c" + message["id"], **message["input"])
    elif message["type"] == "invoke_clip_response":
        answer = {name: message.get(name) for name in ("output", "error")}
        say(type="response", id=waiting.pop(message["id"]), output=answer)
"#;

#[test]
fn inputs_of_calls_between_clips_are_checked_against_the_schema() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let manifest = json!({
        "name": "@me/relay", "version": "1.0.0", "runtime": "python", "main": "relay.py", "ipc": "direct",
        "commands": [{"name": "relay"}],
    });
    home.write("relay/clip.json", &manifest.to_string());
    home.write("relay/relay.py", RELAY);
    home.run(&["clip", "add", "./relay"]).fine();
    let relay = |command: &str, input: Value| {
        let call = json!({"clip": "probe", "command": command, "input": input});
        let call = call.to_string();
        home.run(&["invoke", "relay", "relay", &call]).json()
    };
    let wrong = relay("count", json!({"to": "many"}));
    let problem = "the input of \"probe count\" is wrong: \"to\" must be an integer, not \"many\"";
    assert_eq!(
        wrong["error"],
        json!({"code": "INVALID_ARGUMENT", "message": problem})
    );
    let right = relay("echo", json!({"title": "x"}));
    assert_eq!(right["output"], json!({"title": "x"}), "{right}");
}

#[test]
fn calls_of_clips_are_in_the_diagnostic_log_and_their_input_is_not() {
    let home = Home::new();
    home.write_probe("probe");
    let file = home.path("log.jsonl");
    let path = file.display().to_string();
    let flags = [
        "--log",
        "trace",
        "--log-format",
        "json",
        "--log-file",
        &path,
    ];
    let mut hub = home.serve_with(&flags);
    home.run(&["clip", "add", "./probe"]).fine();
    let walrus = "about walruses";
    home.run(&["invoke", "probe", "echo", "--title", walrus])
        .fine();
    home.run(&["invoke", "probe", "fail"]).failed(1);
    hub.stop();
    let log = std::fs::read_to_string(&file).unwrap();
    assert!(!log.contains(walrus), "{log}");
    let token = std::fs::read_to_string(home.root().join("local.token")).unwrap();
    assert!(!log.contains(token.trim()), "{log}");
    let records: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ended: Vec<&Value> = records
        .iter()
        .filter(|record| record["message"] == "clip call ended")
        .collect();
    assert_eq!(ended.len(), 2, "{log}");
    let span = &ended[0]["spans"][0];
    assert_eq!(
        *span,
        json!({"name": "clip_call", "alias": "probe", "command": "echo"})
    );
    assert_eq!(ended[0]["fields"]["code"], "ok");
    assert_ne!(ended[1]["fields"]["code"], "ok");
    // The messages of the hub's own log are there too.
    assert!(
        records
            .iter()
            .any(|record| record["target"] == "pinion_hub"),
        "{log}"
    );
}
