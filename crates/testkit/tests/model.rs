//! The mock model server, seen through a plain socket.

#![allow(clippy::expect_used, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pinion_testkit::ModelServer;
use serde_json::{Value, json};

const PATHS: [(&str, &str); 4] = [
    ("anthropic", "/v1/messages"),
    ("chat", "/v1/chat/completions"),
    ("responses", "/v1/responses"),
    ("gemini", "/v1beta/models/gem-1:streamGenerateContent"),
];

fn ask(server: &ModelServer, path: &str, body: &Value) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("connect");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("send");
    BufReader::new(stream)
}

/// Status, and the body without its framing up to its end or the end of the connection.
fn read(reader: &mut BufReader<TcpStream>) -> (u16, Vec<Vec<u8>>) {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a status line");
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(0);
    let mut length = None;
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    if let Some(length) = length {
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        return (status, vec![body]);
    }
    let mut chunks = Vec::new();
    while let Some(chunk) = read_chunk(reader) {
        chunks.push(chunk);
    }
    (status, chunks)
}

fn read_chunk(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let size = usize::from_str_radix(line.trim(), 16)
        .ok()
        .filter(|size| *size > 0)?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}

fn stream(server: &ModelServer, path: &str) -> String {
    let mut reader = ask(
        server,
        path,
        &json!({"model": "m", "stream": true, "tools": [{}]}),
    );
    let (status, chunks) = read(&mut reader);
    assert_eq!(status, 200);
    String::from_utf8(chunks.concat()).expect("a stream in UTF-8")
}

fn data(stream: &str) -> Vec<Value> {
    let lines = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn text_of(events: &[Value]) -> String {
    let paths = [
        "/delta/text",
        "/choices/0/delta/content",
        "/delta",
        "/candidates/0/content/parts/0/text",
    ];
    let piece = |event: &Value| {
        paths
            .iter()
            .find_map(|path| event.pointer(path)?.as_str().map(str::to_owned))
    };
    events.iter().filter_map(piece).collect()
}

#[test]
fn each_dialect_sends_the_text_in_its_pieces() {
    for (name, path) in PATHS {
        let server = ModelServer::start(
            json!({"turns": [{"steps": [{"text": "grüße an alle", "chunk": 3}]}]}),
        );
        let events = data(&stream(&server, path));
        assert_eq!(text_of(&events), "grüße an alle", "{name}");
        assert_eq!(server.requests()[0]["api"], name);
    }
}

#[test]
fn each_dialect_sends_tool_calls_and_says_why_it_stopped() {
    let scenario =
        json!({"turns": [{"steps": [{"tool": "bash", "args": {"command": "ls"}, "chunk": 5}]}]});
    let expected = [
        (r#""name":"bash""#, r#""stop_reason":"tool_use""#),
        (r#""name":"bash""#, r#""finish_reason":"tool_calls""#),
        (r#""name":"bash""#, r#""type":"response.completed""#),
        (r#""args":{"command":"ls"}"#, r#""finishReason":"STOP""#),
    ];
    for ((name, path), (call, stop)) in PATHS.into_iter().zip(expected) {
        let server = ModelServer::start(scenario.clone());
        let text = stream(&server, path);
        assert!(text.contains(call) && text.contains(stop), "{name}: {text}");
    }
}

#[test]
fn turns_come_in_order_and_matchers_take_precedence() {
    let server = ModelServer::start(json!({"turns": [
        {"steps": ["one"]},
        {"match": {"no_tools": true}, "steps": ["summary"]},
        {"http": {"status": 529, "headers": {"retry-after": "1"}}},
    ]}));
    let path = PATHS[0].1;
    assert!(stream(&server, path).contains("one"));
    let (_, chunks) = read(&mut ask(&server, path, &json!({"stream": true})));
    assert!(String::from_utf8_lossy(&chunks.concat()).contains("summary"));
    let (status, _) = read(&mut ask(&server, path, &json!({"stream": true})));
    assert_eq!(status, 529, "a matcher is used once");
    assert!(stream(&server, path).contains("scenario exhausted"));
    let turns: Vec<Value> = server
        .requests()
        .iter()
        .map(|r| r["turn"].clone())
        .collect();
    assert_eq!(turns, [json!(0), json!(1), json!(2), json!(-1)]);
}

#[test]
fn a_gate_holds_the_stream_until_it_is_opened() {
    let server = ModelServer::start(
        json!({"turns": [{"steps": [{"text": ["before", {"gate": "g"}, "after"]}]}]}),
    );
    let mut reader = ask(&server, PATHS[0].1, &json!({"stream": true}));
    let mut seen = String::new();
    while !seen.contains("before") {
        reader.read_line(&mut seen).expect("a line");
    }
    reader
        .get_ref()
        .set_read_timeout(Some(Duration::from_millis(60)))
        .expect("a timeout");
    let mut rest = String::new();
    let held = reader.read_to_string(&mut rest).is_err();
    assert!(held && !rest.contains("after"), "{rest}");
    reader
        .get_ref()
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    server.release("g");
    while !rest.contains("after") {
        assert!(reader.read_line(&mut rest).expect("a line") > 0);
    }
}

#[test]
fn faults_strike_where_they_are_told_to() {
    let cases = [
        (json!({"at": "headers", "then": "disconnect"}), ""),
        (
            json!({"at": {"byte": 10}, "then": "disconnect"}),
            "event: mes",
        ),
    ];
    for (fault, expected) in cases {
        let server = ModelServer::start(json!({"turns": [{"steps": ["grüße"], "fault": fault}]}));
        let (_, chunks) = read(&mut ask(&server, PATHS[0].1, &json!({"stream": true})));
        assert_eq!(String::from_utf8_lossy(&chunks.concat()), expected);
    }
    let fault = json!({"at": "utf8", "then": "disconnect"});
    let server = ModelServer::start(json!({"turns": [{"steps": ["grüße"], "fault": fault}]}));
    let (_, chunks) = read(&mut ask(&server, PATHS[0].1, &json!({"stream": true})));
    assert_eq!(chunks.concat().last(), Some(&0xc3));
}

#[test]
fn a_stall_lasts_until_the_client_hangs_up() {
    for at in [
        json!("connect"),
        json!("headers"),
        json!("utf8"),
        json!({"event": 2}),
    ] {
        let server =
            ModelServer::start(json!({"turns": [{"steps": ["grüße"], "fault": {"at": at}}]}));
        let reader = ask(&server, PATHS[0].1, &json!({"stream": true}));
        assert!(server.wait_for_requests(1, Duration::from_secs(10)));
        assert!(!server.wait_until_idle(Duration::from_millis(60)), "{at}");
        drop(reader);
        assert!(server.wait_until_idle(Duration::from_secs(10)), "{at}");
        assert!(server.timings()[0].hung_up);
    }
}

#[test]
fn a_body_can_be_cut_at_every_byte() {
    let server = ModelServer::start(json!({"split": 1, "turns": [{"steps": ["grüße"]}]}));
    let (_, chunks) = read(&mut ask(&server, PATHS[0].1, &json!({"stream": true})));
    assert!(chunks.iter().all(|chunk| chunk.len() == 1));
    assert_eq!(
        text_of(&data(&String::from_utf8_lossy(&chunks.concat()))),
        "grüße"
    );
}

#[test]
fn tens_of_thousands_of_deltas_go_out() {
    let turn = json!({"steps": [{"text": {"delta": "w{i} ", "count": 30_000}}]});
    let server = ModelServer::start(json!({"flush": "block", "turns": [turn]}));
    let text = text_of(&data(&stream(&server, PATHS[0].1)));
    assert_eq!(text.split_whitespace().count(), 30_000);
    assert!(text.ends_with("w29999 "));
}

#[test]
fn a_delta_can_carry_the_time_of_its_sending() {
    let server = ModelServer::start(json!({"turns": [{"steps": [
        {"text": ["{now_ns} ", {"delay_ms": 5}, "{now_ns}"]}]}]}));
    let text = text_of(&data(&stream(&server, "/messages")));
    let times: Vec<u64> = text.split(' ').map(|time| time.parse().unwrap()).collect();
    assert!(times[0] + 5_000_000 <= times[1], "{times:?}");
}

#[test]
fn a_blind_server_answers_in_order_and_keeps_no_bodies() {
    let server = ModelServer::start(json!({"blind": true, "turns": [
        {"match": {"contains": "stream", "in": "any"}, "steps": ["matched"]}, {"steps": ["first"]}]}));
    assert_eq!(text_of(&data(&stream(&server, "/messages"))), "first");
    assert_eq!(server.requests()[0]["body"], json!({"stream": true}));
}

#[test]
fn another_process_can_change_the_scenario() {
    let server = ModelServer::start(json!({}));
    let scenario = json!({"turns": [{"steps": ["changed"]}]});
    let (status, _) = read(&mut ask(&server, "/__ctl/scenario", &scenario));
    assert_eq!(status, 200);
    assert!(stream(&server, PATHS[0].1).contains("changed"));
    let (_, body) = read(&mut ask(&server, "/__ctl/stats", &json!({})));
    let stats: Value = serde_json::from_slice(&body.concat()).expect("JSON");
    assert_eq!(stats["requests"].as_array().map(Vec::len), Some(1));
}
