//! Fake clips.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use pinion_clip::manifest::Manifest;
use pinion_mcp::{ClipSummary, Clips, Outputs};
use pinion_status::{Code, Failure};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A hub with two clips: `todo`, which has commands of many kinds, and `quiet`, which lists no commands.
#[derive(Debug)]
pub struct Fake {
    /// Calls in flight.
    pub live: Arc<AtomicUsize>,
    pub begun: Arc<AtomicUsize>,
    /// Parts that `flood` has sent.
    pub given: Arc<AtomicUsize>,
    changes: watch::Sender<u64>,
    more: Mutex<Vec<&'static str>>,
}

impl Fake {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            live: Arc::default(),
            begun: Arc::default(),
            given: Arc::default(),
            changes: watch::Sender::new(0),
            more: Mutex::default(),
        })
    }

    /// Adds a command to `todo`.
    pub fn learn(&self, command: &'static str) {
        self.more.lock().unwrap().push(command);
        self.changes.send_modify(|version| *version += 1);
    }

    /// Reports a change that does not concern `todo`.
    pub fn stir(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    pub fn live(&self) -> usize {
        self.live.load(Ordering::SeqCst)
    }

    /// Returns the number of parts that `flood` sends before its reader stops.
    pub async fn flooded(&self) -> usize {
        let mut seen = 0;
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let given = self.given.load(Ordering::SeqCst);
            if given > 0 && given == seen {
                return given;
            }
            seen = given;
        }
    }

    pub async fn wait_for_live(&self, count: usize) {
        while self.live() != count {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }

    fn todo(&self) -> Manifest {
        let title = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
        let mut commands = vec![
            json!({"name": "add", "description": "Adds a thing to do", "input": title.to_string(), "output": "{\"type\":\"object\"}"}),
            json!({"name": "note add", "input": "{ text: string }"}),
            json!({"name": "count"}),
            json!({"name": "echo"}),
            json!({"name": "fail"}),
            json!({"name": "wait"}),
        ];
        let more = self.more.lock().unwrap();
        commands.extend(more.iter().map(|name| json!({ "name": name })));
        Manifest::read(
            &json!({"name": "todo", "domain": "work", "description": "Things to do", "commands": commands}),
        )
    }
}

/// A clip whose argument is repeated as a header, and one whose annotation cannot be a header.
fn routed() -> Manifest {
    let input = |name: &str| {
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": name}}}).to_string()
    };
    let commands = json!([
        {"name": "echo", "input": input("Region")},
        {"name": "odd", "input": input("not a token")},
    ]);
    Manifest::read(&json!({"name": "routed", "commands": commands}))
}

/// The tools that the conformance suite calls, as far as clips can offer them.
fn conformance() -> Manifest {
    let keywords = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let echo = json!({"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}});
    let commands = json!([
        {"name": "test_simple_text", "description": "Answers with a text"},
        {"name": "test_error_handling", "description": "Fails"},
        {"name": "test_tool_with_progress", "description": "Reports progress"},
        {"name": "json_schema_2020_12_tool", "description": "Has every keyword", "input": keywords.to_string()},
        {"name": "echo", "description": "Echoes", "input": echo.to_string()},
    ]);
    Manifest::read(&json!({"name": "conformance", "commands": commands}))
}

/// Counts a call until it is dropped.
struct Live(Arc<AtomicUsize>);

impl Live {
    fn is_there(&self) {}
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clips for Fake {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ClipSummary>, Failure>> {
        let summary = |name: &str, manifest: &Manifest| ClipSummary {
            name: name.to_owned(),
            provider: "local".to_owned(),
            domain: manifest.domain.clone(),
            commands: manifest.commands.iter().map(|it| it.name.clone()).collect(),
            token_protected: false,
        };
        let clips = vec![
            summary("todo", &self.todo()),
            summary("quiet", &Manifest::default()),
        ];
        Box::pin(async move { Ok(clips) })
    }

    fn manifest<'a>(&'a self, clip: &'a str) -> BoxFuture<'a, Result<Manifest, Failure>> {
        Box::pin(async move {
            match clip {
                "todo" => Ok(self.todo()),
                "quiet" => Ok(Manifest::default()),
                "routed" => Ok(routed()),
                "conformance" => Ok(conformance()),
                other => Err(Failure::no_clip(other)),
            }
        })
    }

    fn invoke(&self, clip: &str, command: &str, input: Bytes) -> Outputs {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.live.fetch_add(1, Ordering::SeqCst);
        let live = Live(self.live.clone());
        let given: Value = serde_json::from_slice(&input).unwrap();
        let answers: Vec<Result<Bytes, Failure>> = match (clip, command) {
            ("todo", "add") => vec![Ok(json!({"added": given["title"]}).to_string().into())],
            // A hub may send JSON with line breaks.
            ("todo", "note add") => vec![Ok(Bytes::from_static(b"{\n  \"ok\": true\n}"))],
            ("todo" | "routed" | "conformance", "echo") => vec![Ok(input)],
            ("conformance", "test_simple_text" | "json_schema_2020_12_tool") => {
                let text = "This is a simple text response for testing.";
                vec![Ok(json!(text).to_string().into())]
            }
            ("conformance", "test_error_handling") => {
                let message = "This tool intentionally returns an error for testing";
                vec![Err(Failure::new(Code::Internal, message))]
            }
            ("conformance", "test_tool_with_progress") => [0, 50, 100]
                .map(|done| Ok(done.to_string().into()))
                .to_vec(),
            ("todo", "count") => (1..=given["to"].as_u64().unwrap_or(3))
                .map(|number| Ok(format!("\"{number} \"").into()))
                .collect(),
            // Does not count itself.
            ("todo", "live") => vec![Ok((self.live() - 1).to_string().into())],
            ("todo", "fail") => vec![Err(Failure::new(Code::Unavailable, "it rained"))],
            ("todo", "flood") => {
                let (given, part) = (self.given.clone(), format!("\"{}\"", "x".repeat(4000)));
                let flood = stream::repeat(Bytes::from(part)).map(move |part| {
                    live.is_there();
                    given.fetch_add(1, Ordering::SeqCst);
                    Ok(part)
                });
                return Box::pin(flood);
            }
            ("todo", "wait") => {
                let first = stream::iter([Ok(Bytes::from_static(b"\"waiting\""))]);
                let waiting = first.chain(stream::pending());
                return Box::pin(waiting.inspect(move |_| live.is_there()));
            }
            _ => vec![Err(Failure::no_clip(clip))],
        };
        // Pauses as real clips do; before the end too.
        let pause = std::time::Duration::from_millis(given["pause"].as_u64().unwrap_or(0));
        let moment = move || async move {
            tokio::task::yield_now().await;
            if !pause.is_zero() {
                // The pause that the test asks for.
                tokio::time::sleep(pause).await;
            }
        };
        let answers = stream::iter(answers).then(move |answer| async move {
            moment().await;
            answer
        });
        let end = stream::once(moment()).filter_map(|()| std::future::ready(None));
        let answers = answers.chain(end);
        Box::pin(answers.inspect(move |_| live.is_there()))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }
}
