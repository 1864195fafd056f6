//! Memory of a hub while many callers read slowly, and after they are gone.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use crate::stage::{Home, Hub};

/// Bytes that an idle hub may hold: far more than it uses, far less than the streams need.
const IDLE: u64 = 64 << 20;
const CONNECTIONS: usize = 4;
const STREAMS: u32 = 250;

const PARTS: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "invoke":
        for number in range(100):
            print(json.dumps({"type": "stream", "id": message["id"], "chunk": "x" * 1000}))
        print(json.dumps({"type": "stream_end", "id": message["id"]}), flush=True)
"#;

/// Returns the memory of a hub that is not backed by files, in bytes.
fn resident(hub: &Hub) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", hub.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kilobytes << 10
}

fn frame(kind: u8, flags: u8, stream: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), data].concat()
}

/// Returns a header that is not in any table of HPACK.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Opens a connection with calls whose answers the client never lets the hub send.
fn unread_streams(hub: &Hub, token: &str) -> TcpStream {
    let mut connection = TcpStream::connect(hub.url.strip_prefix("http://").unwrap()).unwrap();
    let no_window = [0, 4, 0, 0, 0, 0];
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(frame(4, 0, 0, &no_window));
    let head = [
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", "/pinix.v2.HubService/InvokeStream"),
        header(":authority", "localhost"),
        header("content-type", "application/connect+json"),
        header("authorization", &format!("Bearer {token}")),
    ];
    let call = json!({"clip": "parts", "command": "send", "input": {}}).to_string();
    let length = u32::try_from(call.len()).unwrap().to_be_bytes();
    let body = [&[0], &length[..], call.as_bytes()].concat();
    for stream in (0..STREAMS).map(|number| 2 * number + 1) {
        sent.extend(frame(1, 4, stream, &head.concat()));
        sent.extend(frame(0, 1, stream, &body));
    }
    connection.write_all(&sent).unwrap();
    connection
}

#[test]
fn memory_of_many_streams_is_returned_after_they_end() {
    let home = Home::new();
    let manifest = json!({
        "name": "@me/parts", "version": "1.0.0", "runtime": "python", "main": "parts.py", "ipc": "direct",
        "commands": [{"name": "send"}],
    });
    home.write("parts/clip.json", &manifest.to_string());
    home.write("parts/parts.py", PARTS);
    let hub = home.serve_with(&["--no-agent"]);
    home.run(&["clip", "add", "./parts"]).fine();
    let token = fs::read_to_string(home.root().join("local.token")).unwrap();
    let connections: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| unread_streams(&hub, token.trim()))
        .collect();
    home.until("the use of memory", || resident(&hub) > IDLE + IDLE / 4);
    drop(connections);
    home.until("the return of memory", || resident(&hub) < IDLE);
    home.run(&["clip", "list"]).fine();
}
