//! Sessions of one process do not affect each other.

use pinion_testkit::{Exit, ModelServer, Sandbox, vectors};
use serde_json::{Value, json};

use super::{MultiSession, last_text};
use crate::support::{Client, script};

fn with_extension(source: &str, more: &[&str]) -> (MultiSession, ModelServer) {
    let server = ModelServer::start(json!({"directives": true}));
    let limits = json!({"extensionLimits": {"busySeconds": 2, "handlerSeconds": 2}});
    let sandbox: Sandbox = vectors::sandbox(&server, &limits);
    sandbox.add_files(&json!({"extension.ts": source}));
    let arguments = ["--mode", "rpc", "--multi-session", "-e", "extension.ts"];
    let client = Client::start(sandbox, &[&arguments, more].concat());
    (MultiSession(client), server)
}

#[test]
fn l11_a_session_answers_while_another_waits_for_a_command() {
    let mut client = MultiSession::start();
    let (slow, quick) = (client.open(json!({})), client.open(json!({})));
    let wait = script(&json!([{"tool": "bash", "args": {"command": "sleep 600"}}]));
    let from = client.prompt(&slow, &wait);
    client.0.wait_for(
        from,
        &json!({"type": "tool_execution_start", "sessionId": slow}),
    );
    let shell = json!({"type": "bash", "sessionId": slow, "command": "sleep 600"});
    client.0.send(shell);
    for number in 0..20 {
        let word = format!("answer {number}");
        let from = client.prompt(&quick, &script(&json!([{"text": word}])));
        assert_eq!(last_text(&client.wait_end(&quick, from)), word);
    }
    assert_eq!(client.runs_of(&quick), 20);
    client.data(json!({"type": "close_session", "sessionId": slow}));
    let shell = client
        .lines_of(&slow)
        .into_iter()
        .find(|line| line["command"] == "bash");
    assert!(shell.is_some(), "the command that was stopped is answered");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_session_answers_while_the_extension_of_another_loops() {
    let (mut client, _server) = with_extension(
        r#"import * as fs from "node:fs";
           export default function (pi: any) {
             pi.registerCommand("spin", { handler: async () => { fs.writeFileSync("begun", ""); for (;;); } });
           }"#,
        &[],
    );
    let (stuck, free) = (client.open(json!({})), client.open(json!({})));
    client
        .0
        .send(json!({"type": "prompt", "sessionId": stuck, "message": "/spin"}));
    let begun = client.0.sandbox.work().join("begun");
    while !begun.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let from = client.prompt(&free, "SAY I am free");
    assert_eq!(last_text(&client.wait_end(&free, from)), "I am free");
    assert_eq!(client.listed().len(), 2);
    client.data(json!({"type": "close_session", "sessionId": stuck}));
    let from = client.prompt(&free, "SAY still here");
    assert_eq!(last_text(&client.wait_end(&free, from)), "still here");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_a_session_is_opened_while_the_extension_of_another_does_not_begin() {
    let (mut client, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.on("session_start", async (_e: any, ctx: any) => { if (ctx.cwd.endsWith("slow")) await new Promise(() => {}); });
           }"#,
        &[],
    );
    std::fs::create_dir(client.0.sandbox.work().join("slow")).unwrap();
    let slow = client.open(json!({"cwd": "slow"}));
    let waiting = client
        .0
        .send(json!({"type": "get_state", "sessionId": slow}));
    let free = client.open(json!({}));
    let from = client.prompt(&free, "SAY hello");
    assert_eq!(last_text(&client.wait_end(&free, from)), "hello");
    client.data(json!({"type": "close_session", "sessionId": slow}));
    client.0.wait_answer(&waiting);
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_dialogs_go_to_the_session_that_asked() {
    let (mut client, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.registerCommand("ask", { handler: async (_a: string, ctx: any) => {
               const answer = await ctx.ui.input("what?");
               ctx.ui.notify("heard " + answer);
             } });
           }"#,
        &[],
    );
    let (a, b) = (client.open(json!({})), client.open(json!({})));
    let mut dialogs: Vec<Value> = Vec::new();
    for session in [&a, &b] {
        client
            .0
            .send(json!({"type": "prompt", "sessionId": session, "message": "/ask"}));
        let asked =
            json!({"type": "extension_ui_request", "sessionId": session, "method": "input"});
        let at = client.0.wait_for(0, &asked);
        dialogs.push(client.0.line(at)["id"].clone());
    }
    let choose = |session: &str, dialog: &Value, word: &str| json!({"type": "extension_ui_response", "sessionId": session, "id": dialog, "value": word});
    // An answer in the wrong session is ignored.
    let lines = [
        choose(&a, &dialogs[1], "wrong"),
        choose(&b, &dialogs[1], "bee"),
        choose(&a, &dialogs[0], "ay"),
    ];
    lines.iter().for_each(|line| client.0.process.send(line));
    for (session, word) in [(&a, "heard ay"), (&b, "heard bee")] {
        client.0.wait_for(
            0,
            &json!({"type": "extension_ui_request", "sessionId": session,
                                      "method": "notify", "message": word}),
        );
    }
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_questions_about_tool_calls_go_to_the_session_that_asks() {
    let sandbox = crate::support::offline_sandbox(&json!({}));
    let mut client = MultiSession::with(sandbox, &["--approve", "ask"]);
    let (a, b) = (client.open(json!({})), client.open(json!({})));
    let call = script(&json!({"turns": [
        [{"tool": "bash", "args": {"command": "echo made"}}], {"text": "done"}]}));
    let mut results = Vec::new();
    let from = client.prompt(&a, &call);
    client.prompt(&b, &call);
    for (session, choice) in [(&a, "Refuse"), (&b, "Allow once")] {
        let asked =
            json!({"type": "extension_ui_request", "sessionId": session, "method": "select"});
        let at = client.0.wait_for(from, &asked);
        let id = client.0.line(at)["id"].clone();
        client.0.process.send(
            &json!({"type": "extension_ui_response", "sessionId": session,
                                       "id": id, "value": choice}),
        );
    }
    for session in [&a, &b] {
        let messages = client.wait_end(session, from);
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
    let (mut client, _server) = with_extension(
        r#"export default function (pi: any) {
             pi.registerCommand("leave", { handler: async () => { process.exit(3); } });
             pi.registerCommand("close", { handler: async (_a: string, ctx: any) => { ctx.shutdown(); } });
           }"#,
        &[],
    );
    let stays = client.open(json!({}));
    for command in ["/leave", "/close"] {
        let leaves = client.open(json!({}));
        client
            .0
            .send(json!({"type": "prompt", "sessionId": leaves, "message": command}));
        client.0.wait_for(
            0,
            &json!({"type": "session_closed", "sessionId": leaves, "reason": "ended"}),
        );
        let words = client.refusal(json!({"type": "get_state", "sessionId": leaves}));
        assert!(words.contains("there is no session"), "{words}");
    }
    let from = client.prompt(&stays, "SAY here");
    assert_eq!(last_text(&client.wait_end(&stays, from)), "here");
    assert_eq!(client.0.finish(), Exit::Code(0));
}

#[test]
fn l11_the_engine_of_a_closed_session_is_gone() {
    let (mut client, _server) = with_extension(
        r#"export default function (pi: any) { pi.registerCommand("x", { handler: async () => {} }); }"#,
        &[],
    );
    let stays = client.open(json!({}));
    let threads = |client: &MultiSession| {
        let tasks = format!("/proc/{}/task", client.0.process.id());
        let entries = std::fs::read_dir(tasks).unwrap().flatten();
        let names = entries
            .map(|entry| std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default());
        // Threads of the runtime's pool come and go by themselves.
        names.filter(|name| !name.starts_with("tokio")).count()
    };
    let before = threads(&client);
    for _ in 0..10 {
        let id = client.open(json!({}));
        assert!(threads(&client) > before);
        client.data(json!({"type": "close_session", "sessionId": id}));
    }
    let end = std::time::Instant::now() + crate::support::HANG;
    while threads(&client) > before {
        assert!(
            std::time::Instant::now() < end,
            "{} threads, {before} before",
            threads(&client)
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    client.data(json!({"type": "get_state", "sessionId": stays}));
}
