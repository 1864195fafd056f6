//! Dialogs: questions of extensions and about tool calls, one at a time.

mod answer;
mod question;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::{Map, Value, json};

use super::{Choice, Overlay, Step};
use crate::Theme;
use crate::request::Dialog;
use question::Question;

/// Time without a key, while the question is visible, before keys count as its answer. Keys pressed
/// earlier were meant for something else.
pub(crate) const ANSWER_GRACE: Duration = Duration::from_millis(300);
/// The same time for a user who is writing, because people pause longer between words.
pub(crate) const WRITING_GRACE: Duration = Duration::from_secs(1);

/// The user's activity when a question appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserActivity {
    /// Idle, or waiting for the question.
    Idle,
    /// Writing a message. Nothing is selected in a choice, so that the Enter that sends the message
    /// does not answer it.
    Writing,
}

/// Returns the current time; replaced in tests.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The open questions. The first is shown; expired ones are removed.
pub(crate) struct Dialogs {
    waiting: VecDeque<OpenDialog>,
    /// The time of the last drawing or tick, from which the countdown is computed.
    last_tick: Option<Instant>,
    clock: Clock,
}

struct OpenDialog {
    id: String,
    question: Question,
    ends: Option<Instant>,
    /// The time of the first drawing, or of the last key that did not count as an answer.
    quiet_since: Option<Instant>,
    grace: Duration,
}

impl Dialogs {
    pub fn new() -> Self {
        Self::with_clock(Arc::new(Instant::now))
    }

    /// Creates dialogs with another clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self {
            waiting: VecDeque::new(),
            last_tick: None,
            clock,
        }
    }

    /// Adds a question; its timeout starts now.
    pub fn push(&mut self, dialog: Dialog, activity: UserActivity) {
        let now = (self.clock)();
        self.waiting.push_back(OpenDialog {
            id: dialog.id,
            question: Question::new(&dialog.title, dialog.kind, activity),
            ends: dialog.timeout.and_then(|timeout| now.checked_add(timeout)),
            quiet_since: None,
            grace: match activity {
                UserActivity::Idle => ANSWER_GRACE,
                UserActivity::Writing => WRITING_GRACE,
            },
        });
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Drops all questions, because the session that asked them is gone.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Reports whether this key scrolls the question and not the conversation.
    pub fn scrolls(&self, key: KeyEvent) -> bool {
        let shown = self.waiting.front();
        shown.is_some_and(|waiting| waiting.question.scrolls(key))
    }

    /// Scrolls the question with the wheel. Returns whether it can scroll.
    pub fn scroll_by(&mut self, rows: isize) -> bool {
        let shown = self.waiting.front_mut();
        shown.is_some_and(|waiting| waiting.question.wheel(rows))
    }

    /// The first row of the last drawing.
    pub fn top(&self) -> Option<u16> {
        self.waiting.front().map(|waiting| waiting.question.top())
    }

    /// Cancels all questions and returns their answers.
    pub fn cancel_all(&mut self) -> Vec<Choice> {
        let cancelled = self.waiting.drain(..).map(|waiting| Choice::Dialog {
            id: waiting.id,
            response: members(json!({"cancelled": true})),
        });
        cancelled.collect()
    }

    fn remove_expired(&mut self) {
        let now = (self.clock)();
        self.waiting
            .retain(|waiting| waiting.ends.is_none_or(|ends| ends > now));
    }

    fn answered(&mut self, response: Map<String, Value>) -> Step {
        let Some(waiting) = self.waiting.pop_front() else {
            return Step::Close;
        };
        let choice = Choice::Dialog {
            id: waiting.id,
            response,
        };
        if self.waiting.is_empty() {
            Step::Chosen(choice)
        } else {
            Step::Asked(choice)
        }
    }

    fn note(&self) -> String {
        let now = (self.clock)();
        let left = self.waiting.front().and_then(|waiting| waiting.ends);
        let left = left.map(|ends| left_in_words(ends.saturating_duration_since(now)));
        let place = (self.waiting.len() > 1).then(|| format!("1 of {}", self.waiting.len()));
        let parts: Vec<String> = [left, place].into_iter().flatten().collect();
        parts.join(" · ")
    }
}

impl Overlay for Dialogs {
    fn key(&mut self, key: KeyEvent) -> Step {
        self.remove_expired();
        let now = (self.clock)();
        let Some(waiting) = self.waiting.front_mut() else {
            return Step::Close;
        };
        match &mut waiting.quiet_since {
            Some(since) if now.saturating_duration_since(*since) >= waiting.grace => {}
            Some(since) => {
                *since = now;
                return Step::Stay;
            }
            None => return Step::Stay,
        }
        // After the first key of an answer, no further pause is required.
        waiting.grace = Duration::ZERO;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c')) {
            return self.answered(members(json!({"cancelled": true})));
        }
        match waiting.question.key(key) {
            Some(response) => self.answered(members(response)),
            None => Step::Stay,
        }
    }

    fn paste(&mut self, text: &str) {
        if let Some(waiting) = self.waiting.front_mut() {
            waiting.question.paste(text);
        }
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let now = (self.clock)();
        self.last_tick = Some(now);
        let note = self.note();
        let waiting = self.waiting.front_mut()?;
        waiting.quiet_since.get_or_insert(now);
        waiting.question.draw(area, buf, theme, &note)
    }

    fn deadline(&self) -> Option<Instant> {
        let shown = self.waiting.front().and_then(|waiting| waiting.ends);
        // The seconds in the title change when a whole number of them is left.
        let next_second = shown.zip(self.last_tick).map(|(ends, last_tick)| {
            let left = ends.saturating_duration_since(last_tick);
            last_tick + Duration::from_nanos(u64::from(left.subsec_nanos()) + 1)
        });
        let ends = self.waiting.iter().filter_map(|waiting| waiting.ends);
        ends.chain(next_second).min()
    }

    fn tick(&mut self) -> Step {
        self.last_tick = Some((self.clock)());
        self.remove_expired();
        if self.waiting.is_empty() {
            Step::Close
        } else {
            Step::Stay
        }
    }
}

/// The time left, in seconds rounded up, in words.
fn left_in_words(left: Duration) -> String {
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

fn members(response: Value) -> Map<String, Value> {
    match response {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
