//! A gateway to fake clips, a fake MCP server, an owner of one for tests to kill, and a guardian for the processes it
//! starts.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up should fail"
)]

#[path = "../common/fake.rs"]
mod fake;

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use fake::Fake;
use pinion_clip::logs::ClipLog;
use pinion_mcp::{Admission, Gateway, GatewayScope, HttpServer, Mount, MountConfig, Target, stdio};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap();
    if first == pinion_process::GUARDIAN_ARGUMENT {
        pinion_process::guardian_main();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let rest: Vec<String> = arguments.collect();
    match first.as_str() {
        "gateway" => runtime.block_on(gateway(&rest)),
        "server" => Server::new(&rest).serve(),
        "own" => runtime.block_on(own()),
        "client" => runtime.block_on(client(&rest[0])),
        other => panic!("{other}"),
    }
}

/// Mounts the server at `url` and calls its tools: those that the conformance suite asks for, or each one once.
async fn client(url: &str) {
    let target = Target::Http {
        url: url.to_owned(),
        headers: Vec::new(),
    };
    let mount = Mount::new(MountConfig::new("s", target), ClipLog::in_memory().into());
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let seen = mount.inspect().await.unwrap();
    let calls: Vec<(String, Value)> = match context["toolCalls"].as_array() {
        Some(calls) => calls
            .iter()
            .map(|call| {
                (
                    call["name"].as_str().unwrap().to_owned(),
                    call["arguments"].clone(),
                )
            })
            .collect(),
        None => {
            let commands = seen.manifest.commands.iter();
            commands
                .map(|command| (command.name.clone(), example(&command.input)))
                .collect()
        }
    };
    for (name, arguments) in calls {
        let answers = mount.invoke(&name, arguments.to_string().into(), None);
        let _: Vec<_> = futures_util::StreamExt::collect(answers).await;
    }
    mount.stop().await;
}

/// Returns arguments of the types that a schema names.
fn example(schema: &str) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let value = |property: &Value| match property["type"].as_str() {
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("object") => json!({}),
        Some("array") => json!([]),
        _ => json!("x"),
    };
    properties
        .iter()
        .map(|(name, property)| (name.clone(), value(property)))
        .collect()
}

/// `gateway stdio|http|open hub|CLIP`
async fn gateway(words: &[String]) {
    let exposes = match words[1].as_str() {
        "hub" => GatewayScope::Hub,
        clip => GatewayScope::Clip(clip.to_owned()),
    };
    let gateway = Arc::new(Gateway::new(Fake::new(), exposes));
    if words[0] == "stdio" {
        let output = pinion_jsonl::stdio::claim_stdout().unwrap();
        return stdio(gateway, std::io::stdin(), output).await.unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    let admission = if words[0] == "open" {
        Admission::without_token()
    } else {
        Admission::with_token("secret")
    };
    let server = HttpServer::new(gateway, admission);
    server.serve(listener, CancellationToken::new()).await;
}

/// Mounts a server and prints its process id, then waits to be killed.
async fn own() {
    let target = Target::Command {
        words: vec![std::env::current_exe().unwrap().into(), "server".into()],
        directory: "/".into(),
        variables: Vec::new(),
        pass: Vec::new(),
    };
    let config = MountConfig::new("lab", target);
    let mount = Mount::new(config, ClipLog::in_memory().into());
    let mut answer = mount.invoke("pid", "{}".into(), None);
    let pid = futures_util::StreamExt::next(&mut answer)
        .await
        .unwrap()
        .unwrap();
    println!("{}", String::from_utf8(pid.to_vec()).unwrap());
    std::future::pending().await
}

fn print(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}").unwrap();
    stdout.flush().unwrap();
}

/// A server that obeys its caller, and also does things that a server should not do.
struct Server {
    modern: bool,
    more: Vec<&'static str>,
    /// The call that sent a request to the client, and the client's answers.
    asked: Option<(Value, Vec<Value>)>,
}

impl Server {
    fn new(words: &[String]) -> Self {
        if let Some(path) = std::env::var_os("PROBE_STARTS") {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            writeln!(file.unwrap(), "{}", std::process::id()).unwrap();
        }
        if words.contains(&"broken".to_owned()) {
            eprintln!("error: it is broken");
            std::process::exit(7);
        }
        Self {
            modern: words.contains(&"modern".to_owned()),
            more: Vec::new(),
            asked: None,
        }
    }

    fn serve(mut self) {
        for line in std::io::stdin().lock().lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            self.take(&message);
        }
        eprintln!("input ended");
    }

    fn take(&mut self, message: &Value) {
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else {
            if let Some((call, answers)) = &mut self.asked {
                answers.push(message.clone());
                if answers.len() == 2 {
                    let told = json!({"content": [], "structuredContent": {"answers": answers}});
                    print(&json!({"jsonrpc": "2.0", "id": call, "result": told}));
                }
            }
            return;
        };
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let is_modern = version == "2026-07-28";
        let result = match method {
            "initialize" if self.modern => Err(-32022),
            "initialize" => {
                assert_eq!(message["params"]["clientInfo"]["name"], "pinion");
                Ok(
                    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "probe", "title": "A probe", "version": "0.1"}, "instructions": "Ask nicely."}),
                )
            }
            "server/discover" if self.modern && is_modern => Ok(
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "probe", "version": "0.2"}}}),
            ),
            _ if self.modern && !is_modern => Err(-32602),
            "tools/list" => Ok(self.list(&message["params"]["cursor"])),
            "tools/call" => return self.call(id, &message["params"]),
            "notifications/cancelled" => {
                eprintln!("cancelled {}", message["params"]["requestId"]);
                return;
            }
            _ if id.is_null() => return,
            _ => Err(-32601),
        };
        print(&match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(code) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": {"supported": ["2026-07-28"]}}})
            }
        });
    }

    /// Two pages.
    fn list(&self, cursor: &Value) -> Value {
        let tool = |name: &str| json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object"}});
        if cursor.is_null() {
            let first = ["echo", "say", "image", "fail", "pid"].map(tool);
            return json!({"tools": first, "nextCursor": "second"});
        }
        let mut tools = [
            "die",
            "hang",
            "slow",
            "environment",
            "noise",
            "ask",
            "learn",
            "group/verb",
        ]
        .map(tool)
        .to_vec();
        tools.extend(self.more.iter().map(|name| tool(name)));
        json!({"tools": tools})
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = params["arguments"].clone();
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let result = match params["name"].as_str().unwrap() {
            "echo" => json!({"content": [], "structuredContent": arguments}),
            "say" => text(arguments["text"].as_str().unwrap()),
            "image" => json!({"content": [
                {"type": "text", "text": "here:"},
                {"type": "image", "mimeType": "image/png", "data": "aGk="},
            ]}),
            "fail" => {
                json!({"content": [{"type": "text", "text": "it cannot be done"}], "isError": true})
            }
            "pid" => json!({"content": [], "structuredContent": std::process::id()}),
            "die" => {
                eprintln!("error: dying");
                std::process::exit(3);
            }
            "hang" => {
                eprintln!("hanging");
                return;
            }
            "slow" => {
                let id = id.clone();
                let time = Duration::from_millis(arguments["ms"].as_u64().unwrap());
                std::thread::spawn(move || {
                    std::thread::sleep(time);
                    let result = json!({"content": [], "structuredContent": {"slept": true}});
                    print(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                });
                return;
            }
            "environment" => {
                let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                json!({"content": [], "structuredContent": {"names": names}})
            }
            "noise" => {
                let mut stdout = std::io::stdout().lock();
                for _ in 0..arguments["lines"].as_u64().unwrap() {
                    writeln!(stdout, "this is no message").unwrap();
                }
                text("done")
            }
            "ask" => {
                self.asked = Some((id.clone(), Vec::new()));
                print(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
                print(&json!({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}));
                return;
            }
            "learn" => {
                self.more.push("fly");
                print(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text("learned")
            }
            "group/verb" => text("grouped"),
            other => {
                print(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": format!("Unknown tool: {other}")}}),
                );
                return;
            }
        };
        print(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}
