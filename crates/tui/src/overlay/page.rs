//! Pages to read: keys and commands, counts and costs.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use pinion_agent::Stats;
use pinion_message::Model;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::models::tokens;
use super::panel::{Panel, PanelSize};
use super::{Overlay, Step};
use crate::keys::Section;
use crate::text::{one_line, width, wrap_hanging};
use crate::{Abilities, Theme};

/// A page that scrolls.
pub(crate) struct Page {
    title: &'static str,
    rows: Vec<PageRow>,
    top: usize,
    /// The largest `top`, and the number of visible lines, at the last drawing.
    lowest: usize,
    shown: usize,
}

enum PageRow {
    Heading(String),
    /// A term and its description.
    Pair(String, String),
}

/// A command that starts with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandHelp {
    /// The command as it is typed, with `/` and arguments.
    pub name: String,
    /// Its description.
    pub does: String,
}

impl Page {
    /// The help page: all keys and commands.
    pub fn help(abilities: Abilities, commands: &[CommandHelp]) -> Self {
        let mut rows = Vec::new();
        for section in Section::ALL {
            let mut bindings = section.bindings(abilities).peekable();
            if bindings.peek().is_some() {
                rows.push(PageRow::Heading(section.title().to_owned()));
            }
            rows.extend(bindings.map(|binding| {
                PageRow::Pair(binding.keys.join(", "), binding.description.to_owned())
            }));
        }
        if !commands.is_empty() {
            rows.push(PageRow::Heading("Commands".to_owned()));
            rows.extend(
                commands
                    .iter()
                    .map(|command| PageRow::Pair(one_line(&command.name), one_line(&command.does))),
            );
        }
        Self::new("Help", rows)
    }

    /// The statistics of a session.
    pub fn stats(stats: &Stats, name: Option<&str>, model: Option<&Model>) -> Self {
        let mut rows = vec![PageRow::Heading("Session".to_owned())];
        let mut pair = |what: &str, value: String| rows.push(PageRow::Pair(what.to_owned(), value));
        if let Some(name) = name {
            pair("name", one_line(name));
        }
        pair("id", one_line(&stats.session_id));
        let file = stats.session_file.as_deref().map(one_line);
        pair("file", file.unwrap_or_else(|| "not saved".to_owned()));
        if let Some(model) = model {
            pair(
                "model",
                one_line(&format!("{}/{}", model.provider, model.id)),
            );
        }
        if let Some(context) = stats.context_usage {
            let window = tokens(context.context_window);
            let fill = match (context.tokens, context.percent) {
                (Some(count), Some(percent)) => {
                    format!("{percent:.1}% of {window} ({})", thousands(count))
                }
                _ => format!("not counted yet, of {window}"),
            };
            pair("context", fill);
        }
        pair("cost", format!("${:.4}", stats.cost));
        rows.push(PageRow::Heading("Messages".to_owned()));
        let mut pair = |what: &str, value: String| rows.push(PageRow::Pair(what.to_owned(), value));
        for (what, count) in [
            ("yours", stats.user_messages),
            ("answers", stats.assistant_messages),
            ("tool calls", stats.tool_calls),
            ("tool results", stats.tool_results),
            ("all", stats.total_messages),
        ] {
            pair(what, count.to_string());
        }
        rows.push(PageRow::Heading("Tokens".to_owned()));
        let mut pair = |what: &str, value: String| rows.push(PageRow::Pair(what.to_owned(), value));
        for (what, count) in [
            ("in", stats.tokens.input),
            ("out", stats.tokens.output),
            ("read from cache", stats.tokens.cache_read),
            ("written to cache", stats.tokens.cache_write),
            ("all", stats.tokens.total),
        ] {
            pair(what, thousands(count));
        }
        Self::new("Statistics", rows)
    }

    fn new(title: &'static str, rows: Vec<PageRow>) -> Self {
        Self {
            title,
            rows,
            top: 0,
            lowest: 0,
            shown: 0,
        }
    }

    fn lines(&self, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
        let names = self.rows.iter().filter_map(|row| match row {
            PageRow::Pair(name, _) => Some(width(name)),
            PageRow::Heading(_) => None,
        });
        let most = usize::from(columns) / 2;
        let indent = names.filter(|&name| name <= most).max().unwrap_or_default() + 2;
        let mut lines = Vec::new();
        for row in &self.rows {
            match row {
                PageRow::Heading(title) => {
                    if !lines.is_empty() {
                        lines.push(Line::default());
                    }
                    lines.push(Line::styled(title.clone(), theme.heading));
                }
                PageRow::Pair(name, text) => {
                    let gap = " ".repeat(indent);
                    let padding = indent.saturating_sub(width(name)).max(2);
                    let first = [
                        Span::styled(name.clone(), theme.strong),
                        Span::raw(" ".repeat(padding)),
                    ];
                    let text = Line::styled(text.clone(), theme.text);
                    lines.extend(wrap_hanging(text, columns, &first, &[Span::raw(gap)]));
                }
            }
        }
        lines
    }
}

impl Overlay for Page {
    fn key(&mut self, key: KeyEvent) -> Step {
        let page = self.shown.saturating_sub(1).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let top = match key.code {
            KeyCode::Up => self.top.saturating_sub(1),
            KeyCode::Down => self.top + 1,
            KeyCode::PageUp => self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top + page,
            KeyCode::Home => 0,
            KeyCode::End => self.lowest,
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => return Step::Close,
            KeyCode::Char('c' | 'g') if control => return Step::Close,
            _ => return Step::Stay,
        };
        self.top = top.min(self.lowest);
        Step::Stay
    }

    fn wheel(&mut self, rows: isize) {
        self.top = self.top.saturating_add_signed(rows).min(self.lowest);
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let columns = area.intersection(buf.area).width;
        let lines = self.lines(columns, theme);
        let room = PanelSize::All.room(area).min(lines.len());
        self.shown = room;
        self.lowest = lines.len() - room;
        self.top = self.top.min(self.lowest);
        let note = match self.lowest {
            0 => String::new(),
            lowest => format!("{}%", self.top * 100 / lowest),
        };
        let panel = Panel {
            title: self.title,
            note: &note,
            hints: &[("↑↓ PgUp PgDn", "scroll"), ("Esc", "close")],
            size: PanelSize::All,
        };
        let content = panel.draw(area, buf, theme, lines.len());
        for (row, line) in content.rows().zip(lines.iter().skip(self.top)) {
            buf.set_line(row.x, row.y, line, row.width);
        }
        None
    }
}

/// `1234567` as `1,234,567`.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(count), text);
        }
    }
}
