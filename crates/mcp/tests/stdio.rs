//! The gateway on standard input and output: lines in, lines out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::fake::Fake;
use pinion_mcp::{Gateway, GatewayScope, stdio};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A client that talks to a gateway through pipes.
struct Client {
    input: Option<PipeWriter>,
    output: mpsc::Receiver<Value>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn of(gateway: Gateway) -> Self {
        let (theirs, input) = std::io::pipe().unwrap();
        let (ours, output) = std::io::pipe().unwrap();
        let (sender, lines) = mpsc::channel(4096);
        std::thread::spawn(move || {
            for line in BufReader::new(ours).lines() {
                let line = line.unwrap();
                let value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if sender.blocking_send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            input: Some(input),
            output: lines,
            served: tokio::spawn(stdio(Arc::new(gateway), theirs, output)),
        }
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.say(&message.to_string());
    }

    fn ask(&mut self, id: impl Into<Value>, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
    }

    fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: &Value) {
        self.ask(
            id,
            "tools/call",
            &json!({"name": tool, "arguments": arguments}),
        );
    }

    async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(20), self.output.recv());
        next.await.expect("an answer in time").expect("an answer")
    }

    async fn begin(&mut self) {
        self.begin_with("2025-11-25").await;
    }

    async fn begin_with(&mut self, version: &str) {
        self.ask(0, "initialize", &hello(version));
        assert_eq!(self.next().await["result"]["protocolVersion"], version);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Closes the input and returns all messages until the end.
    async fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        let mut said = Vec::new();
        let served = tokio::time::timeout(Duration::from_secs(20), self.served);
        served.await.expect("an end").unwrap().unwrap();
        while let Some(value) = self.output.recv().await {
            said.push(value);
        }
        said
    }
}

fn hello(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
}

fn hub(fake: &Arc<Fake>) -> Client {
    Client::of(Gateway::new(fake.clone(), GatewayScope::Hub))
}

fn todo(fake: &Arc<Fake>) -> Client {
    Client::of(Gateway::new(
        fake.clone(),
        GatewayScope::Clip("todo".into()),
    ))
}

fn modern(params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

#[tokio::test]
async fn a_conversation_begins_with_initialize() {
    let mut client = hub(&Fake::new());
    client.ask("early", "tools/list", &json!({}));
    let refused = client.next().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("early"), &json!(-32600))
    );
    client.ask("alive", "ping", &json!({}));
    assert_eq!(
        client.next().await,
        json!({"jsonrpc": "2.0", "id": "alive", "result": {}})
    );
    client.ask(1, "initialize", &json!({}));
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.ask(2, "initialize", &hello("2030-01-01"));
    let begun = client.next().await;
    assert_eq!(begun["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        begun["result"]["serverInfo"],
        json!({"name": "pinix", "version": "v2"})
    );
    assert_eq!(
        begun["result"]["capabilities"],
        json!({"tools": {"listChanged": false}})
    );
    client.ask(3, "initialize", &hello("2025-11-25"));
    assert_eq!(client.next().await["error"]["code"], -32600);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn the_tools_of_a_hub() {
    let mut client = hub(&Fake::new());
    client.begin().await;
    client.ask(1, "tools/list", &json!({}));
    let listed = client.next().await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["list", "info", "invoke", "invoke_stream"]);
    assert!(
        tools
            .iter()
            .all(|tool| tool["inputSchema"]["type"] == "object")
    );
    assert_eq!(listed["result"].get("nextCursor"), None);

    client.call(2, "list", &Value::Null);
    let items = json!({"items": [
        {"kind": "clip", "name": "quiet", "status": "online", "source": "local", "domain": "", "commands": [], "online": true, "tokenProtected": false},
        {"kind": "clip", "name": "todo", "status": "online", "source": "local", "domain": "work",
         "commands": ["add", "count", "echo", "fail", "note add", "wait"], "online": true, "tokenProtected": false},
    ]});
    let answer = client.next().await;
    assert_eq!(answer["result"]["structuredContent"], items);
    assert_eq!(answer["result"]["isError"], false);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), items);

    client.call(3, "info", &json!({"clip": "todo"}));
    let told = client.next().await["result"]["structuredContent"].take();
    assert_eq!(
        (&told["kind"], &told["name"], &told["domain"]),
        (&json!("clip"), &json!("todo"), &json!("work"))
    );
    let add = &told["commands"][0];
    assert_eq!(add["name"], "add");
    assert_eq!(add["inputSchema"]["required"], json!(["title"]));
    assert_eq!(add["outputSchema"], json!({"type": "object"}));
    assert!(add["inputType"].is_string() && add["outputType"].is_string());
    assert_eq!(told["commands"][4]["inputType"], "{ text: string }");
    assert_eq!(
        told["commands"][4]["inputSchema"],
        json!({"type": "object", "properties": {}})
    );

    client.call(
        4,
        "invoke",
        &json!({"clip": "todo", "command": "add", "input": {"title": "milk"}}),
    );
    let answer = client.next().await;
    assert_eq!(
        answer["result"],
        json!({
            "content": [{"type": "text", "text": "{\"added\":\"milk\"}"}],
            "structuredContent": {"kind": "clip", "clip": "todo", "command": "add", "result": {"added": "milk"}},
            "isError": false,
        })
    );
    client.call(
        5,
        "invoke",
        &json!({"clip": "todo", "command": "count", "input": {"to": 2}}),
    );
    let answer = client.next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "1 2 ");
    assert_eq!(answer["result"]["structuredContent"]["result"], "1 2 ");
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn failures_are_results_and_slips_are_faults() {
    let mut client = hub(&Fake::new());
    client.begin().await;
    for (arguments, error) in [
        (json!({"clip": "todo", "command": "fail"}), "it rained"),
        (
            json!({"clip": "nobody", "command": "x"}),
            "Clip 'nobody' not found",
        ),
        (
            json!({"command": "x"}),
            "clip is required: use an alias that list returns",
        ),
        (
            json!({"clip": "todo"}),
            "command is required: use a name that info returns",
        ),
    ] {
        client.call(1, "invoke", &arguments);
        let result = client.next().await["result"].take();
        assert_eq!(result["isError"], true, "{arguments}");
        assert_eq!(result["structuredContent"]["error"], error);
        assert_eq!(result["content"][0]["text"], error);
    }
    for wrong in [
        json!({"clip": 5}),
        json!(["todo", "", "add"]),
        json!("todo"),
    ] {
        client.call(2, "invoke", &wrong);
        assert_eq!(client.next().await["result"]["isError"], true, "{wrong}");
    }
    client.call(3, "steal", &json!({}));
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.ask(4, "tools/call", &json!({"arguments": {}}));
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.ask(5, "tools/list", &json!({"cursor": "x"}));
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.ask(6, "resources/list", &json!({}));
    let unknown = client.next().await;
    assert_eq!(
        (&unknown["id"], &unknown["error"]["code"]),
        (&json!(6), &json!(-32601))
    );
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn the_commands_of_one_clip() {
    let fake = Fake::new();
    let gateway = Gateway::new(fake.clone(), GatewayScope::Clip("todo".into())).with_prefix("t_");
    gateway.check().await.unwrap();
    let mut client = Client::of(gateway);
    client.ask(0, "initialize", &hello("2024-11-05"));
    let begun = client.next().await;
    assert_eq!(begun["result"]["serverInfo"]["name"], "todo");
    assert_eq!(begun["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(
        begun["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    client.ask(1, "tools/list", &json!({}));
    let tools = client.next().await["result"]["tools"].take();
    let names: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(
        names,
        [
            "t_add",
            "t_count",
            "t_echo",
            "t_fail",
            "t_note_add",
            "t_wait"
        ]
    );
    assert_eq!(tools[0]["description"], "Adds a thing to do");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["title"]));

    client.call(2, "t_note_add", &json!({}));
    let result = client.next().await["result"].take();
    assert_eq!(result["structuredContent"], json!({"ok": true}));
    client.call(3, "t_count", &json!({"to": 3}));
    let result = client.next().await["result"].take();
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": "1 2 3 "}], "isError": false})
    );
    client.call(4, "t_fail", &json!({}));
    assert_eq!(client.next().await["result"]["isError"], true);
    client.call(5, "add", &json!({}));
    assert_eq!(client.next().await["error"]["code"], -32602);
    client.end().await;

    for clip in ["quiet", "nobody"] {
        let gateway = Gateway::new(fake.clone(), GatewayScope::Clip(clip.into()));
        assert!(gateway.check().await.is_err(), "{clip}");
    }
}

#[tokio::test]
async fn parts_of_a_result_are_told_as_they_come() {
    let mut client = hub(&Fake::new());
    client.begin().await;
    let count = json!({"clip": "todo", "command": "count", "input": {"to": 3}});
    client.ask(
        1,
        "tools/call",
        &json!({"name": "invoke_stream", "arguments": count, "_meta": {"progressToken": "p"}}),
    );
    for number in 1..=3 {
        assert_eq!(
            client.next().await,
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": "p", "progress": number, "message": format!("{number} "),
            }})
        );
    }
    assert_eq!(
        client.next().await["result"]["content"][0]["text"],
        "1 2 3 "
    );
    // The client did not ask for progress.
    client.call(2, "invoke_stream", &count);
    assert_eq!(client.next().await["id"], 2);
    client.ask(
        3,
        "tools/call",
        &json!({"name": "invoke", "arguments": count, "_meta": {"progressToken": 7}}),
    );
    assert_eq!(client.next().await["id"], 3);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_bad_line_costs_one_answer() {
    let mut client = hub(&Fake::new());
    client.begin().await;
    client.say("");
    client.say("nonsense");
    let told = client.next().await;
    assert_eq!(
        (told.get("id"), &told["error"]["code"]),
        (None, &json!(-32700))
    );
    client.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"");
    assert_eq!(client.next().await["error"]["code"], -32700);
    client.say("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]");
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.say("{\"id\":1,\"method\":\"ping\"}");
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/anything", "params": [1]}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    client.ask(2, "ping", &json!({}));
    assert_eq!(client.next().await["id"], 2);
    // Longer than a message may be; the next one is valid.
    client.say(&format!("{{\"x\":\"{}\"}}", "x".repeat(17 * 1024 * 1024)));
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.ask(3, "ping", &json!({}));
    assert_eq!(client.next().await["id"], 3);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn batches_are_answered_at_once_where_they_are_known() {
    let mut client = hub(&Fake::new());
    client.begin_with("2025-03-26").await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "invoke", "arguments": {"clip": "todo", "command": "add", "input": {"title": "x"}}}},
        5,
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": hello("2025-03-26")},
    ]);
    client.send(&batch);
    let answers = client.next().await;
    let mut ids: Vec<String> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].to_string())
        .collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3", "null"]);
    client.send(&json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]));
    client.ask(4, "ping", &json!({}));
    assert_eq!(client.next().await["id"], 4);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_request_that_is_taken_back_ends_and_is_not_answered() {
    let fake = Fake::new();
    let mut client = hub(&fake);
    client.begin().await;
    let wait = json!({"clip": "todo", "command": "wait"});
    client.ask(
        "w",
        "tools/call",
        &json!({"name": "invoke_stream", "arguments": wait, "_meta": {"progressToken": 1}}),
    );
    assert_eq!(client.next().await["params"]["message"], "waiting");
    assert_eq!(fake.live(), 1);
    client.ask("w", "ping", &json!({}));
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "other"}}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "w", "reason": "enough"}}));
    fake.wait_for_live(0).await;
    client.ask("w", "ping", &json!({}));
    assert_eq!(
        client.next().await,
        json!({"jsonrpc": "2.0", "id": "w", "result": {}})
    );
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_hundred_calls_at_once() {
    let fake = Fake::new();
    let mut client = todo(&fake);
    client.begin().await;
    for id in 1..=100 {
        client.call(id, "count", &json!({"to": 50}));
        client.call(format!("e{id}"), "echo", &json!({"n": id}));
    }
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        let answer = client.next().await;
        if let Some(id) = answer["id"].as_u64() {
            assert!(
                answer["result"]["content"][0]["text"]
                    .as_str()
                    .unwrap()
                    .ends_with("50 ")
            );
            assert!(seen.insert(id.to_string()));
        } else {
            let id = answer["id"].as_str().unwrap().to_owned();
            assert_eq!(
                format!("e{}", answer["result"]["structuredContent"]["n"]),
                id
            );
            assert!(seen.insert(id));
        }
    }
    assert_eq!(fake.begun.load(Ordering::SeqCst), 200);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn too_many_calls_are_refused_and_the_rest_go_on() {
    let fake = Fake::new();
    let mut client = todo(&fake);
    client.begin().await;
    for id in 0..300 {
        client.call(id, "wait", &json!({}));
    }
    for _ in 0..44 {
        assert!(
            client.next().await["error"]["message"]
                .as_str()
                .unwrap()
                .contains("256")
        );
    }
    fake.wait_for_live(256).await;
    for id in 0..300 {
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    fake.wait_for_live(0).await;
    client.ask("after", "ping", &json!({}));
    assert_eq!(client.next().await["id"], "after");
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn when_the_input_ends_every_call_has_an_answer() {
    let fake = Fake::new();
    let mut client = todo(&fake);
    client.begin().await;
    for id in 1..=20 {
        client.call(id, "count", &json!({"to": 100}));
    }
    client.call("a", "wait", &json!({}));
    client.call("b", "wait", &json!({}));
    let said = client.end().await;
    assert_eq!(fake.live(), 0);
    assert_eq!(
        said.iter()
            .filter(|answer| answer.get("result").is_some())
            .count(),
        20
    );
    let mut cut: Vec<_> = said
        .iter()
        .filter(|answer| answer.get("error").is_some())
        .collect();
    cut.sort_by_key(|answer| answer["id"].to_string());
    let ids: Vec<_> = cut.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
    assert!(
        cut[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("input ended")
    );
}

#[tokio::test]
async fn when_nobody_reads_the_calls_end() {
    let fake = Fake::new();
    let (theirs, mut input) = std::io::pipe().unwrap();
    let (ours, output) = std::io::pipe().unwrap();
    let gateway = Gateway::new(fake.clone(), GatewayScope::Clip("todo".into()));
    let served = tokio::spawn(stdio(Arc::new(gateway), theirs, output));
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25")}));
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}}));
    fake.wait_for_live(1).await;
    drop(ours);
    say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    let ended = tokio::time::timeout(Duration::from_secs(20), served).await;
    assert!(ended.expect("an end").unwrap().is_err());
    assert_eq!(fake.live(), 0);
}

#[tokio::test]
async fn a_slow_reader_slows_the_clip() {
    let fake = Fake::new();
    let (theirs, mut input) = std::io::pipe().unwrap();
    let (mut ours, output) = std::io::pipe().unwrap();
    let gateway = Gateway::new(fake.clone(), GatewayScope::Hub);
    let served = tokio::spawn(stdio(Arc::new(gateway), theirs, output));
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello("2025-11-25")}));
    let flood = json!({"clip": "todo", "command": "flood"});
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "invoke_stream", "arguments": flood, "_meta": {"progressToken": 1}}}));
    // The pipe, the message being written, and the queue.
    let given = fake.flooded().await;
    assert!(given < 100, "{given} parts of 4 kB were taken");
    // Reading the rest ends the call with an answer.
    let read = tokio::task::spawn_blocking(move || {
        let mut lines = BufReader::new(&mut ours).lines();
        lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            (line["id"] == 1).then_some(line)
        })
    });
    let answer = read.await.unwrap().unwrap();
    assert_eq!(
        answer["result"]["structuredContent"]["code"],
        "resource_exhausted"
    );
    assert_eq!(fake.live(), 0);
    drop(input);
    let _ = served.await.unwrap();
}

#[tokio::test]
async fn changes_of_the_tools_are_told() {
    let fake = Fake::new();
    let mut client = todo(&fake);
    client.begin().await;
    client.ask(1, "tools/list", &json!({}));
    client.next().await;
    fake.stir();
    client.ask(2, "ping", &json!({}));
    assert_eq!(client.next().await["id"], 2);
    fake.learn("fly");
    let told = client.next().await;
    assert_eq!(
        told,
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    );
    client.call(3, "fly", &json!({}));
    assert_eq!(client.next().await["result"]["isError"], true);
    assert_eq!(client.end().await, [] as [Value; 0]);
}

#[tokio::test]
async fn requests_may_stand_for_themselves() {
    let fake = Fake::new();
    let mut client = todo(&fake);
    client.ask(1, "server/discover", &modern(&json!({})));
    let found = client.next().await["result"].take();
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["supportedVersions"][0], "2026-07-28");
    assert!(
        found["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!("2025-11-25"))
    );
    assert_eq!(
        found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "todo"
    );
    client.ask(2, "tools/list", &modern(&json!({})));
    let listed = client.next().await["result"].take();
    assert_eq!(
        (&listed["ttlMs"], &listed["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    client.ask(
        3,
        "tools/call",
        &modern(&json!({"name": "add", "arguments": {"title": "x"}})),
    );
    let called = client.next().await["result"].take();
    assert_eq!(
        (&called["resultType"], &called["structuredContent"]),
        (&json!("complete"), &json!({"added": "x"}))
    );
    let mut other = modern(&json!({}));
    other["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    client.ask(4, "tools/list", &other);
    let refused = client.next().await["error"].take();
    assert_eq!(
        (&refused["code"], &refused["data"]["requested"]),
        (&json!(-32022), &json!("2099-01-01"))
    );
    // The arguments of earlier calls have no effect.
    client.ask(5, "tools/list", &json!({}));
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.ask(
        6,
        "subscriptions/listen",
        &modern(&json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}})),
    );
    let begun = client.next().await;
    assert_eq!(begun["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        begun["params"]["notifications"],
        json!({"toolsListChanged": true})
    );
    assert_eq!(
        begun["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        6
    );
    client.ask(7, "ping", &modern(&json!({})));
    assert_eq!(client.next().await["id"], 7);
    fake.learn("fly");
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        6
    );
    let said = client.end().await;
    assert_eq!(said.len(), 1);
    assert_eq!(
        (&said[0]["id"], &said[0]["result"]["resultType"]),
        (&json!(6), &json!("complete"))
    );
}
