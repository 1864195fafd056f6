//! The gateway over HTTP: admission, sessions, streams, and requests of the newest revision.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::fake::Fake;
use pinion_http::{FetchRequest, FetchResponse, Fetcher, Frame, SseParser};
use pinion_mcp::{Admission, Gateway, GatewayScope, HttpServer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

const TOKEN: &str = "secret";
const BOTH: &str = "application/json, text/event-stream";

/// A server, and a client of it.
struct TestGateway {
    address: SocketAddr,
    fake: Arc<Fake>,
    fetcher: Fetcher,
    ending: CancellationToken,
    _end: DropGuard,
}

impl TestGateway {
    async fn todo() -> Self {
        Self::new(
            GatewayScope::Clip("todo".into()),
            Admission::with_token(TOKEN),
        )
        .await
    }

    async fn new(exposes: GatewayScope, admission: Admission) -> Self {
        let fake = Fake::new();
        let gateway = Gateway::new(fake.clone(), exposes);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ending = CancellationToken::new();
        let server = HttpServer::new(gateway.into(), admission);
        tokio::spawn(server.serve(listener, ending.clone()));
        Self {
            address,
            fake,
            fetcher: Fetcher::default(),
            _end: ending.clone().drop_guard(),
            ending,
        }
    }

    async fn fetch(&self, method: &str, headers: &[(&str, &str)], body: Option<String>) -> Reply {
        self.fetch_at("/mcp", method, headers, body).await
    }

    async fn fetch_at(
        &self,
        path: &str,
        method: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Reply {
        let headers = headers.iter();
        let request = FetchRequest {
            method: method.to_owned(),
            url: format!("http://{}{path}", self.address),
            headers: headers
                .filter(|(_, value)| *value != "-")
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: body.map(Bytes::from),
            ..FetchRequest::default()
        };
        Reply {
            response: self.fetcher.fetch(request).await.unwrap(),
            parser: SseParser::new(),
            events: Vec::new(),
        }
    }

    /// Sends a message with additional headers.
    async fn post(&self, more: &[(&str, &str)], message: &Value) -> Reply {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", BOTH),
            ("authorization", "Bearer secret"),
        ];
        headers.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        headers.extend(more);
        self.fetch("POST", &headers, Some(message.to_string()))
            .await
    }

    async fn begin(&self) -> String {
        self.begin_with("2025-11-25").await
    }

    async fn begin_with(&self, version: &str) -> String {
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let reply = self.post(&[], &ask(0, "initialize", &hello)).await;
        assert_eq!(reply.status(), 200);
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        let answer = reply.json().await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        let call_with_progress = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let call_with_progress = self
            .post(&[("mcp-session-id", &session)], &call_with_progress)
            .await;
        assert_eq!(
            (
                call_with_progress.status(),
                call_with_progress.text().await.as_str()
            ),
            (202, "")
        );
        session
    }

    async fn listen(&self, session: &str, last: Option<&str>) -> Reply {
        let mut headers = vec![
            ("accept", "text/event-stream"),
            ("authorization", "Bearer secret"),
            ("mcp-session-id", session),
        ];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.fetch("GET", &headers, None).await
    }
}

struct Reply {
    response: FetchResponse,
    parser: SseParser,
    /// Ids and messages that were not read yet.
    events: Vec<(String, Value)>,
}

impl Reply {
    fn status(&self) -> u16 {
        self.response.status
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .response
            .headers
            .iter()
            .find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    async fn text(mut self) -> String {
        let mut text = Vec::new();
        while let Some(piece) = self.response.chunk().await.unwrap() {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    }

    async fn json(self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// Returns the id and the message of the next event; `None` at the end.
    async fn event(&mut self) -> Option<(String, Value)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        while self.events.is_empty() {
            let piece = tokio::time::timeout(Duration::from_secs(20), self.response.chunk());
            let piece = piece.await.expect("an event in time").unwrap()?;
            // The parser leaves ids out; they are on the first line of an event, which comes in one piece.
            let text = String::from_utf8(piece.to_vec()).unwrap();
            let mut ids = text
                .split("\n\n")
                .map(|event| event.strip_prefix("id: ").and_then(|it| it.lines().next()))
                .map(|id| id.unwrap_or_default().to_owned());
            let events = &mut self.events;
            let keep = |frame: Frame<'_>| {
                let message = serde_json::from_str(frame.data).unwrap_or_default();
                events.push((ids.next().unwrap_or_default(), message));
            };
            self.parser.push(&piece, keep).unwrap();
        }
        Some(self.events.remove(0))
    }

    async fn message(&mut self) -> Value {
        self.event().await.expect("a message").1
    }
}

fn ask(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    ask(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
    )
}

/// A call with progress notifications.
fn call_with_progress(id: u64, tool: &str, arguments: &Value) -> Value {
    ask(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}),
    )
}

fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

fn modern(mut message: Value) -> Value {
    let meta = &mut message["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    message
}

#[tokio::test]
async fn only_those_who_may_are_let_in() {
    let gateway = TestGateway::todo().await;
    let ping = ask(1, "ping", &json!({}));
    for (headers, status) in [
        (&[("authorization", "-")][..], 401),
        (&[("authorization", "Bearer wrong")], 401),
        (&[("origin", "http://evil.example")], 403),
        (&[("origin", "null")], 403),
        (&[("host", "evil.example")], 403),
        (&[("content-type", "text/plain")], 415),
        (&[("accept", "text/html")], 406),
        (&[], 400),
        (&[("mcp-session-id", "nonsense")], 404),
    ] {
        let reply = gateway.post(headers, &ping).await;
        assert_eq!(reply.status(), status, "{headers:?}");
        assert_eq!(reply.header("www-authenticate").is_some(), status == 401);
        assert!(reply.json().await["error"]["message"].is_string());
    }
    let elsewhere = gateway.fetch_at("/", "POST", &[], None).await;
    assert_eq!(elsewhere.status(), 404);
    let put = gateway
        .fetch("PUT", &[("authorization", "Bearer secret")], None)
        .await;
    assert_eq!(
        (put.status(), put.header("allow")),
        (405, Some("POST, GET, DELETE, OPTIONS"))
    );
    assert_eq!(gateway.fake.live(), 0);
}

#[tokio::test]
async fn pages_of_a_known_origin_are_let_in() {
    let admission = Admission::with_token(TOKEN).and_origin("http://localhost:6274");
    let gateway = TestGateway::new(GatewayScope::Hub, admission).await;
    let origin = ("origin", "http://localhost:6274");
    let asked = gateway.fetch("OPTIONS", &[origin], None).await;
    assert_eq!(asked.status(), 204);
    assert_eq!(asked.header("access-control-allow-origin"), Some(origin.1));
    assert!(
        asked
            .header("access-control-allow-headers")
            .unwrap()
            .contains("Mcp-Session-Id")
    );
    let refused = gateway
        .fetch("OPTIONS", &[("origin", "http://evil.example")], None)
        .await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.header("access-control-allow-origin"), None);
    let reply = gateway
        .post(
            &[origin, ("authorization", "-")],
            &ask(1, "ping", &json!({})),
        )
        .await;
    assert_eq!(reply.status(), 401);
}

#[tokio::test]
async fn a_conversation_over_http() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let listed = gateway
        .post(&headers, &ask(1, "tools/list", &json!({})))
        .await
        .json()
        .await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 6);
    let added = gateway
        .post(&headers, &call("x", "add", &json!({"title": "milk"})))
        .await
        .json()
        .await;
    assert_eq!(
        added["result"]["structuredContent"],
        json!({"added": "milk"})
    );
    assert_eq!(added["id"], "x");
    let unknown = gateway
        .post(&headers, &ask(2, "prompts/list", &json!({})))
        .await;
    assert_eq!(unknown.status(), 200);
    assert_eq!(unknown.json().await["error"]["code"], -32601);
    let only_events = [headers[0], ("accept", "text/event-stream")];
    let mut pinged = gateway
        .post(&only_events, &ask(3, "ping", &json!({})))
        .await;
    assert_eq!(pinged.message().await["id"], 3);
    let wrong = [headers[0], ("mcp-protocol-version", "1999-01-01")];
    let refused = gateway.post(&wrong, &ask(4, "ping", &json!({}))).await;
    assert_eq!(refused.status(), 400);
    let answered = gateway
        .post(&headers, &json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        .await;
    assert_eq!(answered.status(), 202);
    let again = gateway
        .post(
            &headers,
            &ask(5, "initialize", &json!({"protocolVersion": "2025-11-25"})),
        )
        .await;
    assert_eq!(again.status(), 400);

    let gone = [("authorization", "Bearer secret"), headers[0]];
    assert_eq!(gateway.fetch("DELETE", &gone, None).await.status(), 204);
    assert_eq!(gateway.fetch("DELETE", &gone, None).await.status(), 404);
    assert_eq!(
        gateway
            .post(&headers, &ask(6, "ping", &json!({})))
            .await
            .status(),
        404
    );
    assert_eq!(gateway.listen(&session, None).await.status(), 404);
}

#[tokio::test]
async fn malformed_messages_are_refused() {
    let gateway = TestGateway::todo().await;
    let usual = [
        ("content-type", "application/json"),
        ("accept", BOTH),
        ("authorization", "Bearer secret"),
    ];
    for (body, code) in [
        ("nonsense", -32700),
        ("5", -32600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
    ] {
        let reply = gateway.fetch("POST", &usual, Some(body.to_owned())).await;
        assert_eq!(reply.status(), 400, "{body}");
        assert_eq!(reply.json().await["error"]["code"], code, "{body}");
    }
    let long = format!("\"{}\"", "x".repeat(17 * 1024 * 1024));
    let reply = gateway.fetch("POST", &usual, Some(long)).await;
    assert_eq!(reply.status(), 413);
}

#[tokio::test]
async fn parts_of_a_result_come_as_events() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut reply = gateway
        .post(
            &headers,
            &call_with_progress(7, "count", &json!({"to": 40})),
        )
        .await;
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    let (first, primer) = reply.event().await.unwrap();
    assert!(first.ends_with("-0") && primer.is_null());
    for number in 1..=40 {
        let (id, message) = reply.event().await.unwrap();
        assert!(id.ends_with(&format!("-{number}")));
        assert_eq!(message["params"]["message"], format!("{number} "));
    }
    assert_eq!(reply.message().await["id"], 7);
    assert!(reply.event().await.is_none());

    // A client that does not accept events receives only the result; clients of older revisions receive no priming
    // event.
    let json_only = [headers[0], ("accept", "application/json")];
    let whole = gateway
        .post(
            &json_only,
            &call_with_progress(8, "count", &json!({"to": 2})),
        )
        .await
        .json()
        .await;
    assert_eq!(whole["result"]["content"][0]["text"], "1 2 ");
    let older = gateway.begin_with("2025-06-18").await;
    let mut reply = gateway
        .post(
            &[("mcp-session-id", &older)],
            &call_with_progress(9, "count", &json!({"to": 1})),
        )
        .await;
    assert_eq!(reply.message().await["params"]["message"], "1 ");
}

#[tokio::test]
async fn a_call_is_taken_back_in_its_session_only() {
    let gateway = TestGateway::todo().await;
    let (ours, theirs) = (gateway.begin().await, gateway.begin().await);
    let mut waiting = gateway
        .post(
            &[("mcp-session-id", &ours)],
            &call_with_progress(1, "wait", &json!({})),
        )
        .await;
    waiting.event().await.unwrap();
    assert_eq!(waiting.message().await["params"]["message"], "waiting");
    let reply = gateway
        .post(&[("mcp-session-id", &theirs)], &cancelled(1))
        .await;
    assert_eq!(reply.status(), 202);
    assert_eq!(gateway.fake.live(), 1);
    gateway
        .post(&[("mcp-session-id", &ours)], &cancelled(1))
        .await;
    gateway.fake.wait_for_live(0).await;
    assert!(waiting.event().await.is_none());
    // The end of a session cancels everything in it.
    let mut waiting = gateway
        .post(
            &[("mcp-session-id", &ours)],
            &call_with_progress(2, "wait", &json!({})),
        )
        .await;
    waiting.event().await.unwrap();
    gateway.fake.wait_for_live(1).await;
    let gone = [
        ("authorization", "Bearer secret"),
        ("mcp-session-id", ours.as_str()),
    ];
    gateway.fetch("DELETE", &gone, None).await;
    gateway.fake.wait_for_live(0).await;
}

#[tokio::test]
async fn a_stream_is_resumed_where_it_was_left() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut reply = gateway
        .post(
            &headers,
            &call_with_progress(1, "count", &json!({"to": 60})),
        )
        .await;
    let mut last = String::new();
    for _ in 0..4 {
        last = reply.event().await.unwrap().0;
    }
    assert!(last.ends_with("-3"), "{last}");
    drop(reply);
    let mut resumed = gateway.listen(&session, Some(&last)).await;
    assert_eq!(resumed.status(), 200);
    let mut expected = 4;
    let answer = loop {
        let message = resumed.message().await;
        if message.is_null() {
            continue;
        }
        if message["method"].is_null() {
            break message;
        }
        assert_eq!(message["params"]["progress"], expected);
        expected += 1;
    };
    assert_eq!((&answer["id"], expected), (&json!(1), 61));
    assert!(resumed.event().await.is_none());
    // Its last events may have been lost, so they can be read again.
    let mut again = gateway.listen(&session, Some(&last)).await;
    while let Some((_, message)) = again.event().await {
        last = message["id"].to_string();
    }
    assert_eq!(last, "1");
    for unknown in ["99-1", "nonsense", "x-1", ""] {
        assert_eq!(gateway.listen(&session, Some(unknown)).await.status(), 400);
    }
}

#[tokio::test]
async fn a_lost_client_finds_its_answer_when_it_returns() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let headers = [("mcp-session-id", session.as_str())];
    // Waits long enough for the answer to become a stream, with nothing in it but the primer and one part.
    let mut reply = gateway
        .post(&headers, &call_with_progress(1, "wait", &json!({})))
        .await;
    let (primer, _) = reply.event().await.unwrap();
    reply.event().await.unwrap();
    drop(reply);
    // Time to cancel the call, if a lost connection did that.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        gateway.fake.live(),
        1,
        "losing the connection is not taking it back"
    );
    let mut resumed = gateway.listen(&session, Some(&primer)).await;
    let first = resumed.event().await.unwrap();
    let first = if first.1.is_null() {
        resumed.event().await.unwrap()
    } else {
        first
    };
    assert_eq!(first.1["params"]["message"], "waiting");
    gateway.post(&headers, &cancelled(1)).await;
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn changes_of_the_tools_are_told_to_those_who_listen() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let mut heard = gateway.listen(&session, None).await;
    assert_eq!(heard.status(), 200);
    let probe = gateway.fake.clone();
    probe.learn("fly");
    assert_eq!(
        heard.message().await["method"],
        "notifications/tools/list_changed"
    );
    // A second listener takes over.
    let mut second = gateway.listen(&session, None).await;
    assert!(heard.event().await.is_none());
    probe.learn("swim");
    assert_eq!(
        second.message().await["method"],
        "notifications/tools/list_changed"
    );
    let other = [
        ("authorization", "Bearer secret"),
        ("mcp-session-id", session.as_str()),
        ("accept", "application/json"),
    ];
    assert_eq!(gateway.fetch("GET", &other, None).await.status(), 406);
    assert_eq!(gateway.fetch("GET", &other[..1], None).await.status(), 405);
}

#[tokio::test]
async fn requests_may_stand_for_themselves() {
    let gateway = TestGateway::todo().await;
    let headers = |method| {
        [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ]
    };
    let discover = modern(ask(1, "server/discover", &json!({})));
    let found = gateway.post(&headers("server/discover"), &discover).await;
    assert_eq!(
        (found.status(), found.header("mcp-session-id")),
        (200, None)
    );
    assert_eq!(
        found.json().await["result"]["supportedVersions"][0],
        "2026-07-28"
    );

    let add = modern(call(2, "add", &json!({"title": "x"})));
    let named = |name| {
        [
            headers("tools/call")[0],
            headers("tools/call")[1],
            ("mcp-name", name),
        ]
    };
    let added = gateway.post(&named("add"), &add).await.json().await;
    assert_eq!(added["result"]["resultType"], "complete");
    let wrapped = gateway.post(&named("=?base64?YWRk?="), &add).await;
    assert_eq!(wrapped.status(), 200);
    for wrong in [
        &named("echo")[..],
        &headers("tools/call"),
        &headers("tools/list"),
        &[("mcp-method", "tools/call"), ("mcp-name", "add")],
        &[
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "add"),
        ],
    ] {
        let refused = gateway.post(wrong, &add).await;
        assert_eq!(refused.status(), 400, "{wrong:?}");
        assert_eq!(refused.json().await["error"]["code"], -32020, "{wrong:?}");
    }
    // The header names the revision, but the message does not.
    for params in [json!({}), json!({"_meta": {"progressToken": 1}})] {
        let silent = ask(3, "tools/list", &params);
        let silent = gateway.post(&headers("tools/list"), &silent).await;
        assert_eq!(silent.status(), 400);
        assert_eq!(silent.json().await["error"]["code"], -32602);
    }
    let later = [
        ("mcp-protocol-version", "2099-01-01"),
        ("mcp-method", "tools/list"),
    ];
    let differs = modern(ask(3, "tools/list", &json!({})));
    let differs = gateway.post(&later, &differs).await;
    assert_eq!(differs.status(), 400);
    assert_eq!(differs.json().await["error"]["code"], -32020);
    // Removed methods are as unknown as those that never existed.
    for method in ["prompts/list", "ping", "initialize"] {
        let unknown = modern(ask(4, method, &json!({"protocolVersion": "2025-11-25"})));
        let unknown = gateway.post(&headers(method), &unknown).await;
        assert_eq!(unknown.status(), 404, "{method}");
        assert_eq!(unknown.json().await["error"]["code"], -32601, "{method}");
    }
    let mut other = modern(ask(5, "tools/list", &json!({})));
    other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let other = gateway
        .post(
            &[
                ("mcp-protocol-version", "2099-01-01"),
                ("mcp-method", "tools/list"),
            ],
            &other,
        )
        .await;
    assert_eq!(other.status(), 400);
    assert_eq!(other.json().await["error"]["code"], -32022);

    let mut waiting = gateway
        .post(
            &named("wait"),
            &modern(call_with_progress(6, "wait", &json!({}))),
        )
        .await;
    let (id, message) = waiting.event().await.unwrap();
    assert_eq!(
        (id.as_str(), &message["params"]["message"]),
        ("", &json!("waiting"))
    );
    assert_eq!(gateway.fake.live(), 1);
    drop(waiting);
    gateway.fake.wait_for_live(0).await;
}

#[tokio::test]
async fn arguments_that_are_headers_too_must_agree_with_them() {
    let routed = GatewayScope::Clip("routed".into());
    let gateway = TestGateway::new(routed, Admission::with_token(TOKEN)).await;
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let listed = [headers[0], ("mcp-method", "tools/list")];
    let tools = modern(ask(1, "tools/list", &json!({})));
    let tools = gateway.post(&listed, &tools).await.json().await;
    let property = |tool: usize| &tools["result"]["tools"][tool]["inputSchema"]["properties"];
    assert_eq!(property(0)["region"]["x-mcp-header"], "Region");
    assert_eq!(property(1)["region"], json!({"type": "string"}));

    let post = async |region: &Value, value: Option<&str>| {
        let message = modern(call(2, "echo", &json!({"region": region})));
        let mut headers = headers.to_vec();
        headers.extend(value.map(|value| ("mcp-param-region", value)));
        let reply = gateway.post(&headers, &message).await;
        (reply.status(), reply.json().await["error"]["code"].as_i64())
    };
    let mismatch = (400, Some(-32020));
    assert_eq!(post(&json!("Hello"), Some("Hello")).await, (200, None));
    assert_eq!(
        post(&json!("Hello"), Some("=?base64?SGVsbG8=?=")).await,
        (200, None)
    );
    assert_eq!(
        post(&json!("Hello"), Some("=?base64?SGVsbG8?=")).await,
        mismatch
    );
    assert_eq!(post(&json!("Hello"), Some("hello")).await, mismatch);
    assert_eq!(post(&json!("Hello"), None).await, mismatch);
    assert_eq!(post(&Value::Null, None).await, (200, None));
    assert_eq!(post(&Value::Null, Some("x")).await, mismatch);
}

#[tokio::test]
async fn a_silent_call_is_taken_back_with_its_connection() {
    let gateway = TestGateway::todo().await;
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "wait"),
        ("accept", "application/json"),
    ];
    let wait = modern(call(1, "wait", &json!({})));
    let asked = gateway.post(&headers, &wait);
    let gone = async {
        gateway.fake.wait_for_live(1).await;
    };
    tokio::select! {
        _ = asked => panic!("an answer"),
        () = gone => {}
    }
    gateway.fake.wait_for_live(0).await;
}

#[tokio::test]
async fn a_slow_reader_slows_the_clip_and_a_lost_one_does_not_hold_it() {
    let gateway = TestGateway::new(GatewayScope::Hub, Admission::with_token(TOKEN)).await;
    let session = gateway.begin().await;
    let flood = json!({"clip": "todo", "command": "flood"});
    let message = call_with_progress(1, "invoke_stream", &flood);
    let mut reply = gateway
        .post(&[("mcp-session-id", &session)], &message)
        .await;
    reply.event().await.unwrap();
    // The buffers of the sockets are large, but limited.
    let given = gateway.fake.flooded().await;
    assert!(given < 5000, "{given} parts of 4 kB were taken");
    drop(reply);
    // Without a reader, progress is dropped and the answer is stored.
    gateway.fake.wait_for_live(0).await;
    let mut resumed = gateway.listen(&session, Some("1-1")).await;
    let mut parts = 0;
    let answer = loop {
        let message = resumed.message().await;
        if message["id"] == 1 {
            break message;
        }
        parts += 1;
    };
    assert!(parts <= 65, "{parts} parts were kept");
    assert_eq!(
        answer["result"]["structuredContent"]["code"],
        "resource_exhausted"
    );
}

#[tokio::test]
async fn the_end_of_the_server_ends_everything() {
    let gateway = TestGateway::todo().await;
    let session = gateway.begin().await;
    let mut waiting = gateway
        .post(
            &[("mcp-session-id", &session)],
            &call_with_progress(1, "wait", &json!({})),
        )
        .await;
    waiting.event().await.unwrap();
    gateway.fake.wait_for_live(1).await;
    gateway.ending.cancel();
    gateway.fake.wait_for_live(0).await;
}
