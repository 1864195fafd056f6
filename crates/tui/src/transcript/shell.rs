//! Shell commands that the user runs beside the conversation.

use std::sync::Arc;
use std::time::Instant;

use pinion_agent::BashOutcome;
use pinion_message::{BashExecutionMessage, Message, now_millis};
use ratatui::text::Line;

use super::entry::EntryKind;
use super::preview::{self, End, end_of, folded, span};
use super::waiting::elapsed;
use super::{Fold, Look, Transcript};
use crate::text::{one_line, truncate, width as width_of};

/// Lines of output shown while a command runs or is folded.
const SHOWN_ROWS: usize = 5;
/// Bytes stored of the output of a running command.
const MAX_OUTPUT: usize = 16 * 1024;

/// Identifies a shell command by its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShellId(usize);

/// A shell command of the user.
pub(super) enum Shell {
    Running {
        command: String,
        is_private: bool,
        printed: String,
        since: Instant,
    },
    Done(Arc<Message>),
    Failed {
        command: String,
        is_private: bool,
        error: String,
    },
}

impl Transcript {
    /// Adds a running command; a private one is not sent to the model.
    pub(crate) fn shell_start(&mut self, command: &str, is_private: bool) -> ShellId {
        let shell = Shell::Running {
            command: command.to_owned(),
            is_private,
            printed: String::new(),
            since: Instant::now(),
        };
        let at = self.push(EntryKind::Shell(Box::new(shell)));
        self.open.live.push(at);
        ShellId(at)
    }

    /// Adds output of a command.
    pub(crate) fn shell_output(&mut self, id: ShellId, text: &str) {
        if let Some(Shell::Running { printed, .. }) = self.shell(id) {
            printed.push_str(text);
            if printed.len() > 2 * MAX_OUTPUT {
                *printed = end_of(printed, MAX_OUTPUT).to_owned();
            }
        }
    }

    /// Ends a command. Without an outcome it could not be run, and the error is the reason.
    pub(crate) fn shell_end(&mut self, id: ShellId, outcome: Result<&BashOutcome, &str>) {
        let Some(Shell::Running {
            command,
            is_private,
            ..
        }) = self.shell(id)
        else {
            return;
        };
        let (command, is_private) = (std::mem::take(command), *is_private);
        let shell = match outcome {
            Ok(outcome) => Shell::Done(Arc::new(Message::BashExecution(BashExecutionMessage {
                command,
                output: outcome.output.clone(),
                exit_code: outcome.exit_code,
                cancelled: outcome.cancelled,
                truncated: outcome.truncated,
                full_output_path: outcome.full_output_path.clone(),
                timestamp: now_millis(),
                exclude_from_context: is_private.then_some(true),
            }))),
            Err(error) => Shell::Failed {
                command,
                is_private,
                error: error.to_owned(),
            },
        };
        self.replace(id.0, EntryKind::Shell(Box::new(shell)));
    }

    fn shell(&mut self, id: ShellId) -> Option<&mut Shell> {
        match &mut self.entries.get_mut(id.0)?.kind {
            EntryKind::Shell(shell) => Some(shell),
            _ => None,
        }
    }
}

impl Shell {
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    pub fn lines(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        match self {
            Self::Running {
                command,
                is_private,
                printed,
                since,
            } => {
                let time = elapsed(look.now.saturating_duration_since(*since));
                let state = (format!("running{time}"), theme.dim);
                let mut lines = vec![headline(command, *is_private, Some(state), width, look)];
                let rows = folded(printed, End::Last, SHOWN_ROWS, width, theme.text, theme);
                let skipped = rows.len().saturating_sub(SHOWN_ROWS);
                lines.extend(rows.into_iter().skip(skipped));
                lines
            }
            Self::Failed {
                command,
                is_private,
                error,
            } => {
                let state = ("failed".to_owned(), theme.error);
                let mut lines = vec![headline(command, *is_private, Some(state), width, look)];
                lines.extend(preview::wrapped(error, width, theme.error));
                lines
            }
            Self::Done(message) => match &**message {
                Message::BashExecution(bash) => done(bash, width, look),
                _ => Vec::new(),
            },
        }
    }
}

fn done(bash: &BashExecutionMessage, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let state = match bash.exit_code {
        _ if bash.cancelled => Some(("stopped".to_owned(), theme.warning)),
        Some(0) => None,
        Some(code) => Some((format!("exit code {code}"), theme.error)),
        None => Some(("ended by a signal".to_owned(), theme.error)),
    };
    let is_private = bash.exclude_from_context == Some(true);
    let mut lines = vec![headline(&bash.command, is_private, state, width, look)];
    match look.tools {
        Fold::Folded => {
            let rows = folded(
                &bash.output,
                End::Last,
                SHOWN_ROWS,
                width,
                theme.text,
                theme,
            );
            lines.extend(rows);
        }
        Fold::Unfolded => {
            lines.extend(preview::wrapped(bash.output.trim_end(), width, theme.text));
        }
    }
    if let Some(path) = &bash.full_output_path {
        let words = format!("Full output: {path}");
        lines.extend(preview::wrapped(&words, width, theme.dim));
    }
    lines
}

fn headline(
    command: &str,
    is_private: bool,
    state: Option<(String, ratatui::style::Style)>,
    width: u16,
    look: &Look<'_>,
) -> Line<'static> {
    let theme = look.theme;
    let mark = if is_private { "!! " } else { "! " };
    let state = state.map(|(words, style)| (format!(" · {words}"), style));
    let reserved = mark.len() + state.as_ref().map_or(0, |(words, _)| width_of(words));
    let room = usize::from(width).saturating_sub(reserved).max(1);
    let first = command.trim().lines().next().unwrap_or("");
    let words = if command.trim().lines().count() > 1 {
        format!("{first} …")
    } else {
        first.to_owned()
    };
    let mut line = Line::default();
    line.push_span(span(mark, theme.user));
    line.push_span(span(truncate(&one_line(&words), room), theme.user));
    if let Some((words, style)) = state {
        line.push_span(span(words, style));
    }
    line
}
