//! Questions of extensions and about tool calls, one at a time.

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

/// A question comes up while somebody presses keys for something else: until none was pressed for this long while it
/// could be seen, they are not taken for an answer to it.
pub(crate) const GRACE: Duration = Duration::from_millis(300);
/// The same for somebody in the middle of a sentence, who pauses longer between words.
pub(crate) const LONG_GRACE: Duration = Duration::from_secs(1);

/// What the user does when a question comes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// Nothing, or waiting for it.
    Waits,
    /// Writing something else: of a choice nothing is selected, so that the Enter of a message is not its answer.
    Writes,
}

/// Tells the time.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The questions that wait for an answer. The first is shown; those whose time is over go away by themselves.
pub(crate) struct Dialogs {
    waiting: VecDeque<Waiting>,
    /// When the time that is left was last looked at.
    looked: Option<Instant>,
    clock: Clock,
}

struct Waiting {
    id: String,
    question: Question,
    ends: Option<Instant>,
    /// When it was first drawn, or the last key that was no answer to it.
    quiet_since: Option<Instant>,
    grace: Duration,
}

impl Dialogs {
    /// No questions.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(Instant::now))
    }

    /// The same with another clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self {
            waiting: VecDeque::new(),
            looked: None,
            clock,
        }
    }

    /// One more question; its time runs from now.
    pub fn push(&mut self, dialog: Dialog, meanwhile: Meanwhile) {
        let now = (self.clock)();
        self.waiting.push_back(Waiting {
            id: dialog.id,
            question: Question::new(&dialog.title, dialog.kind, meanwhile),
            ends: dialog.timeout.and_then(|timeout| now.checked_add(timeout)),
            quiet_since: None,
            grace: match meanwhile {
                Meanwhile::Waits => GRACE,
                Meanwhile::Writes => LONG_GRACE,
            },
        });
    }

    /// Whether there is no question.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets all questions: who asked them is gone.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Whether this key moves something in what is asked, and not in the conversation.
    pub fn scrolls(&self, key: KeyEvent) -> bool {
        let shown = self.waiting.front();
        shown.is_some_and(|waiting| waiting.question.scrolls(key))
    }

    /// Turns the wheel over what is asked; whether there is anything to read on in.
    pub fn roll(&mut self, rows: isize) -> bool {
        let shown = self.waiting.front_mut();
        shown.is_some_and(|waiting| waiting.question.wheel(rows))
    }

    /// The first row it took at the last drawing.
    pub fn top(&self) -> Option<u16> {
        self.waiting.front().map(|waiting| waiting.question.top())
    }

    /// Cancels all questions; what is to be answered.
    pub fn cancel_all(&mut self) -> Vec<Choice> {
        let cancelled = self.waiting.drain(..).map(|waiting| Choice::Dialog {
            id: waiting.id,
            response: members(json!({"cancelled": true})),
        });
        cancelled.collect()
    }

    fn forget_expired(&mut self) {
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
        match self.waiting.is_empty() {
            true => Step::Chosen(choice),
            false => Step::Asked(choice),
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
        self.forget_expired();
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
        // Whoever has begun to answer need not pause any more.
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
        self.looked = Some(now);
        let note = self.note();
        let waiting = self.waiting.front_mut()?;
        waiting.quiet_since.get_or_insert(now);
        waiting.question.draw(area, buf, theme, &note)
    }

    fn deadline(&self) -> Option<Instant> {
        let shown = self.waiting.front().and_then(|waiting| waiting.ends);
        // The seconds in the title change when a whole number of them is left.
        let next_second = shown.zip(self.looked).map(|(ends, looked)| {
            let left = ends.saturating_duration_since(looked);
            looked + Duration::from_nanos(u64::from(left.subsec_nanos()) + 1)
        });
        let ends = self.waiting.iter().filter_map(|waiting| waiting.ends);
        ends.chain(next_second).min()
    }

    fn tick(&mut self) -> Step {
        self.looked = Some((self.clock)());
        self.forget_expired();
        match self.waiting.is_empty() {
            true => Step::Close,
            false => Step::Stay,
        }
    }
}

/// What is left of a wait: whole seconds, the one that has begun counted.
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
