//! The layout of the screen.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::{Clear, Widget};

use super::state::State;
use super::status::row;
use crate::overlay::Overlay;
use crate::request::Placement;
use crate::text::{truncate, width};
use crate::theme::on_rule;
use crate::transcript::{Attention, Look};

/// Rows that the editor takes at most.
const MAX_EDITOR_ROWS: u16 = 10;
/// Rows that queued messages take at most.
const MAX_QUEUED_ROWS: usize = 4;
/// Stands before the text of the editor.
const PROMPT: &str = "> ";

/// Cuts rows off an area, from its lower end.
struct Stack(Rect);

impl Stack {
    /// The lowest `rows` rows that are left.
    fn bottom(&mut self, rows: u16) -> Rect {
        let height = rows.min(self.0.height);
        self.0.height -= height;
        Rect {
            y: self.0.bottom(),
            height,
            ..self.0
        }
    }
}

impl State {
    /// Draws the screen. Returns the cursor's position.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        if area.width < 4 || area.height < 3 {
            return None;
        }
        if !self.dialogs.is_empty() {
            return self.draw_question(area, buf);
        }
        let cursor = self.draw_chat(area, buf);
        match &mut self.overlay {
            Some(overlay) => overlay.draw(area, buf, &self.theme),
            None => cursor,
        }
    }

    /// Draws a question below the conversation it is about.
    fn draw_question(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        let cursor = self.dialogs.draw(area, buf, &self.theme);
        let top = self.dialogs.top().unwrap_or(area.bottom());
        let over = Rect {
            height: top.saturating_sub(area.y).min(area.height),
            ..area
        };
        self.draw_transcript(over, buf);
        cursor
    }

    /// Draws the conversation, the editor and everything around it.
    fn draw_chat(&mut self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        let editor_width = area.width - PROMPT.len() as u16;
        let most = MAX_EDITOR_ROWS.min(area.height / 3).max(1);
        let editor_rows = self.editor.height(editor_width).clamp(1, most);
        let mut stack = Stack(area);
        let status = stack.bottom(1);
        let below = self.widget_rows(Placement::Below, &mut stack);
        let rule_below = stack.bottom(u16::from(area.height > 8));
        let editor = stack.bottom(editor_rows);
        let rule = stack.bottom(1);
        let queued_lines = self.queued_lines();
        let queued = stack.bottom(queued_lines.len() as u16);
        let above = self.widget_rows(Placement::Above, &mut stack);
        // A blank row separates them from the conversation, if there is room.
        let has_more = queued.height + above.height > 0;
        stack.bottom(u16::from(has_more && stack.0.height > 8));
        let transcript = stack.0;

        self.draw_transcript(transcript, buf);
        self.draw_widgets(Placement::Above, above, buf);
        draw_rows(&queued_lines, self.theme.dim, queued, buf);
        self.draw_rule(rule, buf);
        self.draw_line(rule_below, buf);
        self.draw_hidden(editor, rule, rule_below, buf);
        self.draw_widgets(Placement::Below, below, buf);
        self.draw_status(status, buf);
        let is_covered = self.overlay.is_some();
        let cursor = self.draw_editor(editor, buf, !is_covered);
        if !is_covered && self.completion.is_open() {
            let height = self.completion.height().min(rule.y);
            let popup = Rect {
                y: rule.y - height,
                height,
                ..area
            };
            self.completion.draw(popup, buf, &self.theme);
            if popup.y > area.y {
                let line = Rect {
                    y: popup.y - 1,
                    height: 1,
                    ..area
                };
                Clear.render(line, buf);
                self.draw_line(line, buf);
            }
        }
        cursor
    }

    fn draw_transcript(&mut self, area: Rect, buf: &mut Buffer) {
        if self.transcript.is_empty() {
            return self.draw_welcome(area, buf);
        }
        let look = Look {
            theme: &self.theme,
            highlighter: &self.highlighter,
            thinking: self.thinking,
            tools: self.tools,
            host: self.abilities(),
            attention: if self.dialogs.is_empty() {
                Attention::Free
            } else {
                Attention::Wanted
            },
            now: Instant::now(),
        };
        self.transcript.draw(area, buf, &look);
    }

    fn draw_welcome(&self, area: Rect, buf: &mut Buffer) {
        let lines = [
            concat!("pinion ", env!("CARGO_PKG_VERSION")),
            "",
            "Enter sends · Ctrl-J new line · Ctrl-D quits",
            "during a run: Enter steers · Alt-Enter sends afterwards · Esc stops",
            "/ commands · @ files · ! shell · Ctrl-G all keys",
        ];
        let rows = area.rows().zip(lines);
        for (index, (place, line)) in rows.enumerate() {
            let style = match index {
                0 => self.theme.heading,
                _ => self.theme.dim,
            };
            row(line, style, place, buf);
        }
    }

    fn draw_editor(&self, area: Rect, buf: &mut Buffer, focused: bool) -> Option<Position> {
        buf.set_string(area.x, area.y, PROMPT, self.theme.accent);
        self.editor.draw(text_of(area), buf, &self.theme, focused)
    }

    /// Draws the rule above the editor, with the session's name and the working directory.
    fn draw_rule(&self, area: Rect, buf: &mut Buffer) {
        self.draw_line(area, buf);
        let room = usize::from(area.width).saturating_sub(8);
        let place = self.place();
        let place = truncate(&place, room);
        let place_width = width(&place);
        if place_width > 0 {
            let x = area.right().saturating_sub(place_width as u16 + 3);
            buf.set_string(x, area.y, format!(" {place} "), self.theme.dim);
        }
        if let Some(name) = &self.session.name {
            let name = truncate(name, room.saturating_sub(place_width + 4));
            if !name.is_empty() {
                let style = on_rule(self.theme.accent);
                buf.set_string(area.x + 1, area.y, format!(" {name} "), style);
            }
        }
    }

    /// Draws the number of hidden rows of a long text.
    fn draw_hidden(&self, editor: Rect, rule: Rect, rule_below: Rect, buf: &mut Buffer) {
        let (above, below) = self.editor.hidden(text_of(editor));
        for (rows, sign, line) in [(above, '↑', rule), (below, '↓', rule_below)] {
            if rows > 0 && line.height > 0 {
                let words = format!(" {sign} {rows} more ");
                let x = line.x + 1;
                buf.set_stringn(x, line.y, words, usize::from(line.width), self.theme.dim);
            }
        }
    }

    fn draw_line(&self, area: Rect, buf: &mut Buffer) {
        if area.height > 0 {
            let line = "─".repeat(usize::from(area.width));
            buf.set_string(area.x, area.y, line, self.theme.border);
        }
    }

    /// The working directory, with `~` for the home.
    fn place(&self) -> String {
        match self.cwd.strip_prefix(&self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => self.cwd.display().to_string(),
        }
    }

    fn queued_lines(&self) -> Vec<String> {
        let steering = self.steering.iter().map(|text| ("steer", text));
        let follow_up = self.follow_up.iter().map(|text| ("then", text));
        let opening = self
            .pending_prompts
            .iter()
            .map(|prompt| ("then", &prompt.text));
        let all: Vec<String> = steering
            .chain(follow_up)
            .chain(opening)
            .map(|(when, text)| format!("{when}: {}", text.replace('\n', " ")))
            .collect();
        if all.is_empty() {
            return all;
        }
        let more = all.len().saturating_sub(MAX_QUEUED_ROWS);
        let mut lines: Vec<String> = all.into_iter().take(MAX_QUEUED_ROWS).collect();
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        if let Some(last) = lines.last_mut() {
            last.push_str("   (Alt-Up takes them back)");
        }
        lines
    }

    fn widget_rows(&self, placement: Placement, stack: &mut Stack) -> Rect {
        let lines = self.panels.lines(placement).len();
        let most = stack.0.height / 3;
        stack.bottom(u16::try_from(lines).unwrap_or(most).min(most))
    }

    fn draw_widgets(&self, placement: Placement, area: Rect, buf: &mut Buffer) {
        draw_rows(&self.panels.lines(placement), self.theme.dim, area, buf);
    }
}

/// The area of the editor's text, behind the prompt.
fn text_of(editor: Rect) -> Rect {
    let prompt = PROMPT.len() as u16;
    Rect {
        x: editor.x + prompt,
        width: editor.width - prompt,
        ..editor
    }
}

fn draw_rows(
    lines: &[impl AsRef<str>],
    style: ratatui::style::Style,
    area: Rect,
    buf: &mut Buffer,
) {
    for (place, line) in area.rows().zip(lines) {
        row(line.as_ref(), style, place, buf);
    }
}
