//! `run --format json`: opencode's lines, printed by pinion.

use std::io::Read;

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::support::script;

fn lines(text: &str) -> Vec<Value> {
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "the last line ends too"
    );
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn ask(stage: &Stage, prompt: &[u8]) -> (Option<i32>, Vec<Value>, String) {
    let ran = stage.finish(
        stage.command(&[
            "run",
            "--format",
            "json",
            "-m",
            "offline/demo",
            "--no-session",
        ]),
        prompt,
    );
    (ran.code, lines(&ran.stdout), ran.stderr)
}

#[test]
fn steps_texts_and_tools_have_opencodes_shape() {
    let stage = Stage::offline();
    let prompt = script(
        &json!({"turns": [[{"text": "Let me look."}, {"tool": "bash", "args": {"command": "echo hi"}}], {"text": "Done."}]}),
    );
    let (code, lines, stderr) = ask(&stage, prompt.as_bytes());
    assert_eq!(code, Some(0), "{stderr}");
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "step_start",
            "text",
            "tool_use",
            "step_finish",
            "step_start",
            "text",
            "step_finish"
        ]
    );
    let session = lines[0]["sessionID"].as_str().unwrap();
    for line in &lines {
        assert_eq!(
            (
                line["sessionID"].as_str(),
                line["part"]["sessionID"].as_str()
            ),
            (Some(session), Some(session))
        );
        assert!(
            line["timestamp"].is_u64()
                && line["part"]["id"].is_string()
                && line["part"]["messageID"].is_string()
        );
    }
    assert_eq!(lines[1]["part"]["text"], "Let me look.");
    let tool = &lines[2]["part"];
    assert_eq!(
        (tool["tool"].as_str(), tool["state"]["status"].as_str()),
        (Some("bash"), Some("completed"))
    );
    assert_eq!(tool["state"]["output"], "hi\n");
    assert_eq!(lines[3]["part"]["reason"], "tool-calls");
    let end = &lines[6]["part"];
    assert_eq!(
        (end["reason"].as_str(), end["type"].as_str()),
        (Some("stop"), Some("step-finish"))
    );
    assert!(
        end["tokens"]["input"].as_u64().unwrap() > 0
            && end["tokens"]["cache"]["read"].is_u64()
            && end["cost"].is_number()
    );
}

#[test]
fn a_failure_is_an_error_line_and_exit_code_1() {
    let stage = Stage::offline();
    let (code, lines, _) = ask(
        &stage,
        script(&json!({"error": {"status": 400, "message": "no such thing"}})).as_bytes(),
    );
    assert_eq!(code, Some(1));
    let last = lines.last().unwrap();
    assert_eq!(
        (last["type"].as_str(), last["error"]["name"].as_str()),
        (Some("error"), Some("APIError"))
    );
    assert_eq!(last["error"]["data"]["statusCode"], 400);
    assert_eq!(last["error"]["data"]["isRetryable"], false);
}

#[test]
fn s3_a_prompt_of_eight_megabytes_on_standard_input_works() {
    let stage = Stage::offline();
    // Room for all of it, so that nothing is summarised.
    let room = json!({"providers": {"offline": {"modelOverrides": {"demo": {"contextWindow": 100_000_000}}}}});
    stage.sandbox.add_agent_files(&json!({"models.json": room}));
    let mut prompt = script(&json!({"text": "Got it."}));
    prompt.push('\n');
    prompt.push_str(&"all work and no play \n".repeat((8 << 20) / 22));
    let (code, lines, stderr) = ask(&stage, prompt.as_bytes());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(lines.iter().any(|line| line["part"]["text"] == "Got it."));
    let tokens = lines.last().unwrap()["part"]["tokens"]["input"]
        .as_u64()
        .unwrap();
    assert!(tokens > 2_000_000, "{tokens}");
}

#[test]
fn l2_a_prompt_that_does_not_fit_and_is_answered_is_asked_once() {
    let stage = Stage::offline();
    let mut prompt = script(&json!({"text": "Got it."}));
    prompt.push('\n');
    prompt.push_str(&"all work and no play \n".repeat((8 << 20) / 22));
    let (code, lines, stderr) = ask(&stage, prompt.as_bytes());
    assert_eq!(code, Some(0), "{stderr}");
    // The conversation before it is summarised for the next prompt; this one has its answer.
    let answers = lines.iter().filter(|line| line["type"] == "step_finish");
    assert_eq!(answers.count(), 1);
}

#[test]
fn what_we_print_a_fleet_reads_as_opencode() {
    let stage = Stage::offline();
    let program = stage.program.command[0].to_string_lossy().into_owned();
    let plan = json!({"children": [{"name": "a", "agent": "opencode", "command": [program], "model": "offline/demo",
        "args": ["--no-session"], "prompt": script(&json!({"text": "Fine."}))}]});
    let ran = stage.run(&plan.to_string());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.child("a")["result"], "Fine.");
    assert_eq!(
        ran.child("a")["attempts"][0]["steps"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn lines_come_while_it_runs_and_end_well_when_it_is_ended() {
    let stage = Stage::offline();
    let mut command = stage.command(&[
        "run",
        "--format",
        "json",
        "-m",
        "offline/demo",
        "--no-session",
        &script(&json!({"stall": 60_000})),
    ]);
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 20];
    stdout.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"{\"type\":\"step_start\""), "{first:?}");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child.id() as i32),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    lines(&format!("{}{rest}", String::from_utf8_lossy(&first)));
}
