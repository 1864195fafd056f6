//! A receiver of traces on loopback, and a reader for the few messages of OTLP.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A span as a receiver sees it; ids are in hexadecimal digits.
#[derive(Debug, Clone)]
pub struct Span {
    pub name: String,
    pub kind: u64,
    pub trace: String,
    pub span: String,
    pub parent: String,
    pub failed: bool,
    pub attributes: BTreeMap<String, Value>,
    pub resource: BTreeMap<String, Value>,
}

impl Span {
    /// Reads a line of the receiver in Python.
    pub fn from_line(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        let map = |name: &str| {
            line[name]
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .collect()
        };
        Self {
            name: text("name"),
            kind: line["kind"].as_u64().unwrap(),
            trace: text("trace"),
            span: text("span"),
            parent: text("parent"),
            failed: line["failed"].as_bool().unwrap(),
            attributes: map("attributes"),
            resource: map("resource"),
        }
    }
}

/// Spans in the order in which they arrived.
#[derive(Debug, Default, Clone)]
pub struct Spans(pub Vec<Span>);

impl Spans {
    /// Returns the spans with this name.
    pub fn named(&self, name: &str) -> Vec<&Span> {
        self.0.iter().filter(|span| span.name == name).collect()
    }

    /// Returns the only span with this name.
    #[track_caller]
    pub fn one(&self, name: &str) -> &Span {
        let named = self.named(name);
        assert_eq!(named.len(), 1, "{name}: {:#?}", self.0);
        named[0]
    }
}

/// A receiver that accepts everything.
pub struct Receiver {
    pub url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Receiver {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::new(Mutex::default());
        let received = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = Arc::clone(&received);
                std::thread::spawn(move || serve(stream, &received));
            }
        });
        Self { url, spans }
    }

    /// Returns what has arrived.
    pub fn spans(&self) -> Spans {
        Spans(self.spans.lock().unwrap().clone())
    }
}

fn serve(stream: TcpStream, received: &Mutex<Vec<Span>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let (mut length, mut first) = (0, String::new());
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = line.trim_end();
            if first.is_empty() {
                line.clone_into(&mut first);
            } else if line.is_empty() {
                break;
            } else if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.parse().unwrap();
            }
        }
        assert_eq!(first, "POST /v1/traces HTTP/1.1");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        received.lock().unwrap().extend(request(&body));
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        writer.write_all(answer.as_bytes()).unwrap();
    }
}

/// A field of a message: a number, or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("bytes are expected"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        self.bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("a number is expected"),
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let fixed = |bytes: &mut &[u8], length: usize| {
            let (value, rest) = bytes.split_at(length);
            *bytes = rest;
            value
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Number(fixed(&mut bytes, 8)),
            5 => Field::Number(fixed(&mut bytes, 4)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number is too long");
}

fn request(body: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (_, resource_spans) in fields(body) {
        let mut resource = BTreeMap::new();
        for (number, field) in fields(resource_spans.bytes()) {
            match number {
                1 => resource = attributes(fields(field.bytes()), 1),
                2 => {
                    let scope = fields(field.bytes());
                    let found = scope.iter().filter(|(number, _)| *number == 2);
                    spans.extend(found.map(|(_, field)| span(field.bytes(), &resource)));
                }
                _ => {}
            }
        }
    }
    spans
}

fn span(bytes: &[u8], resource: &BTreeMap<String, Value>) -> Span {
    let mut span = Span {
        name: String::new(),
        kind: 0,
        trace: String::new(),
        span: String::new(),
        parent: String::new(),
        failed: false,
        attributes: attributes(fields(bytes), 9),
        resource: resource.clone(),
    };
    let (mut start, mut end) = (0, 0);
    for (number, field) in fields(bytes) {
        match number {
            1 => span.trace = field.hex(),
            2 => span.span = field.hex(),
            4 => span.parent = field.hex(),
            5 => span.name = field.text(),
            6 => span.kind = field.number(),
            7 => start = field.number(),
            8 => end = field.number(),
            15 => span.failed = true,
            _ => {}
        }
    }
    assert!(start > 0 && start <= end, "{}: {start} {end}", span.name);
    span
}

fn attributes(fields: Vec<(u64, Field<'_>)>, number: u64) -> BTreeMap<String, Value> {
    let pairs = fields.into_iter().filter(|(found, _)| *found == number);
    pairs
        .map(|(_, pair)| {
            let (mut name, mut value) = (String::new(), Value::Null);
            for (number, field) in self::fields(pair.bytes()) {
                match number {
                    1 => name = field.text(),
                    _ => value = any(field.bytes()),
                }
            }
            (name, value)
        })
        .collect()
}

fn any(bytes: &[u8]) -> Value {
    let (number, field) = fields(bytes).remove(0);
    match number {
        1 => json!(field.text()),
        2 => json!(field.number() == 1),
        3 => json!(field.number() as i64),
        4 => json!(f64::from_bits(field.number())),
        5 => fields(field.bytes())
            .iter()
            .map(|(_, item)| any(item.bytes()))
            .collect(),
        other => panic!("value {other}"),
    }
}
