//! The output: lines and pieces of text on their way to the writer, in the order of each session.

use std::sync::{Arc, Mutex};

use pinion_jsonl::{Outgoing, Project, Queue, Records};
use pinion_sync::lock;
use serde_json::{Value, json};

use crate::error::AcpError;
use crate::rpc;
use crate::traffic_log::{Direction, TrafficLog};

/// The longest line that the agent writes, in bytes.
const MAX_LINE_BYTES: usize = 8 << 20;
/// The longest text of one chunk, in bytes.
const MAX_CHUNK_BYTES: usize = 16 << 10;
/// Estimated bytes of a chunk without its text.
const FRAME_BYTES: usize = 256;

/// An item for the writer.
#[derive(Debug)]
pub struct Out {
    session: Option<Arc<str>>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Line(Vec<u8>),
    Chunk(Chunk),
}

/// A piece of a message. Pieces of one message merge while the client is slow.
#[derive(Debug)]
struct Chunk {
    kind: ChunkKind,
    message_id: Arc<str>,
    text: String,
}

/// The kinds of messages that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    User,
    Agent,
    Thought,
}

impl ChunkKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user_message_chunk",
            Self::Agent => "agent_message_chunk",
            Self::Thought => "agent_thought_chunk",
        }
    }
}

impl Outgoing for Out {
    fn absorb(&mut self, next: Self) -> Result<(), Self> {
        match (&mut self.form, next.form) {
            (Form::Chunk(chunk), Form::Chunk(more))
                if chunk.kind == more.kind && chunk.message_id == more.message_id =>
            {
                chunk.text.push_str(&more.text);
                Ok(())
            }
            (_, form) => Err(Self {
                session: next.session,
                form,
            }),
        }
    }

    fn weight(&self) -> usize {
        match &self.form {
            Form::Line(line) => line.len(),
            Form::Chunk(chunk) => FRAME_BYTES + chunk.text.len(),
        }
    }

    fn same_stream(&self, other: &Self) -> bool {
        self.session == other.session
    }
}

/// Prints items as lines.
#[derive(Debug)]
pub struct AcpProjection {
    log: Option<Arc<TrafficLog>>,
}

impl AcpProjection {
    /// Creates a projection that also writes every line to `log`.
    pub fn new(log: Option<Arc<TrafficLog>>) -> Self {
        Self { log }
    }

    fn push(&self, line: &[u8], records: &mut Records) {
        if let Some(log) = &self.log {
            log.record(Direction::Sent, line);
        }
        records.push(&[line]);
    }
}

impl Project for AcpProjection {
    type Item = Out;

    fn project(&mut self, item: Out, records: &mut Records) {
        let Out { session, form } = item;
        match form {
            Form::Line(line) => self.push(&line, records),
            Form::Chunk(chunk) => {
                let session = session.as_deref().unwrap_or_default();
                for text in pieces(&chunk.text) {
                    let content = json!({"type": "text", "text": text});
                    let update = chunk_update(chunk.kind, &chunk.message_id, &content);
                    self.push(&update_line(session, &update), records);
                }
            }
        }
    }
}

/// Cuts a text into pieces of limited length, at characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.floor_char_boundary(MAX_CHUNK_BYTES);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

fn chunk_update(kind: ChunkKind, message_id: &str, content: &Value) -> Value {
    json!({"sessionUpdate": kind.name(), "messageId": message_id, "content": content})
}

fn update_line(session: &str, update: &Value) -> Vec<u8> {
    rpc::notification(
        "session/update",
        &json!({"sessionId": session, "update": update}),
    )
}

/// Returns the line of an update, without the parts of a call that would make it too long.
fn fitting_line(session: &str, mut update: Value) -> Vec<u8> {
    let line = update_line(session, &update);
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    if let Some(members) = update.as_object_mut() {
        for name in ["rawInput", "rawOutput", "content", "summary", "_meta"] {
            members.remove(name);
        }
    }
    update["_meta"]["pinion"]["cut"] = json!(true);
    update_line(session, &update)
}

/// The output of the connection, for messages that belong to no session.
#[derive(Debug, Clone)]
pub(crate) struct Common(pub Queue<Out>);

impl Common {
    pub fn line(&self, line: Vec<u8>) {
        self.0.push(Out {
            session: None,
            form: Form::Line(line),
        });
    }

    pub fn respond(&self, id: &Value, result: &Result<Value, AcpError>) {
        self.line(response_line(id, result));
    }
}

fn response_line(id: &Value, result: &Result<Value, AcpError>) -> Vec<u8> {
    let line = rpc::response(id, result);
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    let error = AcpError::internal("the answer is longer than 8 MiB", "answer_too_long");
    rpc::response(id, &Err(error))
}

/// The output of one session. It holds everything back until the client knows the session.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Queue<Out>,
    session: Arc<str>,
    held: Mutex<Option<Vec<Out>>>,
}

impl Outbox {
    pub fn new(queue: Queue<Out>, session: &str) -> Self {
        Self {
            queue,
            session: session.into(),
            held: Mutex::new(Some(Vec::new())),
        }
    }

    fn push(&self, form: Form) {
        let session = Some(Arc::clone(&self.session));
        let out = Out { session, form };
        let mut held = lock(&self.held);
        match &mut *held {
            Some(held) => held.push(out),
            None => self.queue.push(out),
        }
    }

    /// Sends what was held back; later messages are sent at once.
    pub fn release(&self) {
        let mut held = lock(&self.held);
        for out in held.take().into_iter().flatten() {
            self.queue.push(out);
        }
    }

    /// Sends a message before everything that is held back.
    pub fn push_ahead(&self, line: Vec<u8>) {
        self.queue.push(Out {
            session: Some(Arc::clone(&self.session)),
            form: Form::Line(line),
        });
    }

    /// Sends an update before everything that is held back, for the replay of a session.
    pub fn update_ahead(&self, update: Value) {
        self.push_ahead(fitting_line(&self.session, update));
    }

    pub fn respond_ahead(&self, id: &Value, result: &Result<Value, AcpError>) {
        self.push_ahead(response_line(id, result));
    }

    pub fn line(&self, line: Vec<u8>) {
        self.push(Form::Line(line));
    }

    pub fn update(&self, update: Value) {
        self.line(fitting_line(&self.session, update));
    }

    /// Sends a piece of a message; nothing if the text is empty.
    pub fn chunk(&self, kind: ChunkKind, message_id: &Arc<str>, text: &str) {
        if !text.is_empty() {
            self.push(Form::Chunk(Chunk {
                kind,
                message_id: Arc::clone(message_id),
                text: text.to_owned(),
            }));
        }
    }

    pub fn respond(&self, id: &Value, result: &Result<Value, AcpError>) {
        self.line(response_line(id, result));
    }

    pub fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    pub async fn room(&self) {
        self.queue.room().await;
    }
}

/// Returns the updates of a whole message text, for the replay of a session.
pub(crate) fn text_updates(kind: ChunkKind, message_id: &str, text: &str) -> Vec<Value> {
    let update = |text| chunk_update(kind, message_id, &json!({"type": "text", "text": text}));
    pieces(text).map(update).collect()
}

/// Returns the update of a block that is not text, for the replay of a session.
pub(crate) fn block_update(kind: ChunkKind, message_id: &str, content: &Value) -> Value {
    chunk_update(kind, message_id, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        let text = "ä".repeat(20_000);
        let cut: Vec<&str> = pieces(&text).collect();
        assert!(cut.iter().all(|piece| piece.len() <= MAX_CHUNK_BYTES));
        assert_eq!(cut.concat(), text);
    }

    #[test]
    fn an_update_that_is_too_long_says_that_it_was_cut() {
        let update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "rawInput": "x".repeat(9 << 20)
        });
        let line: Value = serde_json::from_slice(&fitting_line("s", update)).unwrap();
        let update = &line["params"]["update"];
        assert_eq!(update["_meta"]["pinion"]["cut"], true);
        assert_eq!(update["toolCallId"], "c");
        let long = Ok(json!("x".repeat(9 << 20)));
        let line: Value = serde_json::from_slice(&response_line(&json!(1), &long)).unwrap();
        assert_eq!(line["error"]["data"]["code"], "answer_too_long");
    }
}
