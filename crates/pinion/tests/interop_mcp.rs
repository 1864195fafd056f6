//! The official server `everything` as tools of the agent, over stdio and HTTP. Needs the package from npm;
//! `cargo xtask test --all` installs it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pinion_testkit::{Exit, Stage};
use serde_json::{Value, json};

/// Longer than anything here takes.
const HANG: Duration = Duration::from_secs(60);

fn everything() -> PathBuf {
    let directory = std::env::var_os("PINION_MCP_EVERYTHING");
    let directory = directory.expect("PINION_MCP_EVERYTHING names the directory of the package");
    PathBuf::from(directory)
        .join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({"steps": [{"tool": format!("mcp__everything__{tool}"), "args": arguments, "id": id}]})
}

/// Calls tools of the server, one by one and by a script, and compares what the model and the clients receive.
fn check(server: Value) {
    let code = "const [sum, data] = await Promise.all([tools.mcp__everything__get_sum({a: 2, b: 3}), \
                tools.mcp__everything__get_structured_content({location: 'Chicago'})]);\n\
                text(sum.content[0].text); return typeof data.structuredContent.temperature";
    let turns = json!([
        call("a", "echo", json!({"message": "hello"})),
        call("b", "get_tiny_image", json!({})),
        call("c", "get_sum", json!({"a": "x"})),
        call("d", "trigger_long_running_operation", json!({"duration": 3, "steps": 6})),
        {"steps": [{"tool": "codemode", "args": {"code": code}, "id": "e"}]},
        {"steps": ["done"]},
    ]);
    let stage = Stage::new(env!("CARGO_BIN_EXE_pinion"), json!({ "turns": turns }));
    let mut entry = server;
    entry["exposure"] = "direct".into();
    entry["timeout"] = 2.into();
    let files = json!({"mcp.json": {"mcpServers": {"everything": entry}}});
    stage.sandbox.add_agent_files(&files);
    let flags = ["--rpc-dialect", "modern", "--tools", "+codemode"];
    let mut process = stage.start(&flags);
    process.ask(json!({"type": "prompt", "message": "go"}));
    let settled = process.find(0, 1, HANG, |line| line["type"] == "agent_settled");
    let lines: Vec<Value> = process.lines().into_iter().map(|line| line.value).collect();
    assert!(settled.is_some(), "{lines:#?}\n{}", process.stderr());
    let results: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "message_end")
        .map(|line| &line["message"])
        .filter(|message| message["role"] == "toolResult")
        .collect();
    let text = |at: usize| {
        let blocks = results[at]["content"].as_array().unwrap().iter();
        let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    };
    assert_eq!(text(0), "Echo: hello");
    let blocks = results[1]["content"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["mimeType"] == "image/png"));
    assert_eq!(results[2]["isError"], true, "{}", results[2]);
    assert!(
        text(3).starts_with("Long running operation completed"),
        "{}",
        results[3]
    );
    assert!(text(4).contains("sum of 2 and 3 is 5"), "{}", results[4]);
    assert!(
        text(4).contains("==> text 2/2 <==\nnumber"),
        "{}",
        results[4]
    );
    assert_eq!(results[4]["nestedCalls"]["complete"], true);
    process.close_stdin();
    assert_eq!(process.wait(HANG), Some(Exit::Code(0)));
}

#[test]
#[ignore = "needs @modelcontextprotocol/server-everything from npm"]
fn the_server_everything_over_stdio() {
    check(json!({"command": "node", "args": [everything(), "stdio"]}));
}

/// A server that ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs @modelcontextprotocol/server-everything from npm"]
fn the_server_everything_over_http() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new("node");
    command
        .arg(everything())
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _served = Served(command.spawn().unwrap());
    let begun = std::time::Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < HANG, "the server does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    check(json!({"url": format!("http://127.0.0.1:{port}/mcp")}));
}
