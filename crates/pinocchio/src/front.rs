//! Engine events and control frames as lines.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use pinion_history::{Fault, HistoryError, TimelineStore};
use pinion_jsonl::{Project, Records};

use crate::events::ChatEvent;
use crate::frames::{Address, EventFrame, Frames};
use crate::outgoing::{Closing, Control, Out, Terminal};
use crate::patch::PatchMode;
use crate::requests::Code;
use crate::stream::SessionStream;
use crate::translate::Translator;
use crate::verdict::RunEnd;

/// What a front is made of.
#[derive(Default)]
pub struct FrontOptions {
    /// How patches are told.
    pub patch_mode: PatchMode,
    /// Where the timeline is kept. Without one it ends with the process.
    pub store: Option<Box<dyn TimelineStore>>,
    /// Gets the same lines.
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

/// Hears, in words, that the timeline is not kept any more.
struct Watcher(Box<dyn Fn(&str) + Send>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

/// Prints what happens as frames. A frame is written after what it tells is in the store.
#[derive(Debug)]
pub struct Front {
    translator: Translator,
    frames: Frames,
    keeper: Keeper,
    copy: Copy,
    /// Who is told when the store is given up.
    watcher: Option<Watcher>,
    /// Whose the events of the active run are.
    run: Address,
    /// Whose the last control frame was; `None` once a run has gone on.
    asked: Option<Address>,
    /// Events of one item.
    events: Vec<ChatEvent>,
    payload: Vec<u8>,
}

impl Front {
    /// A front before its first frame.
    pub fn new(options: FrontOptions) -> Self {
        Self {
            translator: Translator::default(),
            frames: Frames::new(options.patch_mode),
            keeper: Keeper {
                streams: Vec::new(),
                store: options.store,
                failure: None,
            },
            copy: Copy {
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

    /// The same, with somebody who does not read frames and is told when the timeline is not kept any more.
    pub fn watched(self, watcher: impl Fn(&str) + Send + 'static) -> Self {
        Self {
            watcher: Some(Watcher(Box::new(watcher))),
            ..self
        }
    }

    /// Publishes what the translator made of an item.
    fn publish(&mut self, records: &mut Records) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            self.publish_one(&event, records);
        }
        self.events = events;
    }

    fn publish_one(&mut self, event: &ChatEvent, records: &mut Records) {
        let at = self.keeper.stream(&self.run.session_id);
        let is_kept = self.keeper.store.is_some();
        self.payload.clear();
        if is_kept || self.frames.needs_payload(event) {
            event.append_payload(&mut self.payload);
        }
        let payload = is_kept.then(|| String::from_utf8_lossy(&self.payload));
        let Some(stream) = self.keeper.streams.get_mut(at) else {
            return;
        };
        let ordinal = stream.publish(event, payload.as_deref());
        let (keeper, copy) = (&mut self.keeper, &mut self.copy);
        let mut push = |slices: &[&[u8]]| push(slices, records, keeper, copy);
        self.frames.event(
            &self.run,
            EventFrame::Ui,
            ordinal,
            event,
            &self.payload,
            &mut push,
        );
        self.tell_failure(records);
    }

    fn snapshot(&mut self, address: &Address, records: &mut Records) {
        let at = self.keeper.stream(&address.session_id);
        self.tell_failure(records);
        if let Some(stream) = self.keeper.streams.get(at) {
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
            let message = match error.is_empty() {
                true => "chat run failed",
                false => error,
            };
            let is_terminal = terminal == Terminal::Yes;
            let code = Code::RunFailed.as_str();
            let line = self.frames.error(&address, code, message, is_terminal);
            self.line(&line, records);
        }
        // Nothing of the run may be told as done that is not kept.
        self.keeper.commit();
        self.tell_failure(records);
        let line = self.frames.done(&address, end.done_status());
        self.line(&line, records);
    }

    fn line(&mut self, line: &[u8], records: &mut Records) {
        push(&[line], records, &mut self.keeper, &mut self.copy);
        self.tell_failure(records);
    }

    /// A store that failed is told once; the stream goes on without it.
    fn tell_failure(&mut self, records: &mut Records) {
        let Some(failure) = self.keeper.failure.take() else {
            return;
        };
        let message = format!(
            "the timeline is not kept from here on: {failure}; what was kept before is unharmed"
        );
        if let Some(Watcher(watcher)) = &self.watcher {
            watcher(&message);
        }
        let code = Code::StoreFailed.as_str();
        let address = self.asked.as_ref().unwrap_or(&self.run);
        let line = self.frames.error(address, code, &message, false);
        push(&[&line], records, &mut self.keeper, &mut self.copy);
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
                // Whoever begins a run owes the end of the one before; its last event is still its own.
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
        self.keeper.commit();
        self.tell_failure(records);
        self.copy.flush();
    }
}

/// Adds a line. If that makes bytes go out, what they tell is kept first.
fn push(slices: &[&[u8]], records: &mut Records, keeper: &mut Keeper, copy: &mut Copy) {
    let length = slices.iter().map(|slice| slice.len()).sum();
    if records.would_write(length) {
        keeper.commit();
        copy.flush();
    }
    copy.push(slices);
    records.push(slices);
}

/// The sessions of the process and the store that keeps them.
struct Keeper {
    streams: Vec<SessionStream>,
    store: Option<Box<dyn TimelineStore>>,
    /// Why the store is no more, until that has been told.
    failure: Option<String>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("streams", &self.streams)
            .field("store", &self.store.is_some())
            .field("failure", &self.failure)
            .finish()
    }
}

impl Keeper {
    /// The position of the stream of a session, which is read from the store when it is first asked for.
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
            self.give_up(id, &error);
            SessionStream::new(id)
        });
        self.streams.push(stream);
        self.streams.len() - 1
    }

    /// Gives the store what it does not have.
    fn commit(&mut self) {
        for at in 0..self.streams.len() {
            let (Some(stream), Some(store)) = (self.streams.get_mut(at), &mut self.store) else {
                return;
            };
            if let Err(error) = stream.commit(&mut **store) {
                let id = stream.id().to_owned();
                self.give_up(&id, &error);
                return;
            }
        }
    }

    fn give_up(&mut self, id: &str, error: &HistoryError) {
        if let Some(mut store) = self.store.take() {
            let fault = Fault {
                kind: "store".into(),
                session: Some(id.to_owned()),
                error: error.to_string(),
                ..Fault::default()
            };
            // A store that cannot keep events may not be able to keep this either; then it is only told.
            let _ = store.record_error(&fault);
        }
        for stream in &mut self.streams {
            stream.drop_pending();
        }
        self.failure = Some(error.to_string());
    }
}

/// A second place for the same lines.
struct Copy {
    file: Option<Box<dyn Write + Send>>,
    lines: Vec<u8>,
}

impl fmt::Debug for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy")
            .field("file", &self.file.is_some())
            .finish_non_exhaustive()
    }
}

/// Lines are written to the copy in pieces of about this size.
const COPY_BATCH: usize = 64 * 1024;

impl Copy {
    fn push(&mut self, slices: &[&[u8]]) {
        if self.file.is_none() {
            return;
        }
        for slice in slices {
            self.lines.extend_from_slice(slice);
        }
        if self.lines.len() >= COPY_BATCH {
            self.flush();
        }
    }

    /// Writes what there is. A copy that cannot be written is given up: the stream itself is what counts.
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
