//! Sessions whose commands are confined.

use std::fs;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::ground::{Ground, User};

type Check = fn(&Ground) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    (
        "commands_of_a_session_are_confined",
        commands_of_a_session_are_confined,
    ),
    ("settings_confine_a_session", settings_confine_a_session),
    (
        "tools_that_are_not_confined_are_refused",
        tools_that_are_not_confined_are_refused,
    ),
    (
        "without_a_sandbox_nothing_is_added",
        without_a_sandbox_nothing_is_added,
    ),
];

pub fn trials(user: User) -> Vec<Trial> {
    let trial = |&(name, check): &(&'static str, Check)| {
        let name = format!("{}::{name}", user.name());
        Trial::test(name, move || Ok(check(&Ground::new(user))?))
    };
    CHECKS.iter().map(trial).collect()
}

fn pinion(ground: &Ground, arguments: &[&str]) -> Command {
    let mut command = ground.program();
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command of the model and returns the output of pinion.
fn session(ground: &Ground, flags: &[&str], script: &str) -> Output {
    let call = json!({"tool": "bash", "args": {"command": script}});
    let prompt = format!("offline: {}", json!({"turns": [call, {"text": "done"}]}));
    let fixed = ["--mode", "json", "--no-session", "--model", "offline/demo"];
    pinion(ground, &fixed)
        .args(flags)
        .arg(prompt)
        .output()
        .unwrap()
}

/// The result of the only tool call.
fn result(output: &Output) -> Result<Value, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ends = lines.filter(|line| line["type"] == "tool_execution_end");
    ends.next().ok_or_else(|| {
        format!(
            "no result: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn commands_of_a_session_are_confined(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/file").display().to_string();
    let script = format!("echo inside > new; cat new; echo x > {file}");
    let end = result(&session(ground, &["--sandbox", "workspace"], &script))?;
    let text = end["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    let denied = &end["result"]["details"]["sandbox"]["denied"][0];
    let is_expected = end["isError"] == true
        && text.contains("inside")
        && text.ends_with(&format!("[The sandbox refused: write {file}.]"))
        && denied["op"] == "write"
        && denied["path"] == file.as_str()
        && fs::read_to_string(&file).unwrap() == "as it was";
    is_expected.then_some(()).ok_or_else(|| end.to_string())
}

fn settings_confine_a_session(ground: &Ground) -> Result<(), String> {
    let settings = ground.path("home/.pi/agent");
    fs::create_dir_all(&settings).unwrap();
    fs::write(
        settings.join("settings.json"),
        r#"{"sandbox": {"mode": "read-only"}}"#,
    )
    .unwrap();
    let end = result(&session(ground, &[], "echo x > new"))?;
    match end["isError"] == true && !ground.path("work/new").exists() {
        true => Ok(()),
        false => Err(end.to_string()),
    }
}

fn tools_that_are_not_confined_are_refused(ground: &Ground) -> Result<(), String> {
    let extension = ground.path("work/x.ts");
    fs::write(&extension, "export default () => {}").unwrap();
    let extension = extension.to_str().unwrap();
    for flags in [
        &["--tools", "bash,read"][..],
        &["--tools=+grep"],
        &["-e", extension],
    ] {
        let flags = [&["--sandbox", "workspace"], flags].concat();
        let output = session(ground, &flags, "touch ran");
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_refused = output.status.code() == Some(2) && errors.contains("cannot be confined");
        if !is_refused || ground.path("work/ran").exists() {
            return Err(format!("{flags:?}: {}: {errors}", output.status));
        }
    }
    let output = session(ground, &["--sandbox-write", "/tmp"], "touch ran");
    match output.status.code() == Some(2) && !ground.path("work/ran").exists() {
        true => Ok(()),
        false => Err("--sandbox-write without --sandbox was accepted".into()),
    }
}

fn without_a_sandbox_nothing_is_added(ground: &Ground) -> Result<(), String> {
    let file = ground.path("outside/new").display().to_string();
    let end = result(&session(ground, &[], &format!("echo x > {file}; env")))?;
    let text = end["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    let is_plain = end["isError"] == false
        && end["result"]
            .get("details")
            .is_none_or(|details| details.get("sandbox").is_none())
        && !text.contains("PINION_SANDBOX");
    is_plain.then_some(()).ok_or_else(|| end.to_string())
}
