//! Replays recorded and handwritten exchanges with a fake clip, and compares the lines sent and the callers' results.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use common::{TestClip, call, part, raw};
use futures_util::future::BoxFuture;
use pinion_clip::data::{DataAnswer, DataOperation, DataRequest, Entry, EntryKind, Stat};
use pinion_clip::manifest::Manifest;
use pinion_clip::{
    CallError, ChunkStream, Clip, ClipError, ClipState, Code, CrossCall, CrossCalls, Listing,
};
use serde_json::{Value, json};

fn vectors(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/pinix")
        .join(directory);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

/// Answers the clip's requests with the recorded answers.
#[derive(Debug, Default)]
struct Recorded {
    answers: Mutex<VecDeque<Value>>,
    asked: Mutex<Vec<Value>>,
}

impl Recorded {
    fn next(&self, asked: Value) -> Value {
        self.asked.lock().unwrap().push(asked);
        self.answers.lock().unwrap().pop_front().unwrap()
    }
}

fn failure(answer: &Value) -> Option<ClipError> {
    let error = answer.get("error")?;
    let (code, message) = match error {
        Value::String(message) => (Code::Internal, message.clone()),
        error => (
            Code::parse(error["code"].as_str().unwrap()),
            error["message"].as_str().unwrap().to_owned(),
        ),
    };
    Some(ClipError::new(code, message))
}

impl CrossCalls for Recorded {
    fn invoke<'a>(
        &'a self,
        _: &'a str,
        call: CrossCall,
    ) -> BoxFuture<'a, Result<Bytes, ClipError>> {
        let asked = json!({"clip": call.clip, "command": call.command, "clip_token": call.clip_token,
            "input": serde_json::from_slice::<Value>(&call.input).unwrap()});
        let answer = self.next(asked);
        Box::pin(async move {
            match failure(&answer) {
                Some(error) => Err(error),
                None => Ok(raw(&answer["output"])),
            }
        })
    }

    fn list_clips<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Listing>, ClipError>> {
        let answer = self.next(json!("list"));
        Box::pin(async move {
            match failure(&answer) {
                Some(error) => Err(error),
                None => {
                    let clips = answer["clips"].as_array().unwrap();
                    let listing = |clip: &Value| Listing::from(&Manifest::read(clip));
                    Ok(clips.iter().map(listing).collect())
                }
            }
        })
    }

    fn data<'a>(
        &'a self,
        _: &'a str,
        request: DataRequest,
    ) -> BoxFuture<'a, Result<DataAnswer, ClipError>> {
        let content = match &request.operation {
            DataOperation::Write { content, .. } => {
                json!(std::str::from_utf8(content).unwrap())
            }
            other => json!(format!("{other:?}")),
        };
        let asked = json!({"path": request.path, "clip": request.clip, "operation": content});
        let answer = self.next(asked);
        Box::pin(async move {
            if let Some(error) = failure(&answer) {
                return Err(error);
            }
            Ok(data_answer(&answer))
        })
    }
}

fn data_answer(answer: &Value) -> DataAnswer {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(uri) = answer.get("uri") {
        return DataAnswer::Uri(text(uri));
    }
    if let Some(content) = answer.get("content") {
        let engine = base64::engine::general_purpose::STANDARD;
        return DataAnswer::Content(engine.decode(text(content)).unwrap().into());
    }
    if let Some(stat) = answer.get("stat") {
        return DataAnswer::Stat(Stat {
            size: stat["size"].as_u64().unwrap(),
            mime: "text/plain; charset=utf-8".into(),
            modified: text(&stat["modified"]),
        });
    }
    let entries = answer["entries"].as_array().unwrap().iter();
    let entry = |entry: &Value| Entry {
        name: text(&entry["name"]),
        path: text(&entry["path"]),
        r#type: if entry["type"] == "file" {
            EntryKind::File
        } else {
            EntryKind::Directory
        },
        size: entry["size"].as_u64().unwrap(),
        mime: entry
            .get("mime")
            .map(|_| "text/plain; charset=utf-8".into()),
    };
    DataAnswer::Entries(entries.map(entry).collect())
}

/// A recording that is being replayed.
struct Play {
    clip: Arc<Clip>,
    world: Arc<Recorded>,
    calls: HashMap<String, ChunkStream>,
    stopping: Option<tokio::task::JoinHandle<()>>,
    _place: TestClip,
}

impl Play {
    fn new(path: &Path, recording: &Value) -> Self {
        let mut place = TestClip::probe();
        place.limits.first_line = Duration::from_millis(100);
        place.limits.shutdown_time = Duration::from_millis(300);
        let path = path.to_str().unwrap().to_owned();
        place.variables = vec![("PROBE_RECORDING".into(), path)];
        let world = Arc::new(Recorded::default());
        let lines = recording["events"].as_array().unwrap().iter();
        let answers = lines.filter_map(|event| {
            let line: Value = serde_json::from_str(event["line"].as_str().unwrap()).ok()?;
            let to_clip = matches!(event["dir"].as_str().unwrap(), "runtime>clip" | "runtime>A");
            let to_request = line["id"]
                .as_str()
                .is_some_and(|id| id.starts_with('c') && id.len() < 4);
            (to_clip && to_request).then_some(line)
        });
        world.answers.lock().unwrap().extend(answers);
        place.cross_calls = world.clone();
        Self {
            clip: Arc::new(place.clip()),
            world,
            calls: HashMap::new(),
            stopping: None,
            _place: place,
        }
    }

    async fn event(&mut self, event: &Value) {
        let text = event["line"].as_str().unwrap();
        match event["dir"].as_str().unwrap() {
            "runtime>clip" | "runtime>A" => {
                let Ok(line) = serde_json::from_str::<Value>(text) else {
                    return;
                };
                if line["type"] == "invoke" {
                    let input = line.get("input").cloned().unwrap_or_else(|| json!({}));
                    let stream = call(&self.clip, line["command"].as_str().unwrap(), &input);
                    self.calls
                        .insert(line["id"].as_str().unwrap().into(), stream);
                }
            }
            "clip>runtime" | "A>runtime" => {
                let line: Value = serde_json::from_str(text).unwrap();
                self.answer(&line, event["length"].as_u64()).await;
            }
            "runtime" => {
                let clip = self.clip.clone();
                common::eventually("the process", || clip.is_running()).await;
                self.stopping = Some(tokio::spawn(async move { clip.stop().await }));
            }
            _ => {}
        }
    }

    async fn answer(&mut self, line: &Value, length: Option<u64>) {
        let Some(stream) = line["id"].as_str().and_then(|id| self.calls.get_mut(id)) else {
            return;
        };
        match line["type"].as_str().unwrap() {
            "result" | "response" | "chunk" | "stream" if line.get("error").is_none() => {
                let expected = line.get("output").or(line.get("chunk")).unwrap();
                let output = match part(stream).await {
                    Some(Ok(output)) => output,
                    other => panic!(
                        "{other:?} instead of {line}: {:?}",
                        common::messages(&self.clip)
                    ),
                };
                match length {
                    Some(length) => {
                        assert_eq!(output["blob"].as_str().unwrap().len() as u64, length - 48);
                    }
                    None => assert_eq!(output, *expected),
                }
            }
            "error" | "response" => {
                let error = part(stream).await.unwrap().unwrap_err();
                let CallError::Answered(error) = error else {
                    panic!("{error}")
                };
                let expected = &line["error"];
                let message = expected.as_str().or(expected["message"].as_str());
                assert_eq!(Some(&*error.message), message);
                if let Some(code) = expected["code"].as_str() {
                    assert_eq!(error.code.upper(), code);
                }
            }
            "log" => {}
            "done" | "stream_end" => assert!(part(stream).await.is_none()),
            other => panic!("{other}"),
        }
    }

    /// Checks that every call and the process ended as recorded, and that the clip sent all recorded requests.
    async fn finish(mut self, recording: &Value) {
        let code = recording["exit"]["code"].as_i64();
        let crashed = code.is_some_and(|code| code != 0);
        for (id, stream) in &mut self.calls {
            match part(stream).await {
                None => {}
                Some(Err(CallError::Unanswered(error))) if crashed => {
                    assert_eq!(error.code, Code::Unavailable);
                }
                other => panic!("call {id} went on: {other:?}"),
            }
            assert!(part(stream).await.is_none());
        }
        if let Some(stopping) = self.stopping.take() {
            stopping.await.unwrap();
        }
        if recording.get("exit").is_none() {
            self.clip.stop().await;
        }
        let clip = self.clip.clone();
        common::eventually("the end of the process", || !clip.is_running()).await;
        let expected = if crashed {
            ClipState::Error
        } else {
            ClipState::Sleeping
        };
        let status = self.clip.status();
        assert_eq!(
            status.state,
            expected,
            "{status:?} {:?}",
            common::messages(&self.clip)
        );
        assert!(self.world.answers.lock().unwrap().is_empty());
    }
}

async fn play(path: &Path) {
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut play = Play::new(path, &recording);
    for event in recording["events"].as_array().unwrap() {
        let step = tokio::time::timeout(Duration::from_secs(60), play.event(event));
        if step.await.is_err() {
            panic!(
                "{path:?} hangs at {event}: {:?}",
                common::messages(&play.clip)
            );
        }
    }
    let clip = play.clip.clone();
    let finished = tokio::time::timeout(Duration::from_secs(60), play.finish(&recording));
    if finished.await.is_err() {
        panic!("{path:?} does not end: {:?}", common::messages(&clip));
    }
}

#[tokio::test]
async fn recordings_of_the_sdk() {
    let paths = vectors("ipc-recorded");
    assert_eq!(paths.len(), 23);
    for path in paths {
        // In this recording the runtime does what pinion must not do.
        if !path.ends_with("r11-cross-clip-stream-hangs.json") {
            play(&path).await;
        }
    }
}

#[tokio::test]
async fn exchanges_with_direct_clips() {
    let paths = vectors("ipc-seed");
    assert_eq!(paths.len(), 7);
    for path in paths {
        play(&path).await;
    }
}

#[tokio::test]
async fn the_manifest_of_a_recorded_clip_is_the_registered_one() {
    let path = &vectors("ipc-recorded")[0];
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let play = Play::new(path, &recording);
    let manifest = play.clip.inspect().await.unwrap();
    assert_eq!(
        (manifest.name.as_str(), manifest.domain.as_str()),
        ("lab", "lab")
    );
    let echo = manifest.command("echo").unwrap();
    assert_eq!(echo.description, "Echo text");
    let schema: Value = serde_json::from_str(&echo.input).unwrap();
    assert_eq!(schema["properties"]["text"]["minLength"], 1);
    assert!(
        manifest
            .commands
            .is_sorted_by_key(|command| command.name.clone())
    );
}

#[tokio::test]
async fn secrets_of_bound_slots_are_passed_on() {
    let path = vectors("ipc-recorded")
        .into_iter()
        .find(|path| path.ends_with("r21-bound-slot.json"))
        .unwrap();
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let mut play = Play::new(&path, &recording);
    for event in recording["events"].as_array().unwrap() {
        play.event(event).await;
    }
    let asked = play.world.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [
            json!({"clip": "store-9f3c", "command": "get", "clip_token": "ct-1", "input": {"key": "k"}})
        ]
    );
    play.finish(&recording).await;
}
