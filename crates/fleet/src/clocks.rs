//! The three clocks of an attempt: the last byte, the last event, the last progress.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChildEvent, ToolPhase};

/// The times of a child's last signs of life. Times count from the start of the attempt.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    last_byte: Option<Duration>,
    last_event: Option<Duration>,
    last_progress: Option<Duration>,
    /// The start of the current wait for progress: the start of the attempt, the last progress, or the end of the last tool.
    waiting_since: Duration,
    tools_running: usize,
}

/// The clocks in milliseconds from the start of the attempt; absent if there was no such event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClockReadings {
    /// The last output of any kind.
    pub last_byte_ms: Option<u64>,
    /// The last line that the adapter understood.
    pub last_event_ms: Option<u64>,
    /// The last text, tool or step.
    pub last_progress_ms: Option<u64>,
}

impl Clocks {
    /// Records that the child printed something.
    pub fn byte(&mut self, now: Duration) {
        self.last_byte = Some(now);
    }

    /// Records an event.
    pub fn event(&mut self, event: &ChildEvent, now: Duration) {
        self.last_event = Some(now);
        match event {
            ChildEvent::Tool { phase, .. } => match phase {
                ToolPhase::Started => self.tools_running += 1,
                ToolPhase::Ended => self.tools_running = self.tools_running.saturating_sub(1),
                ToolPhase::Done => {}
            },
            // Lost tool ends are corrected at the next start or end of work, not here.
            ChildEvent::StepFinished(_) | ChildEvent::Text(_) => {}
            ChildEvent::Started { .. } | ChildEvent::Idle => self.tools_running = 0,
            ChildEvent::Alive | ChildEvent::Failed(_) | ChildEvent::Exited(_) => return,
        }
        self.waiting_since = now;
        if !matches!(event, ChildEvent::Started { .. } | ChildEvent::Idle) {
            self.last_progress = Some(now);
        }
    }

    /// Returns the start of the current wait for progress; `None` while a tool runs.
    pub fn inactive_since(&self) -> Option<Duration> {
        (self.tools_running == 0).then_some(self.waiting_since)
    }

    /// Returns the time of the last output, or the start if there was none.
    pub fn silent_since(&self) -> Duration {
        self.last_byte.unwrap_or_default()
    }

    pub fn readings(&self) -> ClockReadings {
        let milliseconds = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        ClockReadings {
            last_byte_ms: milliseconds(self.last_byte),
            last_event_ms: milliseconds(self.last_event),
            last_progress_ms: milliseconds(self.last_progress),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, Text};

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn tool(phase: ToolPhase) -> ChildEvent {
        ChildEvent::Tool {
            name: "bash".into(),
            phase,
            effect: Effect::Outside,
        }
    }

    #[test]
    fn bytes_are_not_progress_and_tools_stop_the_clock() {
        let mut clocks = Clocks::default();
        clocks.byte(S(1));
        assert_eq!(clocks.inactive_since(), Some(S(0)));
        clocks.event(&ChildEvent::Text(Text::Partial), S(2));
        clocks.byte(S(9));
        assert_eq!(clocks.inactive_since(), Some(S(2)));
        clocks.event(&tool(ToolPhase::Started), S(10));
        clocks.event(&tool(ToolPhase::Started), S(11));
        clocks.event(&tool(ToolPhase::Ended), S(12));
        assert_eq!(clocks.inactive_since(), None);
        clocks.event(&tool(ToolPhase::Ended), S(50));
        assert_eq!(clocks.inactive_since(), Some(S(50)));
        assert_eq!(
            clocks.readings(),
            ClockReadings {
                last_byte_ms: Some(9000),
                last_event_ms: Some(50_000),
                last_progress_ms: Some(50_000),
            }
        );
    }

    #[test]
    fn a_sign_of_life_is_an_event_but_not_progress() {
        let mut clocks = Clocks::default();
        clocks.event(&ChildEvent::Text(Text::Partial), S(1));
        clocks.event(&ChildEvent::Alive, S(9));
        assert_eq!(clocks.inactive_since(), Some(S(1)));
        assert_eq!(clocks.readings().last_event_ms, Some(9000));
        assert_eq!(clocks.readings().last_progress_ms, Some(1000));
    }

    #[test]
    fn a_start_resets_inactivity_and_a_failure_does_not() {
        let mut clocks = Clocks::default();
        clocks.event(&ChildEvent::Started { session: None }, S(5));
        assert_eq!(clocks.inactive_since(), Some(S(5)));
        assert_eq!(clocks.readings().last_progress_ms, None);
        let failure = crate::ChildFailure::new(crate::FailureKind::Protocol, "x");
        clocks.event(&ChildEvent::Failed(failure), S(8));
        assert_eq!(clocks.inactive_since(), Some(S(5)));
    }
}
