//! Handles incoming messages: events of the session, records of hooks and extensions, printed
//! lines.

use std::time::Instant;

use pinion_agent::Event;

use super::state::State;
use crate::Incoming;
use crate::request::{NotifyKind, Request};
use crate::transcript::NoticeKind;

/// Printed lines that are stored until the next event.
const MAX_PRINTED_LINES: usize = 200;

impl State {
    /// Handles one message.
    pub fn incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Event(event) => self.event(&event),
            Incoming::Record(record) => self.request(Request::read(&record)),
            Incoming::Printed(line) => self.printed(line),
            Incoming::End(code) => self.end(code),
        }
    }

    fn event(&mut self, event: &Event) {
        self.printed_lines = 0;
        self.transcript.apply(event);
        match event {
            Event::AgentStart => {
                self.running.get_or_insert_with(Instant::now);
                self.ask_state();
            }
            Event::TurnEnd { .. } => self.ask_stats(),
            Event::UsageUpdate(usage) => self.context_tokens = Some(usage.total_tokens),
            Event::QueueUpdate {
                steering,
                follow_up,
            } => {
                self.steering.clone_from(steering);
                self.follow_up.clone_from(follow_up);
            }
            Event::ThinkingLevelChanged(level) => self.session.thinking = *level,
            Event::SessionInfoChanged(name) => {
                self.session.name.clone_from(name);
                self.show_title();
            }
            Event::CompactionStart { .. } => {
                self.compacting = true;
                self.compactions += 1;
            }
            Event::CompactionEnd { .. } => {
                self.compacting = false;
                self.context_tokens = None;
                self.ask_stats();
            }
            Event::Settled { .. } => {
                self.running = None;
                self.compacting = false;
                self.ask_state();
                self.ask_stats();
                self.send_next_prompt();
            }
            _ => {}
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Dialog(dialog) => {
                let activity = self.activity();
                self.dialogs.push(dialog, activity);
            }
            Request::Notify { kind, text } => {
                let kind = match kind {
                    NotifyKind::Info => NoticeKind::Information,
                    NotifyKind::Warning => NoticeKind::Warning,
                    NotifyKind::Error => NoticeKind::Error,
                };
                self.notice(kind, &text);
            }
            Request::Status { key, text } => self.panels.set_status(key, text),
            Request::Widget {
                key,
                lines,
                placement,
            } => self.panels.set_widget(key, lines, placement),
            Request::Title(title) => {
                self.panels.title = Some(title).filter(|title| !title.is_empty());
                self.show_title();
            }
            Request::EditorText(text) => self.editor.set_text(&text),
            Request::ExtensionError { path, event, error } => {
                let words = format!("{path}: {event}: {error}");
                self.notice(NoticeKind::Error, &words);
            }
            Request::Other => {}
        }
    }

    /// Handles a line that was printed by code that is not aware of the screen.
    fn printed(&mut self, line: String) {
        self.printed_lines += 1;
        match self.printed_lines {
            0..MAX_PRINTED_LINES if !line.trim().is_empty() => self.printed.push(line),
            MAX_PRINTED_LINES => self
                .printed
                .push("… further lines are not shown.".to_owned()),
            _ => {}
        }
    }

    /// Shows the printed lines; a line with a severity starts a new notice.
    pub(super) fn show_printed(&mut self) {
        let mut notices: Vec<(NoticeKind, String)> = Vec::new();
        for line in std::mem::take(&mut self.printed) {
            let kind = match &line {
                _ if line.starts_with("Error") => Some(NoticeKind::Error),
                _ if line.starts_with("Warning") => Some(NoticeKind::Warning),
                _ if line.starts_with("Note") => Some(NoticeKind::Information),
                _ => None,
            };
            match (kind, notices.last_mut()) {
                (None, Some((_, words))) => {
                    words.push('\n');
                    words.push_str(&line);
                }
                (kind, _) => notices.push((kind.unwrap_or(NoticeKind::Information), line)),
            }
        }
        for (kind, words) in notices {
            self.notice(kind, &words);
        }
    }
}
