//! One of several streams in one queue: whose items they are, and how they are printed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_jsonl::{Outgoing, Project, Queue, Records, json};

use crate::classic::Additions;
use crate::dialect::Dialect;
use crate::outgoing::{Out, Sink};
use crate::projection::Projection;

/// What is written for one session of several. Every record begins with `"sessionId"`.
#[derive(Debug)]
struct Lane {
    /// `{"sessionId":"…",`
    opening: Vec<u8>,
    dialect: Dialect,
    /// Only the writer prints; locked for one item at a time.
    projection: Mutex<Projection>,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Projection> {
        self.projection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something to write, and for which session; `None` for what belongs to none.
#[derive(Debug)]
pub struct Addressed {
    lane: Option<Arc<Lane>>,
    out: Out,
}

/// The place where one session puts what is to be written; clones are the same place.
#[derive(Debug, Clone)]
pub struct Outbox {
    queue: Queue<Addressed>,
    lane: Option<Arc<Lane>>,
}

impl Outbox {
    /// For what belongs to no session.
    pub fn common(queue: Queue<Addressed>) -> Self {
        Self { queue, lane: None }
    }

    /// For the session `id`, whose events are printed in `dialect`.
    pub fn of_session(queue: Queue<Addressed>, id: &str, dialect: Dialect) -> Self {
        let mut opening = br#"{"sessionId":"#.to_vec();
        json::append(&mut opening, id);
        opening.push(b',');
        let lane = Arc::new(Lane {
            opening,
            dialect,
            projection: Mutex::new(Projection::new(dialect, Additions::None)),
        });
        Self {
            queue,
            lane: Some(lane),
        }
    }

    /// Prints further events as well. For before the first one.
    pub fn add(&self, additions: Additions) {
        if let Some(lane) = &self.lane {
            *lane.lock() = Projection::new(lane.dialect, additions);
        }
    }
}

impl Sink for Outbox {
    fn push(&self, out: Out) {
        let lane = self.lane.clone();
        self.queue.push(Addressed { lane, out });
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
        // Whoever serves all sessions looks after it.
        std::future::pending()
    }
}

impl Outgoing for Addressed {
    fn absorb(&mut self, next: Self) -> Result<(), Self> {
        let Self { lane, out } = next;
        self.out.absorb(out).map_err(|out| Self { lane, out })
    }

    fn weight(&self) -> usize {
        self.out.weight()
    }

    fn same_stream(&self, other: &Self) -> bool {
        match (&self.lane, &other.lane) {
            (Some(lane), Some(other)) => Arc::ptr_eq(lane, other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Prints what several sessions write, each in its own state.
#[derive(Debug, Default)]
pub struct Switchboard;

impl Project for Switchboard {
    type Item = Addressed;

    fn project(&mut self, item: Addressed, records: &mut Records) {
        let Addressed { lane, out } = item;
        match (lane, out) {
            (Some(lane), out) => {
                let mut projection = lane.lock();
                records.with_opening(&lane.opening, |records| projection.project(out, records));
            }
            (None, Out::Record(line)) => records.push(&[&line]),
            // Events happen in sessions only.
            (None, Out::Event { .. } | Out::Delta { .. } | Out::Printed { .. }) => {}
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

    /// The text of a session's deltas, and how many there are.
    fn said(lines: &[Value], id: &str) -> (String, usize) {
        let deltas = lines.iter().filter(|line| line["sessionId"] == id);
        let deltas: Vec<&str> = deltas
            .filter_map(|line| line["assistantMessageEvent"]["delta"].as_str())
            .collect();
        (deltas.concat(), deltas.len())
    }

    #[test]
    fn what_alternates_merges_within_a_session_only() {
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
        let writer = Writer::spawn(writer, Switchboard, queue).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        writer.join();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for (id, expected) in ["a", "b"].iter().zip(&expected) {
            let (text, deltas) = said(&lines, id);
            assert_eq!(text, *expected);
            assert!(deltas < 500, "{deltas} deltas did not merge");
        }
    }
}
