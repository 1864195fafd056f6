//! The portal as the program serves it: a hub is started, a clip is added on the command line, and a browser signs in
//! with the token in the hub's file. Tests beside the hub cover the pages themselves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail loudly"
)]

use std::fs;
use std::time::Duration;

use pinion_testkit::browser::{Key, Page};
use pinion_testkit::{Browser, Exit, Process, Program, Sandbox, Signal};

const CLIP: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "invoke":
        print(json.dumps({"type": "response", "id": message["id"], "output": "Hello " + message["input"]["name"]}), flush=True)
"#;

const MANIFEST: &str = r#"{"name": "greeter", "version": "0.1.0", "runtime": "python", "main": "greeter.py", "ipc": "direct",
    "commands": [{"name": "greet", "input": {"name": {"type": "string", "required": true}}}]}"#;

fn arguments(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn address_of(hub: &Process) -> String {
    let mut address = String::new();
    hub.find(0, 1, Duration::from_secs(60), |line| {
        let text = line["__unparsed"].as_str().unwrap_or_default();
        let found = text.strip_prefix("Listening on ");
        found
            .inspect(|found| address = (*found).to_owned())
            .is_some()
    })
    .unwrap_or_else(|| panic!("the hub does not listen: {}", hub.stderr()));
    address
}

fn sign_in(page: &Page, token: &str) {
    page.fill("input[type=password]", token);
    page.press(Key::Enter);
    page.wait_for_element("h1");
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn the_program_serves_the_portal() {
    let sandbox = Sandbox::new(1);
    let program = Program::new(env!("CARGO_BIN_EXE_pinion"));
    let root = sandbox.work().join("hub");
    let place = sandbox.work().join("greeter");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("greeter.py"), CLIP).unwrap();
    fs::write(place.join("clip.json"), MANIFEST).unwrap();

    let serve = format!("hub serve --port 0 --root {}", root.display());
    let mut hub = program.start(&sandbox, &arguments(&serve));
    let address = address_of(&hub);
    let add = format!(
        "clip add local/greeter --path {} --root {}",
        place.display(),
        root.display()
    );
    let mut adding = program.start(&sandbox, &arguments(&add));
    assert_eq!(
        adding.wait(Duration::from_secs(60)),
        Some(Exit::Code(0)),
        "{}",
        adding.stderr()
    );

    let browser = Browser::start();
    let page = browser.page();
    page.open(&address);
    page.wait_for_element("input[type=password]");
    let token = fs::read_to_string(root.join("local.token")).unwrap();
    sign_in(&page, token.trim());
    page.click_text("greeter");
    page.click("a.command");
    page.fill(".run-form input", "Ada");
    page.press(Key::Enter);
    page.wait_for_text(".output .block", "Hello Ada");
    let complaints = page.complaints();
    assert!(
        complaints
            .iter()
            .all(|complaint| complaint == "401 /auth/session"),
        "{complaints:?}"
    );

    hub.signal(Signal::SIGTERM);
    assert_eq!(
        hub.wait(Duration::from_secs(60)),
        Some(Exit::Code(0)),
        "{}",
        hub.stderr()
    );
}
