//! The outboxes of several sessions that share one output queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_jsonl::{Outgoing, Project, Queue, Records, json};

use crate::classic::Additions;
use crate::dialect::Dialect;
use crate::outgoing::{Out, Sink};
use crate::projection::Projection;

/// The output stream of one session. Every record begins with `"sessionId"`.
#[derive(Debug)]
struct SessionStream {
    /// `{"sessionId":"…",`
    opening: Vec<u8>,
    dialect: Dialect,
    /// Used by the writer only; locked for one item at a time.
    projection: Mutex<Projection>,
}

impl SessionStream {
    fn lock(&self) -> MutexGuard<'_, Projection> {
        self.projection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// An item to write, with the session it belongs to, if any.
#[derive(Debug)]
pub struct Addressed {
    stream: Option<Arc<SessionStream>>,
    out: Out,
}

/// The outbox of one session. Clones share it.
#[derive(Debug, Clone)]
pub struct Outbox {
    queue: Queue<Addressed>,
    stream: Option<Arc<SessionStream>>,
}

impl Outbox {
    /// Creates the outbox for lines that belong to no session.
    pub fn common(queue: Queue<Addressed>) -> Self {
        Self {
            queue,
            stream: None,
        }
    }

    /// Creates the outbox of the session `id`, whose events are printed in `dialect`.
    pub fn of_session(queue: Queue<Addressed>, id: &str, dialect: Dialect) -> Self {
        let mut opening = br#"{"sessionId":"#.to_vec();
        json::append(&mut opening, id);
        opening.push(b',');
        let stream = Arc::new(SessionStream {
            opening,
            dialect,
            projection: Mutex::new(Projection::new(dialect, Additions::None)),
        });
        Self {
            queue,
            stream: Some(stream),
        }
    }

    /// Adds events to the dialect. Must be called before the first event.
    pub fn add(&self, additions: Additions) {
        if let Some(stream) = &self.stream {
            *stream.lock() = Projection::new(stream.dialect, additions);
        }
    }
}

impl Sink for Outbox {
    fn push(&self, out: Out) {
        let stream = self.stream.clone();
        self.queue.push(Addressed { stream, out });
    }

    fn has_room(&self) -> bool {
        self.queue.has_room()
    }

    fn room(&self) -> impl Future<Output = ()> + Send {
        self.queue.room()
    }

    fn room_for_answers(&self) -> impl Future<Output = ()> + Send {
        self.queue.room_for_answers()
    }

    fn broken(&self) -> impl Future<Output = ()> + Send {
        // `MultiSessionRpc::serve` watches the queue for all sessions.
        std::future::pending()
    }
}

impl Outgoing for Addressed {
    fn absorb(&mut self, next: Self) -> Result<(), Self> {
        let Self { stream, out } = next;
        self.out.absorb(out).map_err(|out| Self { stream, out })
    }

    fn weight(&self) -> usize {
        self.out.weight()
    }

    fn same_stream(&self, other: &Self) -> bool {
        match (&self.stream, &other.stream) {
            (Some(stream), Some(other)) => Arc::ptr_eq(stream, other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Prints the items of several sessions, each with its own projection.
#[derive(Debug, Default)]
pub struct MultiSessionProjection;

impl Project for MultiSessionProjection {
    type Item = Addressed;

    fn project(&mut self, item: Addressed, records: &mut Records) {
        let Addressed { stream, out } = item;
        match (stream, out) {
            (Some(stream), out) => {
                let mut projection = stream.lock();
                records.with_opening(&stream.opening, |records| projection.project(out, records));
            }
            (None, Out::Record(line)) => records.push(&[&line]),
            // Every event belongs to a session.
            (None, Out::Event { .. } | Out::Delta { .. } | Out::Printed { .. } | Out::Begun) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use pinion_agent::{Event, Listener};
    use pinion_jsonl::{Coalesce, Writer};
    use pinion_message::{Block, TextBlock, Usage};
    use serde_json::Value;

    use super::*;
    use crate::PiListener;

    /// Returns the text of a session's deltas, and their number.
    fn delta_text(lines: &[Value], id: &str) -> (String, usize) {
        let deltas = lines.iter().filter(|line| line["sessionId"] == id);
        let deltas: Vec<&str> = deltas
            .filter_map(|line| line["assistantMessageEvent"]["delta"].as_str())
            .collect();
        (deltas.concat(), deltas.len())
    }

    #[test]
    fn deltas_of_alternating_sessions_merge_within_each_session() {
        let queue = Queue::new(Coalesce::WhenBehind);
        let listeners = ["a", "b"].map(|id| {
            let out = Outbox::of_session(queue.clone(), id, Dialect::Modern);
            PiListener::new(out, Dialect::Modern)
        });
        let block = Arc::new(Block::Text(TextBlock {
            text: String::new(),
            text_signature: None,
        }));
        for listener in &listeners {
            let block = Arc::clone(&block);
            listener.notice(1, &Event::UsageUpdate(Usage::default()));
            listener.notice(1, &Event::BlockStart { index: 0, block });
        }
        let mut expected = [String::new(), String::new()];
        for number in 0..2000 {
            for (listener, (name, text)) in
                listeners.iter().zip(["a", "b"].iter().zip(&mut expected))
            {
                let delta = format!("{name}{number} ");
                text.push_str(&delta);
                let delta = delta.into();
                listener.notice(2, &Event::BlockDelta { index: 0, delta });
            }
        }
        queue.close();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let writer = OwnedFd::from(writer).into();
        let writer = Writer::spawn(writer, MultiSessionProjection, queue).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        writer.join();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (id, expected) in ["a", "b"].iter().zip(&expected) {
            let (text, deltas) = delta_text(&lines, id);
            assert_eq!(text, *expected);
            assert!(deltas < 500, "{deltas} deltas did not merge");
        }
    }
}
