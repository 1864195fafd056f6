//! One dialog: the question above its answer.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use serde_json::Value;

use super::UserActivity;
use super::answer::Answer;
use crate::Theme;
use crate::overlay::panel::{Panel, PanelSize};
use crate::request::DialogKind;
use crate::text::{sanitise, width, wrap};

/// One dialog. All of the question can be read, if necessary by scrolling: an approval must not
/// hide the call it is about.
pub(super) struct Question {
    /// The question, sanitised.
    title: Vec<String>,
    /// The explanation of the question.
    message: Vec<String>,
    answer: Answer,
    /// The first visible line of the question.
    top: usize,
    /// Lines of the question that were hidden, and visible, at the last drawing.
    hidden: usize,
    page: usize,
    /// The row of the rule at the last drawing.
    rule: u16,
}

impl Question {
    pub fn new(title: &str, kind: DialogKind, activity: UserActivity) -> Self {
        let message = match &kind {
            DialogKind::Confirm { message } => lines(message),
            _ => Vec::new(),
        };
        Self {
            title: lines(title),
            message,
            answer: Answer::new(kind, activity),
            top: 0,
            hidden: 0,
            page: 0,
            rule: 0,
        }
    }

    /// Reports whether this key scrolls the question and not the conversation.
    pub fn scrolls(&self, key: KeyEvent) -> bool {
        let is_page = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        self.answer.is_text() || (is_page && (self.hidden > 0 || self.answer.is_long()))
    }

    /// Scrolls a long question. Returns whether it can scroll.
    pub fn wheel(&mut self, rows: isize) -> bool {
        self.top = self.top.saturating_add_signed(rows).min(self.hidden);
        self.hidden > 0
    }

    /// The row of the rule at the last drawing.
    pub fn top(&self) -> u16 {
        self.rule
    }

    /// Handles a key. Returns the answer once it is complete.
    pub fn key(&mut self, key: KeyEvent) -> Option<Value> {
        if self.hidden > 0 {
            let page = self.page.saturating_sub(1).max(1);
            match key.code {
                KeyCode::PageUp => {
                    self.top = self.top.saturating_sub(page);
                    return None;
                }
                KeyCode::PageDown => {
                    self.top = (self.top + page).min(self.hidden);
                    return None;
                }
                _ => {}
            }
        }
        self.answer.key(key)
    }

    pub fn paste(&mut self, text: &str) {
        self.answer.paste(text);
    }

    pub fn draw(
        &mut self,
        screen: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        note: &str,
    ) -> Option<Position> {
        let columns = screen.intersection(buf.area).width;
        let short = self.short_title(columns, note);
        let mut asked: Vec<Line<'static>> = Vec::new();
        if short.is_none() {
            let lines = self.title.iter().map(|line| (line, theme.strong));
            asked.extend(
                lines.flat_map(|(line, style)| wrap(Line::styled(line.clone(), style), columns)),
            );
        }
        let message = self.message.iter();
        asked
            .extend(message.flat_map(|line| wrap(Line::styled(line.clone(), theme.text), columns)));
        if let Some(selected) = self.answer.long_selection(columns) {
            let selected = Line::styled(selected.to_owned(), theme.accent);
            asked.extend(wrap(selected, columns));
        }

        let wanted = self.answer.rows(columns);
        let least = self.answer.min_rows().min(wanted);
        let lines = asked
            .len()
            .min(PanelSize::Part.room(screen).saturating_sub(least));
        self.page = lines;
        self.hidden = asked.len() - lines;
        self.top = self.top.min(self.hidden);
        let mut hints = self.answer.hints();
        if self.hidden > 0 {
            hints.insert(0, ("PgUp/PgDn", "scroll"));
        }
        let read = format!("{}–{} of {}", self.top + 1, self.top + lines, asked.len());
        let note = match (self.hidden, note) {
            (0, _) => note.to_owned(),
            (_, "") => format!("lines {read}"),
            _ => format!("lines {read} · {note}"),
        };
        let panel = Panel {
            title: short.as_deref().unwrap_or(self.answer.rule_title()),
            note: &note,
            hints: &hints,
            size: PanelSize::Part,
        };
        let content = panel.draw(screen, buf, theme, lines + wanted);
        self.rule = content.y.saturating_sub(1);
        let shown = asked.iter().skip(self.top).take(lines);
        for (y, line) in (content.y..content.bottom()).zip(shown) {
            buf.set_line(content.x, y, line, content.width);
        }
        let taken = (lines as u16).min(content.height);
        let rest = Rect {
            y: content.y + taken,
            height: content.height - taken,
            ..content
        };
        self.answer.draw(rest, buf, theme)
    }

    /// The title, if it is one line that fits into the rule.
    fn short_title(&self, columns: u16, note: &str) -> Option<String> {
        let around = 6 + if note.is_empty() { 0 } else { width(note) + 3 };
        match self.title.as_slice() {
            [line] if !line.is_empty() && width(line) + around <= usize::from(columns) => {
                Some(line.clone())
            }
            _ => None,
        }
    }
}

/// Splits an untrusted text into sanitised lines.
fn lines(text: &str) -> Vec<String> {
    let text = text.trim_end();
    let lines = text.lines().map(|line| sanitise(line).into_owned());
    lines.collect()
}
