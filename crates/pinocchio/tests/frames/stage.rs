//! Drives a front and reads its output.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pinion_agent::{Event, ToolOutput, ToolRun};
use pinion_history::{
    EntityChange, Fault, HistoryError, MemoryTimeline, TimelineEvent, TimelineSession,
    TimelineSnapshot, TimelineStore,
};
use pinion_jsonl::{Coalesce, DeltaText, Project, Queue, Records, Writer, WriterEnd};
use pinion_message::{Block, Message};
use pinion_pinocchio::{
    Address, Closing, Control, Front, FrontOptions, Out, PatchMode, RunEnd, RunStart, Surface,
    Terminal, Text,
};
use serde_json::{Value, json};

/// Returns the output of a front with `options` for `outs`.
pub fn printed(outs: Vec<Out>, options: FrontOptions, coalesce: Coalesce) -> String {
    let queue = Queue::new(coalesce);
    for out in outs {
        queue.push(out);
    }
    queue.close();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let descriptor = File::from(OwnedFd::from(writer));
    let writer = Writer::spawn(descriptor, Front::new(options), queue).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(matches!(writer.join(), WriterEnd::Complete));
    text
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

pub fn append() -> FrontOptions {
    FrontOptions {
        patch_mode: PatchMode::Append,
        ..FrontOptions::default()
    }
}

/// A sequence of items with its own clock.
pub struct Stage {
    pub outs: Vec<Out>,
    now: Instant,
}

impl Stage {
    pub fn new() -> Self {
        Self {
            outs: Vec::new(),
            now: Instant::now(),
        }
    }

    pub fn control(&mut self, session: &str, request: &str, control: Control) {
        self.outs.push(Out::Control {
            address: address(session, request),
            control,
        });
    }

    pub fn hello(&mut self, session: &str, surface: Surface) {
        self.control(session, "", Control::Hello(surface));
    }

    pub fn begin(&mut self, start: RunStart, request: &str) {
        self.outs.push(Out::RunBegins {
            start: Box::new(start),
            request_id: Text::new(request),
        });
    }

    pub fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    pub fn event(&mut self, event: Event) {
        self.outs.push(match event {
            Event::BlockDelta { index, delta } => Out::Delta {
                index,
                weight: delta.len() + 1024,
                text: DeltaText::One(delta),
            },
            event => Out::Event {
                event,
                at: self.now,
                weight: 1024,
            },
        });
    }

    pub fn end(&mut self, end: RunEnd, terminal: Terminal) {
        self.outs.push(Out::RunEnded {
            end,
            at: self.now,
            closing: Closing::Request { terminal },
        });
    }

    /// Starts an answer.
    pub fn answer_begins(&mut self, answer: &Value) {
        let mut beginning = answer.clone();
        beginning["content"] = json!([]);
        beginning["usage"] = json!({});
        beginning["stopReason"] = json!("stop");
        beginning.as_object_mut().unwrap().remove("errorMessage");
        self.event(Event::TurnStart);
        self.event(Event::MessageStart(message(&beginning)));
    }

    /// Sends the block at `index` of an answer in `pieces`.
    pub fn block(&mut self, index: usize, answer: &Value, pieces: &[&str]) {
        let mut beginning = answer["content"][index].clone();
        for (name, empty) in [
            ("text", json!("")),
            ("thinking", json!("")),
            ("arguments", json!({})),
        ] {
            if !beginning[name].is_null() {
                beginning[name] = empty;
            }
        }
        let block = block(&beginning);
        self.event(Event::BlockStart { index, block });
        for piece in pieces {
            let delta = (*piece).into();
            self.event(Event::BlockDelta { index, delta });
        }
    }

    pub fn block_ends(&mut self, index: usize, answer: &Value) {
        let block = block(&answer["content"][index]);
        self.event(Event::BlockEnd { index, block });
    }

    pub fn answer_ends(&mut self, answer: &Value) {
        self.event(Event::MessageEnd(message(answer)));
    }

    pub fn tool(&mut self, id: &str, name: &str, arguments: Value, output: &str) {
        let run = Arc::new(ToolRun {
            call_id: id.into(),
            name: name.into(),
            arguments,
            parent_call_id: None,
        });
        self.event(Event::ToolStart(Arc::clone(&run)));
        self.event(Event::ToolEnd {
            run,
            output: Arc::new(ToolOutput::text(output)),
            is_error: false,
            duration: Some(Duration::from_millis(3)),
        });
    }
}

pub fn address(session: &str, request: &str) -> Address {
    Address {
        session_id: Text::new(session),
        request_id: Text::new(request),
    }
}

pub fn message(value: &Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value.clone()).unwrap())
}

pub fn block(value: &Value) -> Arc<Block> {
    Arc::new(serde_json::from_value(value.clone()).unwrap())
}

/// A shared store that counts what it receives.
#[derive(Clone, Default)]
pub struct SharedStore(pub Arc<Mutex<StoreState>>);

#[derive(Default)]
pub struct StoreState {
    pub timeline: MemoryTimeline,
    pub entity_bytes: usize,
    pub event_bytes: usize,
    pub appends: usize,
    /// Appends that succeed before the disk is full.
    pub fails_after: Option<usize>,
    /// Reading fails.
    pub unreadable: bool,
}

impl SharedStore {
    pub fn boxed(&self) -> Option<Box<dyn TimelineStore>> {
        Some(Box::new(self.clone()))
    }

    pub fn snapshot_of(&self, session: &str) -> TimelineSnapshot {
        let mut state = self.0.lock().unwrap();
        state.timeline.snapshot(session, None).unwrap()
    }
}

impl TimelineStore for SharedStore {
    fn cursor(&mut self, session: &str) -> Result<u64, HistoryError> {
        let mut state = self.0.lock().unwrap();
        if state.unreadable {
            Err(HistoryError::Options("not a database".into()))
        } else {
            state.timeline.cursor(session)
        }
    }

    fn append(
        &mut self,
        session: &str,
        events: &[TimelineEvent],
        entities: &[EntityChange],
    ) -> Result<(), HistoryError> {
        let mut state = self.0.lock().unwrap();
        state.appends += 1;
        if state.fails_after.is_some_and(|limit| state.appends > limit) {
            return Err(HistoryError::Options("disk full".into()));
        }
        state.event_bytes += events.iter().map(|it| it.payload.len()).sum::<usize>();
        state.entity_bytes += entities
            .iter()
            .map(|it| it.entity.payload.len())
            .sum::<usize>();
        state.timeline.append(session, events, entities)
    }

    fn apply(
        &mut self,
        session: &str,
        entities: &[EntityChange],
        through: u64,
    ) -> Result<(), HistoryError> {
        let mut state = self.0.lock().unwrap();
        state.timeline.apply(session, entities, through)
    }

    fn snapshot(
        &mut self,
        session: &str,
        as_of: Option<u64>,
    ) -> Result<TimelineSnapshot, HistoryError> {
        self.0.lock().unwrap().timeline.snapshot(session, as_of)
    }

    fn events(
        &mut self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<TimelineEvent>, HistoryError> {
        let mut state = self.0.lock().unwrap();
        state.timeline.events(session, after, limit)
    }

    fn projected(&mut self, session: &str) -> Result<u64, HistoryError> {
        self.0.lock().unwrap().timeline.projected(session)
    }

    fn forget_entities(&mut self, session: &str) -> Result<(), HistoryError> {
        self.0.lock().unwrap().timeline.forget_entities(session)
    }

    fn sessions(&mut self) -> Result<Vec<TimelineSession>, HistoryError> {
        self.0.lock().unwrap().timeline.sessions()
    }

    fn record_error(&mut self, fault: &Fault) -> Result<(), HistoryError> {
        self.0.lock().unwrap().timeline.record_error(fault)
    }

    fn faults(&mut self, session: &str) -> Result<Vec<Fault>, HistoryError> {
        self.0.lock().unwrap().timeline.faults(session)
    }
}

/// A front with a reader that is never slow: every item is written before the next one.
pub struct EagerFront {
    front: Front,
    records: Records,
    file: File,
}

impl EagerFront {
    pub fn new(options: FrontOptions) -> Self {
        let file = tempfile();
        Self {
            front: Front::new(options),
            records: Records::new(file.try_clone().unwrap()),
            file,
        }
    }

    pub fn take(&mut self, outs: Vec<Out>) {
        for out in outs {
            self.front.project(out, &mut self.records);
            self.front.before_flush(&mut self.records);
            assert!(self.records.flush());
        }
    }

    pub fn printed(&mut self) -> String {
        let mut text = String::new();
        self.file.rewind().unwrap();
        self.file.read_to_string(&mut text).unwrap();
        text
    }
}

fn tempfile() -> File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("pinion-frames-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true);
    let file = options.open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}
