//! A hub as users run it, and a caller that sees every byte of its answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_testkit::{Process, Sandbox};
use serde_json::{Value, json};

use crate::common::request;
use crate::support::{HANG, args, offline_sandbox, pinion};

/// A hub in a sandbox, with the built-in model.
pub struct Stage {
    pub sandbox: Sandbox,
    pub process: Process,
    pub address: SocketAddr,
    pub token: String,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(offline_sandbox(&json!({})), &["--model", "offline/demo"])
    }

    pub fn with(sandbox: Sandbox, arguments: &[&str]) -> Self {
        let root = root(&sandbox);
        let mut all = vec![
            "hub",
            "serve",
            "--port",
            "0",
            "--root",
            root.to_str().unwrap(),
        ];
        all.extend(arguments);
        let process = pinion().start(&sandbox, &args(&all));
        let listening = |line: &Value| line.to_string().contains("Listening on http://");
        let at = process.find(0, 1, HANG, listening);
        let at = at.unwrap_or_else(|| panic!("no hub: {}", process.stderr()));
        let line = process.line(at).unwrap().value.to_string();
        let address = line.split("http://").nth(1).unwrap();
        let address = address.trim_end_matches(['"', '}', '\\', 'n', '/']);
        let token = std::fs::read_to_string(root.join("local.token")).unwrap();
        Self {
            address: address.parse().unwrap(),
            token: token.trim().to_owned(),
            process,
            sandbox,
        }
    }

    /// Starts another hub in the same directory; the previous one is killed.
    pub fn restart(self, arguments: &[&str]) -> Self {
        drop(self.process);
        Self::with(self.sandbox, arguments)
    }

    /// Calls a method of the service once.
    pub fn call(&self, token: &str, method: &str, body: &Value) -> (u16, Value) {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", authorization.as_str()),
        ];
        let path = format!("/pinix.v2.HubService/{method}");
        let answer = request(
            self.address,
            "POST",
            &path,
            &headers,
            body.to_string().as_bytes(),
        );
        let value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        (answer.status, value)
    }

    /// Calls a command of the agent and returns its only output, or the failure.
    pub fn try_ask(&self, token: &str, command: &str, input: &Value) -> Result<Value, Value> {
        let body = json!({"clip": "agent", "command": command, "input": input});
        match self.call(token, "Invoke", &body) {
            (200, answer) => Ok(decoded(&answer)),
            (_, failure) => Err(failure),
        }
    }

    pub fn ask(&self, command: &str, input: &Value) -> Value {
        let answer = self.try_ask(&self.token, command, input);
        answer.unwrap_or_else(|failure| panic!("{command} {input}: {failure}"))
    }

    /// Starts a call of `chat` and returns its events as they arrive.
    pub fn chat(&self, input: &Value) -> Events {
        self.chat_as(&self.token, input)
    }

    pub fn chat_as(&self, token: &str, input: &Value) -> Events {
        let call = json!({"clipName": "agent", "command": "chat", "input": input});
        self.stream_as(token, "Invoke", &[call])
    }

    /// Starts a call of `chat` whose input follows a few bytes at a time.
    pub fn chat_in_parts(&self, input: &Value) -> Events {
        let start = json!({"start": {"clipName": "agent", "command": "chat"}});
        let text = input.to_string();
        let parts = text.as_bytes().chunks(7);
        let parts = parts.map(|part| json!({"chunk": {"data": STANDARD.encode(part)}}));
        let messages: Vec<Value> = std::iter::once(start).chain(parts).collect();
        self.stream_as(&self.token, "InvokeStream", &messages)
    }

    fn stream_as(&self, token: &str, method: &str, messages: &[Value]) -> Events {
        let mut body = Vec::new();
        for message in messages {
            let payload = message.to_string();
            body.push(0);
            body.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
            body.extend_from_slice(payload.as_bytes());
        }
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(HANG)).unwrap();
        let head = format!(
            "POST /pinix.v2.HubService/{method} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/connect+json\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(&body).unwrap();
        let mut events = Events {
            socket,
            raw: Vec::new(),
            body: Vec::new(),
            over: false,
        };
        let head = events.head();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        events
    }

    /// Repeats the command until the answer fits.
    pub fn until(&self, command: &str, input: &Value, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + HANG;
        loop {
            let answer = self.ask(command, input);
            if fits(&answer) {
                return answer;
            }
            assert!(Instant::now() < end, "{command} {input}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns a token of a caller that does not own the hub.
    pub fn other_token(&self) -> String {
        let headers = [
            ("content-type", "application/json"),
            ("authorization", &format!("Bearer {}", self.token)),
        ];
        let body = json!({"kind": "hub", "scope": "@me", "label": "test"}).to_string();
        let answer = request(
            self.address,
            "POST",
            "/auth/tokens",
            &headers,
            body.as_bytes(),
        );
        let made: Value = serde_json::from_slice(&answer.body).unwrap();
        made["token"]
            .as_str()
            .unwrap_or_else(|| panic!("{made}"))
            .to_owned()
    }

    pub fn install(&self, alias: &str, directory: &std::path::Path) {
        let source = format!("local/{alias}:{}", directory.display());
        let (status, answer) = self.call(
            &self.token,
            "AddClip",
            &json!({"source": source, "alias": alias}),
        );
        assert_eq!(status, 200, "{answer}");
    }
}

pub fn root(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("hub")
}

fn decoded(answer: &Value) -> Value {
    let output = STANDARD
        .decode(answer["output"].as_str().unwrap_or_default())
        .unwrap();
    serde_json::from_slice(&output).unwrap()
}

/// The events of a call, as they arrive. Dropping it closes the connection.
pub struct Events {
    socket: TcpStream,
    /// Received bytes of the connection that are not parsed yet.
    raw: Vec<u8>,
    /// Received bytes of the body that are not parsed yet.
    body: Vec<u8>,
    over: bool,
}

impl Events {
    fn more(&mut self) {
        let mut buffer = [0; 4096];
        let count = self.socket.read(&mut buffer).unwrap();
        assert!(count > 0, "the hub hung up");
        self.raw.extend_from_slice(&buffer[..count]);
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.raw.windows(2).position(|it| it == b"\r\n") {
                let line: Vec<u8> = self.raw.drain(..end + 2).collect();
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            self.more();
        }
    }

    fn head(&mut self) -> String {
        let first = self.line();
        while !self.line().is_empty() {}
        first
    }

    fn chunk(&mut self) {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        while self.raw.len() < size + 2 {
            self.more();
        }
        self.body.extend(self.raw.drain(..size));
        self.raw.drain(..2);
        assert!(size > 0 || self.over, "the body ended too soon");
    }

    /// Returns the next message: an event, `{"failure": …}` of the clip, or the end of the stream.
    pub fn next(&mut self) -> Option<Value> {
        if self.over {
            return None;
        }
        loop {
            if self.body.len() >= 5 {
                let size = u32::from_be_bytes(self.body[1..5].try_into().unwrap()) as usize;
                if self.body.len() >= size + 5 {
                    let envelope: Vec<u8> = self.body.drain(..size + 5).collect();
                    let message: Value = serde_json::from_slice(&envelope[5..]).unwrap();
                    if envelope[0] & 2 != 0 {
                        self.over = true;
                        assert_eq!(message, json!({}), "the stream ended badly");
                        return None;
                    }
                    if !message["error"].is_null() {
                        return Some(json!({"failure": message["error"]}));
                    }
                    return Some(decoded(&message));
                }
            }
            self.chunk();
        }
    }

    /// Returns all messages up to and including the first one that fits.
    pub fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            seen.push(event);
            if fits(seen.last().unwrap()) {
                return seen;
            }
        }
        panic!("it never came: {seen:?}");
    }

    /// Returns all remaining messages.
    pub fn rest(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// Returns the joined text of the `text` events.
pub fn text(events: &[Value]) -> String {
    let texts = events.iter().filter(|event| event["type"] == "text");
    texts
        .map(|event| event["content"].as_str().unwrap())
        .collect()
}

/// Returns the kinds of events in order, without consecutive duplicates.
pub fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(kind) => kind,
            None if !event["failure"].is_null() => "failure",
            None => "result",
        })
        .collect();
    kinds.dedup();
    kinds
}
