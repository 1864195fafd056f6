//! Writes engine events and control frames as lines.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use pinion_history::{Fault, HistoryError, TimelineStore};
use pinion_jsonl::{Project, Records};

use crate::events::ChatEvent;
use crate::frames::{Address, EventFrame, Frames};
use crate::outgoing::{Closing, Control, Out, Terminal};
use crate::patch::PatchMode;
use crate::requests::ErrorCode;
use crate::run_end::RunEnd;
use crate::stream::SessionStream;
use crate::translate::Translator;

/// The parts of a front.
#[derive(Default)]
pub struct FrontOptions {
    /// The form of patches.
    pub patch_mode: PatchMode,
    /// The store of the timeline. Without one it ends with the process.
    pub store: Option<Box<dyn TimelineStore>>,
    /// Receives a copy of all lines.
    pub copy: Option<Box<dyn Write + Send>>,
}

impl fmt::Debug for FrontOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontOptions")
            .field("patch_mode", &self.patch_mode)
            .field("store", &self.store.is_some())
            .field("copy", &self.copy.is_some())
            .finish()
    }
}

/// Receives a message when the timeline is no longer stored.
struct Watcher(Box<dyn Fn(&str) + Send>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// Writes events as frames. A frame is written after its events are in the store.
#[derive(Debug)]
pub struct Front {
    translator: Translator,
    frames: Frames,
    timeline: TimelineWriter,
    copy: LineCopy,
    /// Notified when the store has failed.
    watcher: Option<Watcher>,
    /// The address of the events of the active run.
    run: Address,
    /// The address of the last control frame; `None` once a run has continued.
    asked: Option<Address>,
    /// The events of one item.
    events: Vec<ChatEvent>,
    payload: Vec<u8>,
}

impl Front {
    /// Creates a front before its first frame.
    pub fn new(options: FrontOptions) -> Self {
        Self {
            translator: Translator::default(),
            frames: Frames::new(options.patch_mode),
            timeline: TimelineWriter {
                streams: Vec::new(),
                store: options.store,
                failure: None,
            },
            copy: LineCopy {
                file: options.copy,
                lines: Vec::new(),
            },
            watcher: None,
            run: Address::default(),
            asked: None,
            events: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Adds a watcher that does not read frames and is notified when the timeline is no longer stored.
    pub fn watched(self, watcher: impl Fn(&str) + Send + 'static) -> Self {
        Self {
            watcher: Some(Watcher(Box::new(watcher))),
            ..self
        }
    }

    /// Publishes the events that the translator made from an item.
    fn publish(&mut self, records: &mut Records) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.publish_one(&event, records);
        }
        self.events = events;
    }

    fn publish_one(&mut self, event: &ChatEvent, records: &mut Records) {
        let at = self.timeline.stream(&self.run.session_id);
        let is_kept = self.timeline.store.is_some();
        self.payload.clear();
        if is_kept || self.frames.needs_payload(event) {
            event.append_payload(&mut self.payload);
        }
        let payload = is_kept.then(|| String::from_utf8_lossy(&self.payload));
        let Some(stream) = self.timeline.streams.get_mut(at) else {
            return;
        };
        let ordinal = stream.publish(event, payload.as_deref());
        let (timeline, copy) = (&mut self.timeline, &mut self.copy);
        let mut push = |slices: &[&[u8]]| push(slices, records, timeline, copy);
        self.frames.event(
            &self.run,
            EventFrame::Ui,
            ordinal,
            event,
            &self.payload,
            &mut push,
        );
        self.report_store_failure(records);
    }

    fn snapshot(&mut self, address: &Address, records: &mut Records) {
        let at = self.timeline.stream(&address.session_id);
        self.report_store_failure(records);
        if let Some(stream) = self.timeline.streams.get(at) {
            let line = self
                .frames
                .snapshot(address, stream.ordinal(), &stream.entities());
            self.line(&line, records);
        }
    }

    fn control(&mut self, address: &Address, control: Control, records: &mut Records) {
        let line = match control {
            Control::Snapshot => return self.snapshot(address, records),
            Control::Hello(surface) => self.frames.hello(address, surface),
            Control::Error {
                code,
                message,
                terminal,
            } => {
                let is_terminal = terminal == Terminal::Yes;
                self.frames
                    .error(address, code.as_str(), &message, is_terminal)
            }
            Control::Done(status) => self.frames.done(address, status.as_str()),
        };
        self.line(&line, records);
    }

    fn close(&mut self, end: &RunEnd, terminal: Terminal, records: &mut Records) {
        let address = self.run.clone();
        self.snapshot(&address, records);
        if let RunEnd::Failed(error) = end {
            let message = if error.is_empty() {
                "chat run failed"
            } else {
                error
            };
            let is_terminal = terminal == Terminal::Yes;
            let code = ErrorCode::RunFailed.as_str();
            let line = self.frames.error(&address, code, message, is_terminal);
            self.line(&line, records);
        }
        // Events must be stored before a frame reports the end of their run.
        self.timeline.commit();
        self.report_store_failure(records);
        let line = self.frames.done(&address, end.done_status());
        self.line(&line, records);
    }

    fn line(&mut self, line: &[u8], records: &mut Records) {
        push(&[line], records, &mut self.timeline, &mut self.copy);
        self.report_store_failure(records);
    }

    /// Reports a failed store once; the stream continues without it.
    fn report_store_failure(&mut self, records: &mut Records) {
        let Some(failure) = self.timeline.failure.take() else {
            return;
        };
        let message = format!(
            "the timeline is no longer stored: {failure}; entries stored before are intact"
        );
        if let Some(Watcher(watcher)) = &self.watcher {
            watcher(&message);
        }
        let code = ErrorCode::StoreFailed.as_str();
        let address = self.asked.as_ref().unwrap_or(&self.run);
        let line = self.frames.error(address, code, &message, false);
        push(&[&line], records, &mut self.timeline, &mut self.copy);
    }
}

impl Project for Front {
    type Item = Out;

    fn project(&mut self, item: Out, records: &mut Records) {
        self.asked = match &item {
            Out::Control { address, .. } => Some(address.clone()),
            _ => None,
        };
        match item {
            Out::Delta { index, text, .. } => {
                let text: Arc<str> = text.into_shared();
                self.translator.delta(index, &text, &mut self.events);
                self.publish(records);
            }
            Out::Event { event, at, .. } => {
                self.translator.event(&event, at, &mut self.events);
                self.publish(records);
            }
            Out::RunBegins { start, request_id } => {
                let address = Address {
                    session_id: start.session_id.clone(),
                    request_id,
                };
                // The start of a run ends an unfinished one first; its last event still belongs to the earlier run.
                self.translator.begin(*start, &mut self.events);
                let begins = |event: &ChatEvent| matches!(event, ChatEvent::UserMessageAccepted(_));
                let own = self.events.iter().position(begins).unwrap_or(0);
                let rest = self.events.split_off(own);
                self.publish(records);
                self.run = address;
                self.events = rest;
                self.publish(records);
            }
            Out::RunEnded { end, at, closing } => {
                if !self.translator.is_running() {
                    return;
                }
                self.translator.end(&end, at, &mut self.events);
                self.publish(records);
                if let Closing::Request { terminal } = closing {
                    self.close(&end, terminal, records);
                }
            }
            Out::Control { address, control } => self.control(&address, control, records),
        }
    }

    fn before_flush(&mut self, records: &mut Records) {
        self.timeline.commit();
        self.report_store_failure(records);
        self.copy.flush();
    }
}

/// Adds a line. If that writes bytes, their events are stored first.
fn push(
    slices: &[&[u8]],
    records: &mut Records,
    timeline: &mut TimelineWriter,
    copy: &mut LineCopy,
) {
    let length = slices.iter().map(|slice| slice.len()).sum();
    if records.would_write(length) {
        timeline.commit();
        copy.flush();
    }
    copy.push(slices);
    records.push(slices);
}

/// The sessions of the process and the store of their timelines.
struct TimelineWriter {
    streams: Vec<SessionStream>,
    store: Option<Box<dyn TimelineStore>>,
    /// The reason why the store failed, until it has been reported.
    failure: Option<String>,
}

impl fmt::Debug for TimelineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineWriter")
            .field("streams", &self.streams)
            .field("store", &self.store.is_some())
            .field("failure", &self.failure)
            .finish()
    }
}

impl TimelineWriter {
    /// Returns the position of a session's stream, which is read from the store on first use.
    fn stream(&mut self, id: &str) -> usize {
        let known = self.streams.iter().position(|stream| stream.id() == id);
        if let Some(at) = known {
            return at;
        }
        let hydrated = match &mut self.store {
            Some(store) => SessionStream::hydrate(id, &mut **store),
            None => Ok(SessionStream::new(id)),
        };
        let stream = hydrated.unwrap_or_else(|error| {
            self.drop_store(id, &error);
            SessionStream::new(id)
        });
        self.streams.push(stream);
        self.streams.len() - 1
    }

    /// Writes pending events to the store.
    fn commit(&mut self) {
        for at in 0..self.streams.len() {
            let (Some(stream), Some(store)) = (self.streams.get_mut(at), &mut self.store) else {
                return;
            };
            if let Err(error) = stream.commit(&mut **store) {
                let id = stream.id().to_owned();
                self.drop_store(&id, &error);
                return;
            }
        }
    }

    fn drop_store(&mut self, id: &str, error: &HistoryError) {
        if let Some(mut store) = self.store.take() {
            let fault = Fault {
                kind: "store".into(),
                session: Some(id.to_owned()),
                error: error.to_string(),
                ..Fault::default()
            };
            // A store that cannot store events may not be able to store this either; then it is only reported.
            let _ = store.record_error(&fault);
        }
        for stream in &mut self.streams {
            stream.drop_pending();
        }
        self.failure = Some(error.to_string());
    }
}

/// A second output for the same lines.
struct LineCopy {
    file: Option<Box<dyn Write + Send>>,
    lines: Vec<u8>,
}

impl fmt::Debug for LineCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineCopy")
            .field("file", &self.file.is_some())
            .finish_non_exhaustive()
    }
}

/// Bytes after which lines are written to the copy.
const COPY_BATCH_BYTES: usize = 64 * 1024;

impl LineCopy {
    fn push(&mut self, slices: &[&[u8]]) {
        if self.file.is_none() {
            return;
        }
        for slice in slices {
            self.lines.extend_from_slice(slice);
        }
        if self.lines.len() >= COPY_BATCH_BYTES {
            self.flush();
        }
    }

    /// Writes the buffered lines. A copy that cannot be written is dropped, so that the stream itself continues.
    fn flush(&mut self) {
        if let Some(file) = &mut self.file
            && !self.lines.is_empty()
        {
            let written = file.write_all(&self.lines).and_then(|()| file.flush());
            if written.is_err() {
                self.file = None;
            }
            self.lines.clear();
        }
    }
}
