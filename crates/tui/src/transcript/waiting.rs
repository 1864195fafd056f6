//! Waits in progress: a pause before a retry, a summary that is being written.

use std::time::{Duration, Instant};

use pinion_text::duration;
use ratatui::text::Line;

use super::Look;
use super::preview::{self, row};

/// A wait in progress.
#[derive(Debug, Clone)]
pub(super) enum Waiting {
    /// A request is retried after a pause.
    Retry {
        until: Instant,
        attempt: u32,
        max_attempts: u32,
        /// The failure, if no entry above shows it.
        error: Option<String>,
    },
    /// The conversation is being summarised.
    Compaction { since: Instant, why: &'static str },
}

impl Waiting {
    pub fn lines(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        match self {
            Self::Retry {
                until,
                attempt,
                max_attempts,
                error,
            } => {
                let left = until.saturating_duration_since(look.now);
                let pause = match left.as_millis().div_ceil(1000) {
                    0 => "now".to_owned(),
                    seconds => format!("in {seconds} s"),
                };
                let words =
                    format!("Trying again {pause} (retry {attempt} of {max_attempts}; Esc stops)");
                let mut lines = Vec::new();
                if let Some(error) = error {
                    lines.extend(preview::wrapped(error, width, look.theme.warning));
                }
                lines.push(row(&words, width, look.theme.dim));
                lines
            }
            Self::Compaction { since, why } => {
                let elapsed = elapsed(look.now.saturating_duration_since(*since));
                let words = format!("Summarising the conversation{why} …{elapsed} (Esc stops)");
                vec![row(&words, width, look.theme.dim)]
            }
        }
    }
}

/// The duration as text; empty if it is too short to matter.
pub(crate) fn elapsed(time: Duration) -> String {
    if time.as_secs() == 0 {
        return String::new();
    }
    format!(" {}", duration::words(time))
}
