//! A bounded buffer between a running tool and the run, for the updates that the tool sends before its result.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pinion_message::Block;
use pinion_tools::ToolOutput;
use serde_json::Value;
use tokio::sync::Notify;

/// Limit on the updates that wait for the run.
const COUNT_LIMIT: usize = 256;
/// Limit on the bytes of all waiting updates together.
const BYTE_LIMIT: usize = 4 << 20;

/// Updates that wait for the run, in order. Beyond the limits the newest one replaces the one before it, which it
/// supersedes anyway; a tool never waits.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    waiting: Mutex<WaitingUpdates>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct WaitingUpdates {
    updates: VecDeque<(usize, ToolOutput)>,
    bytes: usize,
    closed: bool,
}

impl Progress {
    /// Adds an update, unless the call is over.
    pub fn push(&self, output: ToolOutput) {
        let bytes = size(&output);
        let mut waiting = self.lock();
        if waiting.closed {
            return;
        }
        let is_full = waiting.updates.len() >= COUNT_LIMIT
            || waiting.bytes.saturating_add(bytes) > BYTE_LIMIT;
        if is_full && let Some((replaced, _)) = waiting.updates.pop_back() {
            waiting.bytes -= replaced;
        }
        waiting.bytes += bytes;
        waiting.updates.push_back((bytes, output));
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Removes and returns the oldest update.
    pub fn next(&self) -> Option<ToolOutput> {
        let mut waiting = self.lock();
        let (bytes, output) = waiting.updates.pop_front()?;
        waiting.bytes -= bytes;
        Some(output)
    }

    /// Removes all updates and returns the newest one.
    pub fn newest(&self) -> Option<ToolOutput> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        waiting
            .updates
            .drain(..)
            .next_back()
            .map(|(_, output)| output)
    }

    /// Waits for an update, then removes and returns the oldest one.
    pub async fn next_or_wait(&self) -> ToolOutput {
        loop {
            if let Some(output) = self.next() {
                return output;
            }
            self.arrived.notified().await;
        }
    }

    /// Ignores further updates.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, WaitingUpdates> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Estimates the memory of an update, in bytes.
fn size(output: &ToolOutput) -> usize {
    let blocks = output.content.iter().map(|block| match block {
        Block::Text(text) => text.text.len(),
        Block::Image { data, .. } => data.len(),
        _ => 0,
    });
    blocks.sum::<usize>() + output.details.as_ref().map_or(0, value_size)
}

fn value_size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(value_size).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| name.len() + value_size(value))
                .sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: String) -> ToolOutput {
        ToolOutput {
            content: vec![Block::text(text)],
            ..ToolOutput::default()
        }
    }

    fn text(output: &ToolOutput) -> &str {
        output.content[0].as_text().unwrap()
    }

    #[test]
    fn updates_keep_their_order_and_none_is_lost_within_the_limits() {
        let progress = Progress::default();
        for number in 0..COUNT_LIMIT {
            progress.push(output(number.to_string()));
        }
        for number in 0..COUNT_LIMIT {
            assert_eq!(text(&progress.next().unwrap()), number.to_string());
        }
        assert!(progress.next().is_none());
    }

    #[test]
    fn beyond_the_limits_the_newest_replaces_the_one_before() {
        let progress = Progress::default();
        for number in 0..10_000 {
            progress.push(output(format!("{number} {}", "x".repeat(1 << 20))));
            assert!(progress.lock().bytes <= BYTE_LIMIT);
        }
        assert!(text(&progress.newest().unwrap()).starts_with("9999 "));
        assert!(progress.next().is_none());
        for number in 0..10_000 {
            progress.push(output(number.to_string()));
        }
        assert_eq!(progress.lock().updates.len(), COUNT_LIMIT);
        progress.close();
        progress.push(output("late".into()));
        assert_eq!(text(&progress.newest().unwrap()), "9999");
    }
}
