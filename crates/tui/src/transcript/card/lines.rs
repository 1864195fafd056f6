//! The layout of cards.

use std::time::Duration;

use pinion_message::Block;
use pinion_text::amount;
use ratatui::style::Style;
use ratatui::text::Line;
use serde_json::Value;

use super::{Arguments, Card, CardState};
use crate::diff::diff_lines;
use crate::text::{one_line, sanitise, truncate, width as width_of, wrap};
use crate::transcript::headline::{changes, subject};
use crate::transcript::messages::image;
use crate::transcript::preview::{self, End, first_rows, folded, span};
use crate::transcript::waiting::elapsed;
use crate::transcript::{Attention, Fold, Look};

/// Lines of output shown while a tool runs.
const LIVE_ROWS: usize = 5;
/// Lines of output shown of a finished, folded call.
const FOLDED_ROWS: usize = 5;
/// Lines of a diff shown while it is folded.
const DIFF_ROWS: usize = 16;

impl Card {
    /// Reports whether only the headline is shown.
    pub fn is_slim(&self, look: &Look<'_>) -> bool {
        let (content, _) = self.content();
        match self.state {
            CardState::Writing | CardState::Waiting | CardState::Stopped => true,
            CardState::Running(_) if self.waits_for_user(look) => !self.has_plan(),
            CardState::Running(_) => content.is_empty(),
            CardState::Done(_) => {
                look.tools == Fold::Folded && self.shows_count_only() && !self.has_image()
            }
            CardState::Failed(_) | CardState::Refused => false,
        }
    }

    pub fn lines(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let mut lines = self.headline(width, look);
        lines.extend(self.body(width, look));
        lines
    }

    /// Reports whether the call has not started because a question is open.
    fn waits_for_user(&self, look: &Look<'_>) -> bool {
        let is_running = matches!(self.state, CardState::Running(_));
        is_running && look.attention == Attention::Wanted && self.content().0.is_empty()
    }

    /// Reports whether the arguments show more of the planned change than the headline.
    fn has_plan(&self) -> bool {
        matches!(self.name.as_str(), "write" | "edit")
    }

    /// Reports whether a folded card shows only the amount of output.
    fn shows_count_only(&self) -> bool {
        matches!(self.name.as_str(), "read" | "ls" | "find" | "write")
    }

    /// Reports whether the headline shows the number of lines.
    fn shows_line_count(&self) -> bool {
        matches!(self.name.as_str(), "read" | "ls" | "find") && !self.has_image()
    }

    fn has_image(&self) -> bool {
        let mut blocks = self.content().0.iter();
        blocks.any(|block| matches!(block, Block::Image { .. }))
    }

    fn state_words(&self, look: &Look<'_>) -> (&'static str, Style, String) {
        let theme = look.theme;
        let time = |duration: Option<Duration>| duration.map(elapsed).unwrap_or_default();
        match self.state {
            CardState::Writing => {
                let bytes = match self.arguments {
                    Arguments::Writing { bytes, .. } if bytes >= 1024 => amount::size(bytes as u64),
                    _ => "…".to_owned(),
                };
                ("•", theme.dim, bytes)
            }
            CardState::Waiting => ("•", theme.dim, "waiting".into()),
            CardState::Running(_) if self.waits_for_user(look) => {
                ("•", theme.warning, "waiting for you".into())
            }
            CardState::Running(since) => {
                let time = elapsed(look.now.saturating_duration_since(since));
                ("•", theme.warning, format!("running{time}"))
            }
            CardState::Done(duration) => ("✓", theme.success, time(duration).trim().to_owned()),
            CardState::Failed(duration) => {
                let text = self.text();
                let words = match self.is_command().then(|| split_ending(&text)) {
                    Some((_, ending)) if !ending.is_empty() => ending,
                    _ => "failed".to_owned(),
                };
                let time = time(duration);
                let comma = if time.is_empty() { "" } else { "," };
                ("✗", theme.error, format!("{words}{comma}{time}"))
            }
            CardState::Refused => ("✗", theme.warning, "refused".into()),
            CardState::Stopped => ("✗", theme.dim, "stopped".into()),
        }
    }

    fn headline(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let (mark, style, mut words) = self.state_words(look);
        let is_done = matches!(self.state, CardState::Done(_));
        if is_done && look.tools == Fold::Folded && self.shows_line_count() {
            let count = amount::count(self.text().trim_end().lines().count(), "line");
            words = if words.is_empty() {
                count
            } else {
                format!("{count} · {words}")
            };
        }
        let state = if words.is_empty() {
            String::new()
        } else {
            format!(" · {words}")
        };
        let arguments = self.arguments();
        let mut what = subject(&self.name, &arguments);
        if let Some(diff) = self.diff() {
            let (added, removed) = changes(diff);
            what.push_str(&format!(" (+{added} -{removed})"));
        }
        let name = truncate(
            &one_line(&self.name),
            usize::from(width).saturating_sub(2).max(1),
        );
        let reserved = 2 + width_of(&name) + 1 + width_of(&state);
        let room = usize::from(width).saturating_sub(reserved);
        let state_style = match self.state {
            CardState::Done(_) => theme.dim,
            _ => style,
        };
        let mut line = Line::default();
        line.push_span(span(format!("{mark} "), style));
        line.push_span(span(name, theme.strong));
        if !what.is_empty() && room > 0 {
            line.push_span(span(
                format!(" {}", truncate(&one_line(&what), room)),
                theme.text,
            ));
        }
        line.push_span(span(state, state_style));
        let mut lines = vec![line];
        if look.tools == Fold::Unfolded
            && let Some(command) = arguments.get("command").and_then(Value::as_str)
            && (command.trim().lines().count() > 1 || width_of(&what) > room)
        {
            lines.extend(preview::wrapped(command.trim(), width, theme.code));
        }
        lines
    }

    fn body(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let theme = look.theme;
        let mut lines = match self.state {
            CardState::Writing | CardState::Waiting | CardState::Stopped => return Vec::new(),
            CardState::Running(_) if self.waits_for_user(look) => return self.plan(width, look),
            CardState::Running(_) => {
                let rows = folded(&self.text(), End::Last, LIVE_ROWS, width, theme.text, theme);
                let skipped = rows.len().saturating_sub(LIVE_ROWS);
                return rows.into_iter().skip(skipped).collect();
            }
            CardState::Refused => preview::wrapped(self.text().trim(), width, theme.warning),
            CardState::Failed(_) => self.shown(width, theme.error, look),
            CardState::Done(_) if self.diff().is_some() => {
                let diff = diff_lines(self.diff().unwrap_or(""), width, theme);
                match look.tools {
                    Fold::Folded => first_rows(diff, DIFF_ROWS, width, theme),
                    Fold::Unfolded => diff,
                }
            }
            CardState::Done(_) if self.shows_count_only() && look.tools == Fold::Folded => {
                Vec::new()
            }
            CardState::Done(_) if self.name == "write" => self.written_file(width, look),
            CardState::Done(_) if self.name == "read" => self.read_file(width, look),
            CardState::Done(_) => self.shown(width, theme.text, look),
        };
        let images = self.content().0.iter().filter_map(image);
        lines.extend(images.map(|words| preview::row(&words, width, theme.dim)));
        lines
    }

    /// The planned change, for the user who is asked to allow it.
    fn plan(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let lines = match self.name.as_str() {
            "write" => self.written_file(width, look),
            "edit" => diff_lines(&replacements(&self.arguments()), width, look.theme),
            _ => return Vec::new(),
        };
        match look.tools {
            Fold::Folded => first_rows(lines, DIFF_ROWS, width, look.theme),
            Fold::Unfolded => lines,
        }
    }

    fn is_command(&self) -> bool {
        self.name == "bash"
    }

    /// The output as text: the end for a command, the beginning for other tools.
    fn shown(&self, width: u16, style: Style, look: &Look<'_>) -> Vec<Line<'static>> {
        let whole = self.text();
        let (text, style, end) = match self.state {
            CardState::Failed(_) if self.is_command() => {
                (split_ending(&whole).0, look.theme.text, End::Last)
            }
            _ if self.is_command() => (whole.as_str(), look.theme.text, End::Last),
            _ => (whole.as_str(), style, End::First),
        };
        match look.tools {
            Fold::Folded => folded(text, end, FOLDED_ROWS, width, style, look.theme),
            Fold::Unfolded => preview::wrapped(text.trim_end(), width, style),
        }
    }

    fn written_file(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        let arguments = self.arguments();
        let content = arguments.get("content").and_then(Value::as_str);
        self.code(content.unwrap_or(""), width, look)
    }

    fn read_file(&self, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        self.code(&self.text(), width, look)
    }

    fn code(&self, code: &str, width: u16, look: &Look<'_>) -> Vec<Line<'static>> {
        /// Bytes above which a file is shown without colours.
        const MAX_COLOURED: usize = 64 * 1024;
        let arguments = self.arguments();
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or("");
        let language = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        if language.is_empty() || language.contains('/') || code.len() > MAX_COLOURED {
            return preview::wrapped(code.trim_end(), width, look.theme.text);
        }
        let clean = sanitise(code.trim_end());
        let lines = look.highlighter.lines(language, &clean, look.theme);
        lines
            .into_iter()
            .flat_map(|line| wrap(line, width))
            .collect()
    }
}

/// The replacements of an edit as lines of a diff.
fn replacements(arguments: &Value) -> String {
    let listed = arguments.get("edits").and_then(Value::as_array);
    let edits = listed.map_or(std::slice::from_ref(arguments), Vec::as_slice);
    let mut diff = String::new();
    for edit in edits {
        for (member, mark) in [("oldText", '-'), ("newText", '+')] {
            let text = edit.get(member).and_then(Value::as_str).unwrap_or("");
            for line in text.lines() {
                diff.push(mark);
                diff.push_str(line);
                diff.push('\n');
            }
        }
    }
    diff
}

/// Splits the text of a failed command into its output and a short description of its end, which is
/// empty if unknown.
pub(crate) fn split_ending(text: &str) -> (&str, String) {
    let (printed, last) = match text.rsplit_once("\n\n") {
        Some((printed, last)) => (printed, last),
        None => ("", text),
    };
    let words = if let Some(code) = last.strip_prefix("Command exited with code ") {
        format!("exit code {code}")
    } else if let Some(limit) = last.strip_prefix("Command timed out after ") {
        format!("timed out after {limit}")
    } else if last == "Command aborted" {
        "stopped".to_owned()
    } else {
        return (text, String::new());
    };
    (printed, words)
}
