//! A hub on a loopback port with Python clips, and an HTTP/1.1 client that returns raw bytes.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test file uses its part; a test fails by panicking"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pinion_access::Mode;
use pinion_clip::Programs;
use pinion_connect::{Origins, Server, ServerOptions};
use pinion_hub::{Hub, PREFIXES, Settings, open};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The clip of the recorded exchanges.
pub const CLIP: &str = r#"
import json, sys, threading, time
lock = threading.Lock()
def say(**message):
    with lock: print(json.dumps(message, separators=(",", ":")), flush=True)
def tick(id):
    for count in range(500):
        say(type="chunk", id=id, output=count)
        time.sleep(0.02)
    say(type="done", id=id)
print("ready", file=sys.stderr)
say(type="register", manifest={"package": "@acme/todo", "domain": "productivity", "commands": [
    {"name": "add"}, {"name": "boom"}, {"name": "ever"}, {"name": "list", "input": {"type": "object"}}, {"name": "monitor"}, {"name": "slow"}]})
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "invoke": continue
    id, command = message["id"], message["command"]
    if command == "add": say(type="result", id=id, output={"id": "t1", "title": message["input"]["title"]})
    elif command == "list": say(type="result", id=id, output={"items": []})
    elif command == "boom": say(type="error", id=id, error="boom: handler failed")
    elif command == "ever": threading.Thread(target=tick, args=(id,), daemon=True).start()
    elif command == "monitor":
        say(type="chunk", id=id, output={"tick": 1})
        say(type="chunk", id=id, output={"tick": 2})
        say(type="done", id=id)
"#;

/// A hub that serves a port of its own until it is dropped.
pub struct Running {
    pub hub: Arc<Hub>,
    pub address: SocketAddr,
    pub token: String,
    pub root: TempDir,
    pub runtime: tokio::runtime::Runtime,
    stop: CancellationToken,
}

impl Running {
    /// Starts a hub with the default settings in a new directory.
    pub fn start(mode: Mode) -> Self {
        Self::with(mode, Settings::default())
    }

    pub fn with(mode: Mode, settings: Settings) -> Self {
        Self::at(tempfile::tempdir().unwrap(), None, mode, settings)
    }

    /// Starts a hub in a directory that may contain one already, at its earlier address if given.
    pub fn at(root: TempDir, address: Option<SocketAddr>, mode: Mode, settings: Settings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(
                address.unwrap_or_else(|| ([127, 0, 0, 1], 0).into()),
            ))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}");
        let guard = runtime.enter();
        let origins = if settings.any_origin {
            Origins::Any
        } else {
            Origins::default()
        };
        let opened = open(root.path(), &url, settings, mode, Programs::default()).unwrap();
        drop(guard);
        let stop = CancellationToken::new();
        let mut options = ServerOptions::at(PREFIXES);
        options.origins = origins;
        let server = Server::new(opened.hub.clone(), options);
        let stopped = stop.clone();
        runtime.spawn(async move {
            let stop = stopped.cancelled_owned();
            server.run(listener, stop, Duration::ZERO).await;
        });
        Self {
            hub: opened.hub,
            address,
            token: opened.local_token.token.reveal().to_owned(),
            root,
            runtime,
            stop,
        }
    }

    /// Stops the hub as a crash would, and returns its directory.
    pub fn stop(mut self) -> TempDir {
        std::mem::replace(&mut self.root, tempfile::tempdir().unwrap())
    }

    /// Calls a method with JSON. Returns status and body.
    pub fn call(&self, method: &str, body: &str) -> (u16, Value) {
        self.call_as(Some(&self.token.clone()), method, body)
    }

    pub fn call_as(&self, token: Option<&str>, method: &str, body: &str) -> (u16, Value) {
        match token {
            Some(token) => post(self.address, token, method, &[], body),
            None => post(self.address, "", method, &[], body),
        }
    }

    /// Installs the clip in `directory` through the service.
    pub fn install(&self, alias: &str, directory: &Path) -> Value {
        let source = format!("local/{alias}:{}", directory.display());
        let body = serde_json::json!({"source": source, "alias": alias}).to_string();
        let (status, answer) = self.call("AddClip", &body);
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(runtime) = self.hub.runtime() {
            self.runtime.block_on(runtime.shut_down());
        }
    }
}

/// Calls a method with JSON. Returns status and body.
pub fn post(
    address: SocketAddr,
    token: &str,
    method: &str,
    more: &[(&str, &str)],
    body: &str,
) -> (u16, Value) {
    let path = format!("/pinix.v2.HubService/{method}");
    let authorization = format!("Bearer {token}");
    let mut headers = vec![("content-type", "application/json")];
    headers.extend_from_slice(more);
    if !token.is_empty() {
        headers.push(("authorization", &authorization));
    }
    let answer = request(address, "POST", &path, &headers, body.as_bytes());
    let value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    (answer.status, value)
}

/// Creates a clip that consists of one Python program.
pub fn python_clip(program: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("clip.py");
    std::fs::write(&file, program).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let description =
        r#"{"name":"@acme/todo","version":"0.3.0","runtime":"python","main":"clip.py"}"#;
    std::fs::write(place.path().join("clip.json"), description).unwrap();
    place
}

/// An HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Sends one request on a new connection.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let body = if chunked {
        unchunk(rest)
    } else {
        rest.to_vec()
    };
    Answer {
        status: status.parse().unwrap(),
        headers,
        body,
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|it| it == b"\r\n").unwrap();
        let length = std::str::from_utf8(&bytes[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}
