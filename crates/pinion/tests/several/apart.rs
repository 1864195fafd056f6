//! Sessions of one process do not affect each other.

use pinion_testkit::{Exit, ModelServer, Sandbox, vectors};
use serde_json::{Value, json};

use super::{Several, last_text};
use crate::support::{Client, script};

fn with_extension(source: &str, more: &[&str]) -> (Several, ModelServer) {
    let server = ModelServer::start(json!({"directives": true}));
    let limits = json!({"extensionLimits": {"busySeconds": 2, "handlerSeconds": 2}});
    let sandbox: Sandbox = vectors::sandbox(&server, &limits);
    sandbox.add_files(&json!({"extension.ts": source}));
    let arguments = ["--mode", "rpc", "--multi-session", "-e", "extension.ts"];
    let client = Client::start(sandbox, &[&arguments, more].concat());
    (Several(client), server)
}

#[test]
fn l11_a_session_answers_while_another_waits_for_a_command() {
    let mut several = Several::start();
    let (slow, quick) = (several.open(json!({})), several.open(json!({})));
    let wait = script(&json!([{"tool": "bash", "args": {"command": "sleep 600"}}]));
    let from = several.prompt(&slow, &wait);
    several.0.wait_for(
        from,
        &json!({"type": "tool_execution_start", "sessionId": slow}),
    );
    let shell = json!({"type": "bash", "sessionId": slow, "command": "sleep 600"});
    several.0.send(shell);
    for number in 0..20 {
        let word = format!("answer {number}");
        let from = several.prompt(&quick, &script(&json!([{"text": word}])));
        assert_eq!(last_text(&several.wait_end(&quick, from)), word);
    }
    assert_eq!(several.runs_of(&quick), 20);
    several.data(json!({"type": "close_session", "sessionId": slow}));
    let shell = several
        .lines_of(&slow)
        .into_iter()
        .find(|line| line["command"] == "bash");
    assert!(shell.is_some(), "the command that was stopped is answered");
    assert_eq!(several.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_session_answers_while_the_extension_of_another_loops() {
    let (mut several, _server) = with_extension(
        r#"import * as fs from "node:fs";
           export default function (pi: any) {
             pi.registerCommand("spin", { handler: async () => { fs.writeFileSync("begun", ""); for (;;); } });
           }"#,
        &[],
    );
    let (stuck, free) = (several.open(json!({})), several.open(json!({})));
    several
        .0
        .send(json!({"type": "prompt", "sessionId": stuck, "message": "/spin"}));
    let begun = several.0.sandbox.work().join("begun");
    while !begun.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let from = several.prompt(&free, "SAY I am free");
    assert_eq!(last_text(&several.wait_end(&free, from)), "I am free");
    assert_eq!(several.listed().len(), 2);
    several.data(json!({"type": "close_session", "sessionId": stuck}));
    let from = several.prompt(&free, "SAY still here");
    assert_eq!(last_text(&several.wait_end(&free, from)), "still here");
    assert_eq!(several.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_session_is_opened_while_the_extension_of_another_does_not_begin() {
    let (mut several, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.on("session_start", async (_e: any, ctx: any) => { if (ctx.cwd.endsWith("slow")) await new Promise(() => {}); });
           }"#,
        &[],
    );
    std::fs::create_dir(several.0.sandbox.work().join("slow")).unwrap();
    let slow = several.open(json!({"cwd": "slow"}));
    let waiting = several
        .0
        .send(json!({"type": "get_state", "sessionId": slow}));
    let free = several.open(json!({}));
    let from = several.prompt(&free, "SAY hello");
    assert_eq!(last_text(&several.wait_end(&free, from)), "hello");
    several.data(json!({"type": "close_session", "sessionId": slow}));
    several.0.wait_answer(&waiting);
    assert_eq!(several.0.finish(), Exit::Code(0));
}

#[test]
fn l11_dialogs_go_to_the_session_that_asked() {
    let (mut several, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.registerCommand("ask", { handler: async (_a: string, ctx: any) => {
               const answer = await ctx.ui.input("what?");
               ctx.ui.notify("heard " + answer);
             } });
           }"#,
        &[],
    );
    let (a, b) = (several.open(json!({})), several.open(json!({})));
    let mut dialogs: Vec<Value> = Vec::new();
    for session in [&a, &b] {
        several
            .0
            .send(json!({"type": "prompt", "sessionId": session, "message": "/ask"}));
        let asked =
            json!({"type": "extension_ui_request", "sessionId": session, "method": "input"});
        let at = several.0.wait_for(0, &asked);
        dialogs.push(several.0.line(at)["id"].clone());
    }
    let choose = |session: &str, dialog: &Value, word: &str| json!({"type": "extension_ui_response", "sessionId": session, "id": dialog, "value": word});
    // An answer in the wrong session is ignored.
    let lines = [
        choose(&a, &dialogs[1], "wrong"),
        choose(&b, &dialogs[1], "bee"),
        choose(&a, &dialogs[0], "ay"),
    ];
    lines.iter().for_each(|line| several.0.process.send(line));
    for (session, word) in [(&a, "heard ay"), (&b, "heard bee")] {
        several.0.wait_for(
            0,
            &json!({"type": "extension_ui_request", "sessionId": session,
                                      "method": "notify", "message": word}),
        );
    }
    assert_eq!(several.0.finish(), Exit::Code(0));
}

#[test]
fn l11_questions_about_tool_calls_go_to_the_session_that_asks() {
    let sandbox = crate::support::offline_sandbox(&json!({}));
    let mut several = Several::with(sandbox, &["--approve", "ask"]);
    let (a, b) = (several.open(json!({})), several.open(json!({})));
    let call = script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": "echo made"}}], {"text": "done"}]}));
    let mut results = Vec::new();
    let from = several.prompt(&a, &call);
    several.prompt(&b, &call);
    for (session, choice) in [(&a, "Refuse"), (&b, "Allow once")] {
        let asked =
            json!({"type": "extension_ui_request", "sessionId": session, "method": "select"});
        let at = several.0.wait_for(from, &asked);
        let id = several.0.line(at)["id"].clone();
        several.0.process.send(
            &json!({"type": "extension_ui_response", "sessionId": session,
                                       "id": id, "value": choice}),
        );
    }
    for session in [&a, &b] {
        let messages = several.wait_end(session, from);
        let result = messages
            .iter()
            .find(|message| message["role"] == "toolResult")
            .unwrap();
        results.push(result["isError"].clone());
    }
    assert_eq!(results, [json!(true), json!(false)]);
}

#[test]
fn l11_an_extension_that_ends_the_program_ends_its_session() {
    let (mut several, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.registerCommand("leave", { handler: async () => { process.exit(3); } });
             pi.registerCommand("close", { handler: async (_a: string, ctx: any) => { ctx.shutdown(); } });
           }"#,
        &[],
    );
    let stays = several.open(json!({}));
    for command in ["/leave", "/close"] {
        let leaves = several.open(json!({}));
        several
            .0
            .send(json!({"type": "prompt", "sessionId": leaves, "message": command}));
        several.0.wait_for(
            0,
            &json!({"type": "session_closed", "sessionId": leaves, "reason": "ended"}),
        );
        let words = several.refusal(json!({"type": "get_state", "sessionId": leaves}));
        assert!(words.contains("there is no session"), "{words}");
    }
    let from = several.prompt(&stays, "SAY here");
    assert_eq!(last_text(&several.wait_end(&stays, from)), "here");
    assert_eq!(several.0.finish(), Exit::Code(0));
}

#[test]
fn l11_the_engine_of_a_closed_session_is_gone() {
    let (mut several, _server) = with_extension(
        r#"export default function (pi: any) { pi.registerCommand("x", { handler: async () => {} }); }"#,
        &[],
    );
    let stays = several.open(json!({}));
    let threads = |several: &Several| {
        let tasks = format!("/proc/{}/task", several.0.process.id());
        let entries = std::fs::read_dir(tasks).unwrap().flatten();
        let names = entries
            .map(|entry| std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default());
        // Threads of the runtime's pool come and go by themselves.
        names.filter(|name| !name.starts_with("tokio")).count()
    };
    let before = threads(&several);
    for _ in 0..10 {
        let id = several.open(json!({}));
        assert!(threads(&several) > before);
        several.data(json!({"type": "close_session", "sessionId": id}));
    }
    let end = std::time::Instant::now() + crate::support::HANG;
    while threads(&several) > before {
        assert!(
            std::time::Instant::now() < end,
            "{} threads, {before} before",
            threads(&several)
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    several.data(json!({"type": "get_state", "sessionId": stays}));
}
