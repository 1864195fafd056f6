//! Responses that pi 1.x prints after those of the commands that arrive with them.
//!
//! pi answers `steer`, `follow_up` and `abort` in several steps. A client that sends two of them at once therefore
//! receives the events of both before the response to the first, and a command that pi answers at once overtakes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::outgoing::{Out, Sink};

/// Time in which a further line counts as sent together with the one before.
pub(crate) const TOGETHER: Duration = Duration::from_millis(3);

/// Limit on the responses that are held back.
const LIMIT: usize = 64;

/// Holds responses back until [`LateAnswers::release`].
#[derive(Debug, Clone)]
pub(crate) struct LateAnswers<S> {
    out: S,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    holding: bool,
    lines: Vec<Vec<u8>>,
}

impl<S: Sink> LateAnswers<S> {
    pub fn new(out: S) -> Self {
        Self {
            out,
            held: Arc::default(),
        }
    }

    /// Holds back the responses from now on.
    pub fn hold(&self) {
        self.lock().holding = true;
    }

    /// Sends a response, or holds it back.
    pub fn push(&self, line: Vec<u8>) {
        let mut held = self.lock();
        if held.holding && held.lines.len() < LIMIT {
            held.lines.push(line);
        } else {
            self.send(&mut held);
            self.out.push(Out::Record(line));
        }
    }

    /// Sends what was held back; later responses are sent at once.
    pub fn release(&self) {
        let mut held = self.lock();
        held.holding = false;
        self.send(&mut held);
    }

    fn send(&self, held: &mut Held) {
        for line in held.lines.drain(..) {
            self.out.push(Out::Record(line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
