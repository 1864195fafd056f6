//! The turns of a session: the active one and those that wait. One is active at a time, and each is answered once.

use std::collections::VecDeque;

use serde_json::Value;

use crate::error::AcpError;

/// Limit on the prompts that wait for the active turn.
const MAX_WAITING: usize = 64;

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    EndTurn,
    MaxTokens,
    Refusal,
    Cancelled,
}

impl Stop {
    pub fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A prompt that waits for its turn. A turn that the client steered into being has no request.
#[derive(Debug, PartialEq)]
pub(crate) struct Waiting<P> {
    pub request: Option<Value>,
    pub prompt: P,
}

/// The active turn.
#[derive(Debug, PartialEq, Eq)]
struct Active {
    request: Option<Value>,
    is_cancelled: bool,
}

/// An answer to a prompt.
pub(crate) type Answered = (Value, Result<Stop, AcpError>);

/// The turns of one session.
#[derive(Debug)]
pub(crate) struct Turns<P> {
    active: Option<Active>,
    waiting: VecDeque<Waiting<P>>,
    /// Prompts that were cancelled while they waited; they are answered after the active one.
    cancelled: Vec<Value>,
    /// No further prompt is accepted.
    is_closed: bool,
}

impl<P> Default for Turns<P> {
    fn default() -> Self {
        Self {
            active: None,
            waiting: VecDeque::new(),
            cancelled: Vec::new(),
            is_closed: false,
        }
    }
}

impl<P> Turns<P> {
    /// Adds a prompt behind those that wait.
    pub fn add(&mut self, waiting: Waiting<P>) -> Result<(), AcpError> {
        if self.is_closed {
            return Err(AcpError::internal(
                "The session is being closed.",
                "session_closed",
            ));
        }
        if self.waiting.len() >= MAX_WAITING {
            let words =
                format!("{MAX_WAITING} prompts wait already; send more when some are answered");
            return Err(AcpError::internal(words, "queue_full"));
        }
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Begins the next turn, if none is active.
    pub fn begin(&mut self) -> Option<P> {
        if self.active.is_some() {
            return None;
        }
        let Waiting { request, prompt } = self.waiting.pop_front()?;
        self.active = Some(Active {
            request,
            is_cancelled: false,
        });
        Some(prompt)
    }

    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Reports whether a turn is active or waits.
    pub fn is_busy(&self) -> bool {
        self.active.is_some() || !self.waiting.is_empty()
    }

    pub fn is_cancelled(&self) -> bool {
        self.active
            .as_ref()
            .is_some_and(|active| active.is_cancelled)
    }

    /// Cancels the active turn and all that wait. Returns the answers that are due at once: those of a session without an
    /// active turn.
    pub fn cancel(&mut self) -> Vec<Answered> {
        let waiting = self.waiting.drain(..).filter_map(|waiting| waiting.request);
        self.cancelled.extend(waiting);
        match &mut self.active {
            Some(active) => {
                active.is_cancelled = true;
                Vec::new()
            }
            None => self.answer_cancelled(),
        }
    }

    /// Cancels the turn of one request. Returns `None` if there is no such turn, else whether it is the active one; a
    /// waiting one is answered at once.
    pub fn cancel_request(&mut self, request: &Value) -> Option<bool> {
        if let Some(active) = &mut self.active
            && active.request.as_ref() == Some(request)
        {
            active.is_cancelled = true;
            return Some(true);
        }
        let position = self
            .waiting
            .iter()
            .position(|it| it.request.as_ref() == Some(request))?;
        self.waiting.remove(position);
        Some(false)
    }

    /// Ends the active turn. Returns its answer and those of the prompts that were cancelled with it. A turn that was
    /// cancelled ends so, whatever else happened.
    pub fn end(&mut self, outcome: Result<Stop, AcpError>) -> Vec<Answered> {
        let mut answers = Vec::new();
        if let Some(active) = self.active.take() {
            let outcome = if active.is_cancelled {
                Ok(Stop::Cancelled)
            } else {
                outcome
            };
            answers.extend(active.request.map(|request| (request, outcome)));
        }
        answers.extend(self.answer_cancelled());
        answers
    }

    /// Refuses further prompts.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    fn answer_cancelled(&mut self) -> Vec<Answered> {
        let cancelled = self.cancelled.drain(..);
        cancelled
            .map(|request| (request, Ok(Stop::Cancelled)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn prompt(id: u64) -> Waiting<()> {
        Waiting {
            request: Some(json!(id)),
            prompt: (),
        }
    }

    #[test]
    fn a_cancel_ends_the_active_turn_first_and_then_those_that_wait() {
        let mut turns = Turns::default();
        for id in 1..=3 {
            turns.add(prompt(id)).unwrap();
        }
        turns.begin().unwrap();
        assert_eq!(turns.cancel(), []);
        let answers = turns.end(Ok(Stop::EndTurn));
        let ids: Vec<&Value> = answers.iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [&json!(1), &json!(2), &json!(3)]);
        assert!(answers.iter().all(|(_, stop)| *stop == Ok(Stop::Cancelled)));
        assert!(!turns.is_busy());
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut turns = Turns::default();
        for id in 0..64 {
            turns.add(prompt(id)).unwrap();
        }
        assert!(turns.add(prompt(64)).is_err());
    }

    proptest! {
        #[test]
        fn every_prompt_is_answered_once(steps in proptest::collection::vec(0u8..5, 0..200)) {
            let mut turns = Turns::default();
            let (mut sent, mut answered) = (Vec::new(), Vec::new());
            for (number, step) in steps.iter().enumerate() {
                let number = number as u64;
                match step {
                    0 | 1 if turns.add(prompt(number)).is_ok() => sent.push(json!(number)),
                    2 => drop(turns.begin()),
                    3 => answered.extend(turns.cancel()),
                    4 if turns.is_active() => answered.extend(turns.end(Ok(Stop::EndTurn))),
                    _ => {}
                }
            }
            answered.extend(turns.cancel());
            answered.extend(turns.end(Ok(Stop::EndTurn)));
            let mut ids: Vec<Value> = answered.into_iter().map(|(id, _)| id).collect();
            ids.sort_by_key(Value::as_u64);
            prop_assert_eq!(ids, sent);
        }
    }
}
