//! `pinion mcp`, and MCP servers in `mcp.json`.

use serde_json::{Value, json};

use crate::stage::{HANG, Home, Hub};

/// Sends these requests to `pinion mcp …` and returns the answers by id.
fn conversation(home: &Home, words: &[&str], requests: &[Value]) -> Vec<Value> {
    let mut lines = vec![json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    })];
    lines.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (id, request) in requests.iter().enumerate() {
        let mut request = request.clone();
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(id + 1);
        lines.push(request);
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut child = home
        .command("pinion", words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.as_bytes()).unwrap();
    let reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut answers = vec![Value::Null; requests.len() + 1];
    for line in std::io::BufRead::lines(reader) {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(id) = answer["id"].as_u64() {
            answers[usize::try_from(id).unwrap()] = answer;
        }
        if answers.iter().all(|answer| !answer.is_null()) {
            break;
        }
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    answers
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn clips_are_tools() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let requests = [
        json!({"method": "tools/list"}),
        call("list", json!({})),
        call(
            "invoke",
            json!({"clip": "probe", "command": "echo", "input": {"a": [1]}}),
        ),
        call("invoke", json!({"clip": "probe", "command": "fail"})),
    ];
    let answers = conversation(&home, &["mcp"], &requests);
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["list", "info", "invoke", "invoke_stream"]);
    assert!(answers[2].to_string().contains("probe"), "{}", answers[2]);
    assert_eq!(
        answers[3]["result"]["structuredContent"]["result"],
        json!({"a": [1]})
    );
    assert_eq!(answers[4]["result"]["isError"], true);
    let requests = [json!({"method": "tools/list"}), call("x_text", json!({}))];
    let answers = conversation(&home, &["mcp", "probe", "--tool-prefix", "x_"], &requests);
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(
        |tool| tool["name"] == "x_echo" && tool["inputSchema"]["required"] == json!(["title"])
    ));
    assert_eq!(
        answers[2]["result"]["content"][0]["text"],
        "line one\n\"two\""
    );
    let said = home.run(&["mcp", "nobody"]).failed(1);
    assert!(said.contains("nobody"), "{said}");
}

/// Checks that a tool's result refuses the input of `count` and names the member.
fn is_refused(result: &Value) {
    let problem = "the input of \"probe count\" is wrong: \"to\" must be an integer, not \"many\"";
    assert_eq!(result["content"][0]["text"], problem, "{result}");
    assert_eq!(result["structuredContent"]["code"], "invalid_argument");
    assert_eq!(result["isError"], true);
}

#[test]
fn inputs_are_checked_against_the_schema_on_standard_input() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let wrong = json!({"clip": "probe", "command": "count", "input": {"to": "many"}});
    let requests = [
        call("invoke", wrong.clone()),
        call("invoke_stream", wrong),
        call(
            "invoke",
            json!({"clip": "probe", "command": "count", "input": {"to": 1}}),
        ),
    ];
    let answers = conversation(&home, &["mcp"], &requests);
    is_refused(&answers[1]["result"]);
    is_refused(&answers[2]["result"]);
    assert_eq!(answers[3]["result"]["isError"], false, "{}", answers[3]);
    let requests = [call("count", json!({"to": "many"}))];
    let answers = conversation(&home, &["mcp", "probe"], &requests);
    is_refused(&answers[1]["result"]);
}

/// Posts a message to an MCP server and returns the head and the body of the answer.
fn post(url: &str, headers: &str, message: &Value) -> (String, String) {
    let host = url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned();
    let mut socket = std::net::TcpStream::connect(&host).unwrap();
    socket.set_read_timeout(Some(HANG)).unwrap();
    let body = message.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    std::io::Write::write_all(&mut socket, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut socket, &mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn inputs_are_checked_against_the_schema_over_http() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let server = home.command("pinion", &["mcp", "probe", "--http", "127.0.0.1:0"]);
    let server = Hub::start(server, home.path("mcp.err"));
    let token = std::fs::read_to_string(home.root().join("local.token")).unwrap();
    let authorization = format!("authorization: Bearer {}\r\n", token.trim());
    let begin = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    });
    let (head, _) = post(&server.url, &authorization, &begin);
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let headers =
        format!("{authorization}mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n");
    let mut wrong = call("count", json!({"to": "many"}));
    wrong["jsonrpc"] = json!("2.0");
    wrong["id"] = json!(1);
    let (head, body) = post(&server.url, &headers, &wrong);
    // The answer is JSON or an event whose data is JSON, in chunks.
    let answer = body.lines().find_map(|line| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        let answer: Value = serde_json::from_str(line).ok()?;
        answer["result"].is_object().then_some(answer)
    });
    let answer = answer.unwrap_or_else(|| panic!("{head}\n{body}"));
    is_refused(&answer["result"]);
}

#[test]
fn mcp_servers_are_clips() {
    let home = Home::new();
    home.write("server.py", SERVER);
    let path = home.path("server.py");
    let servers = json!({"mcpServers": {"Adder": {"command": "python3", "args": [path]}}});
    home.write(".pinion/hub/mcp.json", &servers.to_string());
    let mut hub = home.serve();
    let sum = home
        .run(&["invoke", "adder", "add", "--a", "2", "--b", "40"])
        .fine();
    assert_eq!(sum, "42\n");
    let shown = home.run(&["clip", "show", "adder"]).json();
    assert_eq!(shown["commands"][0]["name"], "add");
    hub.stop();
    home.write(".pinion/hub/mcp.json", "{\"mcpServers\": [");
    let hub = home.serve();
    assert!(!home.run(&["clip", "list"]).fine().contains("adder"));
    home.until("the complaint", || hub.said().contains("mcp.json"));
}

#[test]
fn whoever_uses_the_commands_of_a_clip_is_told_that_they_have_changed() {
    let home = Home::new();
    let _hub = home.serve_probe();
    let mut child = home
        .command("pinion", &["mcp", "probe"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let begin = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    });
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    std::io::Write::write_all(&mut stdin, format!("{begin}\n{ready}\n").as_bytes()).unwrap();
    let reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = std::sync::mpsc::sync_channel(64);
    std::thread::spawn(move || {
        for line in std::io::BufRead::lines(reader).map_while(Result::ok) {
            let _ = sender.send(serde_json::from_str::<Value>(&line).unwrap());
        }
    });
    let next = || lines.recv_timeout(HANG).unwrap();
    let begun = next();
    assert_eq!(
        begun["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    let clip = std::fs::read_to_string(home.path("probe/clip.json")).unwrap();
    // A change before the gateway has read the list for the first time is not announced, so there are several changes.
    let mut number = 0;
    let mut notice = None;
    home.until("a notice", || {
        number += 1;
        let changed = clip.replace("\"wait\"", &format!("\"linger{number}\""));
        home.write("probe/clip.json", &changed);
        home.run(&["clip", "add", "./probe", "--alias", "probe"])
            .fine();
        notice = lines.recv_timeout(std::time::Duration::from_secs(5)).ok();
        notice.is_some()
    });
    let notice = notice.unwrap();
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "adder", "version": "1"}}
    elif method == "tools/list":
        number = {"type": "number"}
        result = {"tools": [{"name": "add", "description": "Adds", "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}}]}
    elif method == "tools/call":
        given = message["params"]["arguments"]
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;
