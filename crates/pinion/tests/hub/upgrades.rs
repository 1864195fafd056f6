//! Clips that are replaced, restarted, and call themselves.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::stage::Home;

/// A clip that answers with its version and its token, calls itself without end, and exits on request.
const CLIP: &str = r#"
import json, os, sys, threading
def say(line):
    with lock:
        print(json.dumps(line), flush=True)
lock = threading.Lock()
say({"type": "register", "manifest": {"commands": [{"name": name} for name in ["version", "token", "deeper", "leave"]]}})
waiting = {}
count = 0
for line in sys.stdin:
    line = json.loads(line)
    kind, number = line["type"], line.get("id")
    if kind == "invoke" and line["command"] == "version":
        say({"type": "result", "id": number, "output": VERSION})
    elif kind == "invoke" and line["command"] == "token":
        say({"type": "result", "id": number, "output": os.environ["PINIX_TOKEN"]})
    elif kind == "invoke" and line["command"] == "leave":
        os._exit(1)
    elif kind == "invoke":
        if count == 0:
            print("calling itself", file=sys.stderr, flush=True)
        count += 1
        waiting[f"c{count}"] = number
        say({"type": "invoke", "id": f"c{count}", "clip": "lab", "command": "deeper", "input": {}})
    elif number in waiting:
        error = line.get("error")
        said = {"type": "error", "error": error} if error else {"type": "result", "output": line.get("output")}
        say({**said, "id": waiting.pop(number)})
"#;

fn write(home: &Home, version: &str) {
    let about =
        json!({"name": "@me/lab", "version": version, "runtime": "python", "main": "lab.py"});
    home.write("lab/clip.json", &about.to_string());
    home.write(
        "lab/lab.py",
        &CLIP.replace("VERSION", &format!("{version:?}")),
    );
}

fn add(home: &Home, version: &str) {
    write(home, version);
    home.run(&["clip", "add", "./lab", "--alias", "lab"]).fine();
}

#[test]
fn callers_do_not_notice_that_a_clip_is_replaced() {
    let home = Home::new();
    let _hub = home.serve();
    add(&home, "0.0.1");
    let done = AtomicBool::new(false);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let mut answers = Vec::new();
            while !done.load(Ordering::Relaxed) {
                answers.push(home.run(&["invoke", "lab", "version"]).fine());
            }
            answers
        });
        for number in 2..5 {
            add(&home, &format!("0.0.{number}"));
        }
        done.store(true, Ordering::Relaxed);
        calling.join().unwrap()
    });
    assert!(answers.is_sorted(), "{answers:?}");
    assert_eq!(home.run(&["invoke", "lab", "version"]).fine(), "0.0.4\n");
}

#[test]
fn a_token_ends_with_the_process_it_was_made_for() {
    let home = Home::new();
    let _hub = home.serve();
    add(&home, "1.0.0");
    let token = || {
        home.run(&["invoke", "lab", "token"])
            .fine()
            .trim()
            .to_owned()
    };
    let with = |token: &str| {
        home.run(&["invoke", "--auth-token", token, "lab", "version"])
            .code
    };
    let first = token();
    assert_eq!(with(&first), 0);
    home.run(&["invoke", "lab", "leave"]).failed(1);
    let second = token();
    assert_ne!(first, second);
    assert_eq!((with(&first), with(&second)), (1, 0));
}

#[test]
fn a_clip_that_calls_itself_without_end_is_told_and_others_are_answered() {
    let home = Home::new();
    let _hub = home.serve();
    add(&home, "1.0.0");
    std::thread::scope(|scope| {
        let deep = scope.spawn(|| home.run(&["invoke", "lab", "deeper"]).failed(1));
        home.until("the first call", || {
            let log = home.run(&["clip", "logs", "lab"]).fine();
            log.contains("calling itself")
        });
        let version = ["invoke", "--timeout", "30s", "lab", "version"];
        assert_eq!(home.run(&version).fine(), "1.0.0\n");
        let said = deep.join().unwrap();
        assert!(said.contains("without end"), "{said}");
    });
}

#[test]
fn an_update_stays_with_the_registry_a_clip_came_from() {
    let home = Home::new();
    let _hub = home.serve();
    let publish = |registry: &str, version: &str| {
        write(&home, version);
        let about: Value = json!({"name": "@me/lab", "version": version, "description": "A lab",
            "runtime": "python", "main": "lab.py"});
        home.write("lab/clip.json", &about.to_string());
        let place = home.path(registry);
        std::fs::create_dir_all(&place).unwrap();
        let place = place.to_str().unwrap().to_owned();
        home.run_as(
            "pinix",
            &["registry", "publish", "./lab", "--registry", &place],
        )
        .fine();
        place
    };
    let ours = publish("ours", "1.0.0");
    let theirs = publish("theirs", "9.0.0");
    home.run(&[
        "clip",
        "add",
        &format!("registry:{ours}#@me/lab"),
        "--alias",
        "lab",
    ])
    .fine();
    home.run_as("pinix", &["config", "set", "registry", &theirs])
        .fine();
    publish("ours", "1.1.0");
    home.run(&["clip", "update", "lab"]).fine();
    assert_eq!(home.run(&["invoke", "lab", "version"]).fine(), "1.1.0\n");
    home.run(&["clip", "update", "lab", "--registry", &theirs])
        .fine();
    assert_eq!(home.run(&["invoke", "lab", "version"]).fine(), "9.0.0\n");
}

#[test]
fn what_clips_say_does_not_reach_the_terminal_as_it_is() {
    let home = Home::new();
    let _hub = home.serve();
    home.write(
        "odd/clip.json",
        r#"{"name":"@me/odd","runtime":"exec","main":"odd.sh","ipc":"direct","commands":[{"name":"a"},{"name":"b"}]}"#,
    );
    home.write(
        "odd/odd.sh",
        "#!/bin/sh\nwhile read -r line; do\nid=$(echo \"$line\" | sed 's/.*\"id\":\"\\([0-9]*\\)\".*/\\1/')\ncase $line in\n*'\"a\"'*) echo '{\"type\":\"response\",\"id\":\"'$id'\",\"output\":\"x\\u001b[31mred\"}' ;;\n*'\"b\"'*) echo '{\"type\":\"response\",\"id\":\"'$id'\",\"error\":\"y\\u001b[31mred\"}' ;;\nesac\ndone\n",
    );
    let file = home.path("odd/odd.sh");
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.run(&["clip", "add", "./odd"]).fine();
    // A program receives the text unchanged.
    assert_eq!(home.run(&["invoke", "odd", "a"]).fine(), "x\u{1b}[31mred\n");
    let said = home.run(&["invoke", "odd", "b"]).failed(1);
    assert!(said.contains("y\u{fffd}[31mred"), "{said}");
}
