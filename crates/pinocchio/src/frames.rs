//! Frames: `RpcLine`s as protobuf JSON, one per line.
//!
//! A patch that repeats the text so far is assembled from the parts that all patches of its segment share and a buffer
//! of escaped text that only grows. So each patch needs one copy of the text and no escaping of it.

use std::sync::Arc;

use pinion_jsonl::json;
use pinion_proto::Message;
use pinion_proto::rpc::rpc_line::Frame;
use pinion_proto::rpc::{DoneFrame, ErrorFrame, HelloFrame, RpcLine};

use crate::events::{ChatEvent, append_quoted_number, entity_type_url};
use crate::outgoing::Surface;
use crate::patch::{Patch, PatchMode, PatchStream};
use crate::pb::Text;
use crate::timeline::ShownEntity;

const VERSION: u32 = 1;
const PROTOCOL: &str = "pinocchio.chatapp.rpc.v1";
/// Clients may compare the name, so it is that of the program that pinion replaces.
const SERVER: &str = "pinocchio";

/// The session and request that a frame belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    pub session_id: Text,
    /// The request; empty for frames outside requests.
    pub request_id: Text,
}

/// The kind of frame that carries an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFrame {
    /// `uiEvent`.
    Ui,
    /// `backendEvent`; the command runner sends none.
    Backend,
}

/// Encodes frames.
#[derive(Debug)]
pub struct Frames {
    mode: PatchMode,
    /// `{"version":1,"sessionId":…,"requestId":…,` of the last address.
    opening: Vec<u8>,
    opened: Option<Address>,
    /// The bytes from the opening to the members of the payload.
    head: Vec<u8>,
    numbers: Vec<u8>,
    /// The escaped text of every growing segment.
    growing: Vec<(Arc<PatchStream>, Vec<u8>)>,
}

impl Frames {
    /// Creates an encoder that writes patches in `mode`.
    pub fn new(mode: PatchMode) -> Self {
        Self {
            mode,
            opening: Vec::new(),
            opened: None,
            head: Vec::new(),
            numbers: Vec::new(),
            growing: Vec::new(),
        }
    }

    /// Reports whether [`Frames::event`] uses its `payload`.
    pub fn needs_payload(&self, event: &ChatEvent) -> bool {
        self.repeated(event).is_none()
    }

    /// Returns a patch that repeats the text so far. Patches of arguments never do, because clients concatenate them.
    fn repeated<'a>(&self, event: &'a ChatEvent) -> Option<&'a Patch> {
        match event {
            ChatEvent::Patch(patch) if patch.stream.kind.mode(self.mode).repeats() => Some(patch),
            _ => None,
        }
    }

    /// Encodes an event; `payload` is its protobuf JSON. `push` receives the slices of the line.
    pub fn event(
        &mut self,
        address: &Address,
        frame: EventFrame,
        ordinal: u64,
        event: &ChatEvent,
        payload: &[u8],
        push: &mut dyn FnMut(&[&[u8]]),
    ) {
        self.open(address);
        self.head.clear();
        self.head.extend_from_slice(match frame {
            EventFrame::Ui => br#""uiEvent":{"#,
            EventFrame::Backend => br#""backendEvent":{"#,
        });
        if ordinal > 0 {
            self.head.extend_from_slice(br#""ordinal":"#);
            append_quoted_number(&mut self.head, ordinal);
            self.head.push(b',');
        }
        self.head.extend_from_slice(br#""name":""#);
        self.head.extend_from_slice(event.name().as_bytes());
        self.head.extend_from_slice(br#"","payload":{"@type":""#);
        event.append_type_url(&mut self.head);
        self.head.push(b'"');
        match self.repeated(event) {
            Some(patch) => self.snapshot_patch(patch, push),
            None => {
                let members = payload.strip_prefix(b"{").unwrap_or(b"}");
                let comma: &[u8] = if members == b"}" { b"" } else { b"," };
                push(&[&self.opening, &self.head, comma, members, b"}}\n"]);
                self.forget(event);
            }
        }
    }

    fn snapshot_patch(&mut self, patch: &Patch, push: &mut dyn FnMut(&[&[u8]])) {
        let known = |(stream, _): &(Arc<PatchStream>, Vec<u8>)| Arc::ptr_eq(stream, &patch.stream);
        let at = self.growing.iter().rposition(known).unwrap_or_else(|| {
            let stream = Arc::clone(&patch.stream);
            self.growing.push((stream, Vec::new()));
            self.growing.len() - 1
        });
        let Some((_, escaped)) = self.growing.get_mut(at) else {
            return;
        };
        if patch.mode == PatchMode::Snapshot {
            escaped.clear();
        }
        json::append_escaped(escaped, &patch.text);
        self.numbers.clear();
        patch.append_numbers(&mut self.numbers);
        let [head, numbers, name, text, quote, mode, word, tail] =
            patch.members(&self.numbers, escaped, PatchMode::Snapshot);
        let (opening, start) = (&self.opening, &self.head);
        push(&[
            opening, start, head, numbers, name, text, quote, mode, word, tail, b"}}}\n",
        ]);
    }

    /// Drops the text of a segment that has ended.
    fn forget(&mut self, event: &ChatEvent) {
        if self.growing.is_empty() {
            return;
        }
        let ended = match event {
            ChatEvent::TextSegmentFinished(event) => &event.message_id,
            ChatEvent::ReasoningSegmentFinished(event) => &event.message_id,
            ChatEvent::ToolCallRequested(event) => &event.tool_call_id,
            event if event.ends_run() => {
                self.growing.clear();
                return;
            }
            _ => return,
        };
        self.growing
            .retain(|(stream, _)| stream.entity_id() != &**ended);
    }

    fn open(&mut self, address: &Address) {
        if self.opened.as_ref() == Some(address) {
            return;
        }
        let line = RpcLine {
            version: VERSION,
            session_id: address.session_id.clone(),
            request_id: address.request_id.clone(),
            frame: None,
        };
        self.opening.clear();
        line.encode_json(&mut self.opening);
        if let Some(brace) = self.opening.last_mut() {
            *brace = b',';
        }
        self.opened = Some(address.clone());
    }

    /// Encodes the state of a session after the event `ordinal`.
    pub fn snapshot(
        &mut self,
        address: &Address,
        ordinal: u64,
        entities: &[ShownEntity],
    ) -> Vec<u8> {
        self.open(address);
        let mut line = self.opening.clone();
        line.extend_from_slice(br#""snapshot":{"#);
        if ordinal > 0 {
            line.extend_from_slice(br#""snapshotOrdinal":"#);
            append_quoted_number(&mut line, ordinal);
        }
        let mut is_first = true;
        for entity in entities {
            // The payload of an unregistered kind has no type URL, so it cannot be encoded.
            let Some(type_url) = entity_type_url(&entity.kind) else {
                continue;
            };
            line.extend_from_slice(match (is_first, ordinal > 0) {
                (true, true) => br#","entities":["#,
                (true, false) => br#""entities":["#,
                (false, _) => b",",
            });
            is_first = false;
            append_entity(&mut line, entity, type_url);
        }
        if !is_first {
            line.push(b']');
        }
        line.extend_from_slice(b"}}\n");
        line
    }

    /// Encodes the first frame.
    pub fn hello(&self, address: &Address, surface: Surface) -> Vec<u8> {
        let capabilities = surface.capabilities();
        let hello = HelloFrame {
            protocol: PROTOCOL.into(),
            server: SERVER.into(),
            capabilities: capabilities.iter().map(|&word| word.into()).collect(),
        };
        control(address, Frame::Hello(hello))
    }

    /// Encodes an error.
    pub fn error(&self, address: &Address, code: &str, message: &str, terminal: bool) -> Vec<u8> {
        let message = Text::new(message);
        let error = ErrorFrame {
            code: Text::new(code),
            message: message.clone(),
            detail: message,
            terminal,
        };
        control(address, Frame::Error(error))
    }

    /// Encodes the end of a request.
    pub fn done(&self, address: &Address, status: &'static str) -> Vec<u8> {
        let done = DoneFrame {
            status: status.into(),
        };
        control(address, Frame::Done(done))
    }
}

fn append_entity(line: &mut Vec<u8>, entity: &ShownEntity, type_url: [&str; 3]) {
    line.extend_from_slice(br#"{"kind":""#);
    json::append_escaped(line, &entity.kind);
    line.extend_from_slice(br#"","id":""#);
    json::append_escaped(line, &entity.id);
    line.push(b'"');
    for (name, number) in [
        (r#","createdOrdinal":"#, entity.created_ordinal),
        (r#","lastEventOrdinal":"#, entity.last_event_ordinal),
    ] {
        if number > 0 {
            line.extend_from_slice(name.as_bytes());
            append_quoted_number(line, number);
        }
    }
    line.extend_from_slice(br#","payload":{"@type":""#);
    for part in type_url {
        line.extend_from_slice(part.as_bytes());
    }
    line.push(b'"');
    let members = entity.payload.strip_prefix('{').unwrap_or("}");
    if members != "}" {
        line.push(b',');
    }
    line.extend_from_slice(members.as_bytes());
    line.push(b'}');
}

fn control(address: &Address, frame: Frame) -> Vec<u8> {
    let line = RpcLine {
        version: VERSION,
        session_id: address.session_id.clone(),
        request_id: address.request_id.clone(),
        frame: Some(frame),
    };
    let mut printed = Vec::with_capacity(256);
    line.encode_json(&mut printed);
    printed.push(b'\n');
    printed
}
