//! Servers at a URL that behave in ways that this crate's gateway does not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use pinion_clip::logs::ClipLog;
use pinion_mcp::{Mount, MountConfig, Target};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// One request as the server saw it.
#[derive(Debug, Clone)]
struct Seen {
    verb: String,
    headers: Vec<(String, String)>,
    message: Value,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// A JSON answer to this request.
    fn result(&self, result: &Value) -> String {
        reply(
            200,
            "application/json",
            &json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}).to_string(),
        )
    }

    fn fault(&self, status: u16, code: i64) -> String {
        let fault = json!({"jsonrpc": "2.0", "id": self.message["id"], "error": {"code": code, "message": "no"}});
        reply(status, "application/json", &fault.to_string())
    }
}

fn reply(status: u16, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

type Requests = Arc<Mutex<Vec<Seen>>>;

/// A server that answers each request with the text that `answer` gives, and closes the connection.
async fn server(answer: impl Fn(&Seen) -> String + Send + Sync + 'static) -> (Mount, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = Requests::default();
    let (seen, answer) = (requests.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (seen, answer) = (seen.clone(), answer.clone());
            tokio::spawn(async move {
                let request = read(&mut stream).await;
                seen.lock().unwrap().push(request.clone());
                let _ = stream.write_all(answer(&request).as_bytes()).await;
            });
        }
    });
    let target = Target::Http {
        url,
        headers: Vec::new(),
    };
    (
        Mount::new(MountConfig::new("s", target), ClipLog::in_memory().into()),
        requests,
    )
}

async fn read(stream: &mut tokio::net::TcpStream) -> Seen {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let verb = lines.next().unwrap().split(' ').next().unwrap().to_owned();
            let headers: Vec<_> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = length.map_or(0, |(_, length)| length.parse().unwrap());
            if body.len() >= length {
                let message = serde_json::from_str(body).unwrap_or_default();
                return Seen {
                    verb,
                    headers,
                    message,
                };
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            panic!("the request ended early: {text}");
        }
    }
}

async fn call(mount: &Mount, command: &str, input: &Value) -> Result<Value, String> {
    let mut answers = mount.invoke(command, Bytes::from(input.to_string()), None);
    match answers.next().await.unwrap() {
        Ok(output) => Ok(serde_json::from_slice(&output).unwrap()),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

fn tools(tools: &Value) -> Value {
    json!({"resultType": "complete", "tools": tools})
}

#[tokio::test]
async fn a_server_that_knows_only_the_newest_revision_is_never_greeted() {
    let (mount, requests) = server(|request| match request.method() {
        "server/discover" => request.result(&json!({"supportedVersions": ["2026-07-28"]})),
        "tools/list" => request.result(&tools(&json!([
            {"name": "go", "inputSchema": {"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "fast": {"type": "boolean", "x-mcp-header": "Fast"},
                "none": {"type": "string", "x-mcp-header": "None"},
            }}},
            {"name": "bad", "inputSchema": {"type": "object", "properties": {
                "x": {"type": "object", "x-mcp-header": "X"},
            }}},
        ]))),
        "tools/call" => request.result(&text("gone")),
        _ => request.fault(404, -32601),
    })
    .await;
    let input = json!({"region": " Süd", "fast": true, "none": null});
    assert_eq!(call(&mount, "go", &input).await.unwrap(), json!("gone"));
    let missing = call(&mount, "bad", &json!({})).await.unwrap_err();
    assert!(missing.contains("does not support"), "{missing}");

    let requests = requests.lock().unwrap().clone();
    let methods: Vec<_> = requests.iter().map(Seen::method).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    for request in &requests {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), Some(request.method()));
    }
    assert_eq!(requests[2].header("mcp-name"), Some("go"));
    assert_eq!(
        requests[2].header("mcp-param-region"),
        Some("=?base64?IFPDvGQ=?=")
    );
    assert_eq!(requests[2].header("mcp-param-fast"), Some("true"));
    assert_eq!(requests[2].header("mcp-param-none"), None);
}

#[tokio::test]
async fn a_server_of_an_older_revision_is_greeted_after_all() {
    // Each of these is an answer of some server to a method that it does not support before `initialize`.
    for refusal in ["error", "empty", "html", "not found"] {
        let (mount, requests) = server(move |request| match request.method() {
            "initialize" => request.result(&json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}})),
            "notifications/initialized" => reply(202, "text/plain", ""),
            "tools/list" => request.result(&tools(&json!([{"name": "go", "inputSchema": {"type": "object"}}]))),
            "tools/call" => request.result(&text("gone")),
            _ => match refusal {
                "error" => request.fault(400, -32000),
                "empty" => request.result(&json!({})),
                "html" => reply(500, "text/html", "<h1>oops</h1>"),
                _ => reply(404, "text/plain", "no such thing"),
            },
        })
        .await;
        assert_eq!(
            call(&mount, "go", &json!({})).await.unwrap(),
            json!("gone"),
            "{refusal}"
        );
        let requests = requests.lock().unwrap().clone();
        assert_eq!(requests[1].method(), "initialize");
        assert_eq!(requests[1].header("mcp-protocol-version"), None);
        assert_eq!(
            requests[3].header("mcp-protocol-version"),
            Some("2025-06-18")
        );
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_resumed_from_its_last_event() {
    let id = Arc::new(Mutex::new(Value::Null));
    let (mount, requests) = server(move |request| {
        match (request.verb.as_str(), request.method()) {
            ("POST", "initialize") => {
                request.result(&json!({"protocolVersion": "2025-11-25", "capabilities": {}}))
            }
            ("POST", "tools/list") => request.result(&tools(
                &json!([{"name": "go", "inputSchema": {"type": "object"}}]),
            )),
            ("POST", "tools/call") => {
                *id.lock().unwrap() = request.message["id"].clone();
                reply(
                    200,
                    "text/event-stream",
                    "id: e-1\nretry: 10\ndata:\n\nid: e-2\ndata: {\"jsonrpc\"",
                )
            }
            ("GET", _) if request.header("last-event-id") == Some("e-1") => {
                reply(200, "text/event-stream", "id: e-2\ndata:\n\n")
            }
            ("GET", _) => {
                let answer =
                    json!({"jsonrpc": "2.0", "id": *id.lock().unwrap(), "result": text("resumed")});
                reply(
                    200,
                    "text/event-stream",
                    &format!("id: e-3\ndata: {answer}\n\n"),
                )
            }
            _ => request.fault(400, -32601),
        }
    })
    .await;
    assert_eq!(
        call(&mount, "go", &json!({})).await.unwrap(),
        json!("resumed")
    );
    let requests = requests.lock().unwrap().clone();
    let resumed: Vec<_> = requests
        .iter()
        .filter_map(|it| it.header("last-event-id"))
        .collect();
    assert_eq!(resumed, ["e-1", "e-2"]);
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_fails_the_call() {
    for (position, answer) in [
        ("", ""),
        ("id: 1\n", "refused"),
        ("id: 1\n", "ends at once"),
    ] {
        let (mount, requests) =
            server(
                move |request| match (request.verb.as_str(), request.method()) {
                    ("POST", "initialize") => request
                        .result(&json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
                    ("POST", "tools/list") => request.result(&tools(
                        &json!([{"name": "go", "inputSchema": {"type": "object"}}]),
                    )),
                    ("POST", "tools/call") => reply(
                        200,
                        "text/event-stream",
                        &format!("{position}retry: 1\ndata:\n\n"),
                    ),
                    ("GET", _) if answer == "refused" => reply(405, "text/plain", ""),
                    ("GET", _) => reply(200, "text/event-stream", ""),
                    _ => request.fault(400, -32601),
                },
            )
            .await;
        let failure = call(&mount, "go", &json!({})).await.unwrap_err();
        assert!(
            failure.contains("ended its answer before it was complete"),
            "{failure}"
        );
        let tries = requests
            .lock()
            .unwrap()
            .iter()
            .filter(|it| it.verb == "GET")
            .count();
        assert_eq!(
            tries,
            match answer {
                "" => 0,
                "refused" => 1,
                _ => 5,
            }
        );
    }
}
