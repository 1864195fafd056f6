//! The recording of a session's events, one line each, and what cases read from it.

use std::sync::Mutex;

use pinion_agent::{CallDetail, Event, Listener};
use pinion_message::{Message, StopReason};
use tokio::sync::watch;

use crate::provider::described;

/// Records every event in one line.
#[derive(Default)]
pub struct Recorder {
    lines: Mutex<Vec<String>>,
    count: watch::Sender<usize>,
}

impl Listener for Recorder {
    fn notice(&self, ordinal: u64, event: &Event) {
        let mut lines = self.lines.lock().unwrap();
        lines.push(line(event));
        assert_eq!(ordinal, lines.len() as u64, "events are numbered from 1");
        self.count.send_replace(lines.len());
    }
}

impl Recorder {
    /// Waits for a line after the first `seen` ones that begins with `start`. Returns the lines up to it.
    pub async fn until(&self, seen: &mut usize, start: &str) -> Vec<String> {
        let mut count = self.count.subscribe();
        loop {
            {
                let lines = self.lines.lock().unwrap();
                let news = &lines[*seen..];
                if let Some(at) = news.iter().position(|line| line.starts_with(start)) {
                    let passed = news[..=at].to_vec();
                    *seen += at + 1;
                    return passed;
                }
            }
            count.changed().await.expect("the recorder exists");
        }
    }

    /// Returns the lines after the first `seen` ones.
    pub fn news(&self, seen: &mut usize) -> Vec<String> {
        let news = self.lines.lock().unwrap()[*seen..].to_vec();
        *seen += news.len();
        news
    }
}

/// Returns an event in one line: its name and the data that cases look at.
fn line(event: &Event) -> String {
    let reason = |message: &Message| match message.as_assistant() {
        Some(answer) => format!(" {}", answer.stop_reason.as_str()),
        None => String::new(),
    };
    match event {
        Event::AgentStart => "agent start".into(),
        Event::AgentEnd { will_retry, .. } => {
            let more = if *will_retry { " will retry" } else { "" };
            format!("agent end{more}")
        }
        Event::TurnStart => "turn start".into(),
        Event::TurnEnd { tool_results, .. } => format!("turn end {}", tool_results.len()),
        Event::MessageStart(message) => format!("message start {}", message.role()),
        Event::MessageEnd(message) => {
            format!("message end{} {}", reason(message), described(message))
        }
        Event::BlockStart { .. } => "block start".into(),
        Event::BlockDelta { delta, .. } => format!("delta {delta}"),
        Event::BlockEnd { .. } => "block end".into(),
        Event::UsageUpdate(_) => "usage".into(),
        Event::ToolStart(run) => format!("tool start {}", run.name),
        Event::ToolUpdate { output, .. } => {
            let text = output.content[0].as_text().unwrap_or_default();
            format!("tool update {text}")
        }
        Event::ToolEnd {
            output, is_error, ..
        } => {
            let text = output.content[0].as_text().unwrap_or_default();
            let failed = if *is_error { " failed" } else { "" };
            format!("tool end{failed} {text}")
        }
        Event::CallDetail(detail) => match detail {
            CallDetail::Preview { call_id, change } => {
                format!("preview {call_id} {}", change.path.display())
            }
            CallDetail::Admitted(run) => format!("admitted {}", run.name),
            CallDetail::Printed { text, .. } => format!("printed {text}"),
        },
        Event::RetryStart { attempt, delay, .. } => {
            format!("retry {attempt} in {} s", delay.as_secs())
        }
        Event::RetryEnd {
            success,
            final_error,
            ..
        } => {
            let error = final_error.as_deref().unwrap_or_default();
            format!("retry end {success} {error}")
        }
        Event::CompactionStart { reason } => format!("compaction start {reason:?}"),
        Event::CompactionEnd {
            result,
            aborted,
            will_retry,
            error,
            ..
        } => {
            let summary = result.as_ref().map(|result| result.summary.as_str());
            let summary = summary.or(error.as_deref()).unwrap_or_default();
            format!("compaction end aborted={aborted} retry={will_retry} {summary}")
        }
        Event::QueueUpdate {
            steering,
            follow_up,
        } => format!("queues {steering:?} {follow_up:?}"),
        Event::ThinkingLevelChanged(level) => format!("level {level:?}"),
        Event::SessionInfoChanged(name) => format!("name {name:?}"),
        Event::Fault { error, .. } => format!("fault {error}"),
        Event::EntryAppended(entry) => format!("entry {} {}", entry["type"], entry["replacement"]),
        Event::Settled { aborted } => format!("settled aborted={aborted}"),
        other => format!("{other:?}"),
    }
}

/// Checks that `lines` hold one run with its end.
pub fn ends_once(lines: &[String]) {
    let count = |wanted: &str| lines.iter().filter(|line| line.starts_with(wanted)).count();
    let counts = (count("agent start"), count("agent end"), count("settled"));
    assert_eq!(counts, (1, 1, 1), "{lines:#?}");
}

/// Returns the line of the end of an answer.
pub fn answer(reason: StopReason, text: &str) -> String {
    format!("message end {} assistant: {text}", reason.as_str())
}

/// Returns the line of the last finished answer.
pub fn last_answer(lines: &[String]) -> String {
    let is_answer =
        |line: &&String| line.starts_with("message end ") && line.contains(" assistant: ");
    let last = lines.iter().rev().find(is_answer);
    last.expect("an answer").clone()
}

/// Returns the lines that begin with one of `starts`.
pub fn only(lines: &[String], starts: &[&str]) -> Vec<String> {
    let wanted = |line: &&String| starts.iter().any(|start| line.starts_with(start));
    lines.iter().filter(wanted).cloned().collect()
}
