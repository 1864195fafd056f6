//! The progress of a run: a live table on a terminal, one line per change elsewhere.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::text::one_line;
use pinion_fleet::{ChildStatus, FleetEvent, Observer, Outcome, Record, RunState};

use super::table::{Screen, erase, render};

/// Writes one line per change on standard error.
#[derive(Debug)]
pub struct ProgressLines {
    begun: Instant,
}

impl Default for ProgressLines {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
        }
    }
}

impl Observer for ProgressLines {
    fn notice(&self, record: &Record, _line: &[u8], state: &RunState) {
        if let Some(words) = words(&record.event, state) {
            let seconds = self.begun.elapsed().as_secs_f64();
            // One write, so that lines of other programs do not mix with it.
            let line = format!("{seconds:>7.1}s  {}\n", one_line(&words));
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Describes a change; `None` for changes that are too small to report.
fn words(event: &FleetEvent, state: &RunState) -> Option<String> {
    Some(match event {
        FleetEvent::RunStarted { plan, children, .. } => {
            format!("{plan}: {} children", children.len())
        }
        FleetEvent::RunResumed { children } => format!("resumed: {} to run", children.len()),
        FleetEvent::ChildStarted {
            child,
            attempt,
            model,
            ..
        } => {
            let model = model
                .as_deref()
                .map_or(String::new(), |model| format!(" on {model}"));
            let again = if *attempt > 1 {
                format!(", attempt {attempt}")
            } else {
                String::new()
            };
            format!("{child}: started{model}{again}")
        }
        FleetEvent::ChildTool { child, tool, .. } => format!("{child}: {tool}"),
        FleetEvent::ChildStep {
            child,
            step,
            tokens,
            cost_micros,
            ..
        } => format!(
            "{child}: step {step}, {} tokens, {cost_micros}",
            tokens.total()
        ),
        FleetEvent::ChildQuiet { child, seconds, .. } => {
            format!("{child}: still thinking, silent for {seconds} s")
        }
        FleetEvent::AttemptEnded {
            child,
            failure: Some(failure),
            ..
        } => format!("{child}: {failure}"),
        FleetEvent::AttemptEnded { .. } => return None,
        FleetEvent::ChildEnded { child, outcome, .. } => {
            let cost = state
                .child(child)
                .map(|child| child.cost())
                .unwrap_or_default();
            let word = match outcome {
                Outcome::Finished => "finished",
                Outcome::Failed => "failed",
                Outcome::Stopped => "stopped",
            };
            format!("{child}: {word}, {cost}")
        }
        FleetEvent::Breaker { model, state } => {
            format!("{model}: breaker {state:?}").to_lowercase()
        }
        FleetEvent::Warning { message } => format!("warning: {message}"),
        FleetEvent::RunEnded { status, .. } => format!("{}, {}", status.as_str(), state.cost()),
    })
}

/// The treatment of the table when the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastPicture {
    /// The table stays as the result of the run.
    Stays,
    /// The short report replaces the table.
    Goes,
}

/// Draws one live row per child on a terminal.
#[derive(Debug, Clone)]
pub struct LiveTable {
    screen: Arc<Mutex<Screen>>,
}

impl Default for LiveTable {
    fn default() -> Self {
        Self {
            screen: Arc::new(Mutex::new(Screen::new())),
        }
    }
}

impl LiveTable {
    /// Draws the changes since the last call.
    pub fn draw(&self) {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        let text = render(&mut screen);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Draws the table for the last time or removes it when the run is over.
    pub fn finish(&self, last: LastPicture) {
        match last {
            LastPicture::Stays => self.draw(),
            LastPicture::Goes => {
                let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
                let text = erase(&mut screen);
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
        }
    }
}

impl Observer for LiveTable {
    fn notice(&self, record: &Record, _line: &[u8], state: &RunState) {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.take(record, state);
    }
}

/// Reports whether a child waits or runs.
pub(super) fn is_open(status: ChildStatus) -> bool {
    matches!(status, ChildStatus::Waiting | ChildStatus::Running)
}
