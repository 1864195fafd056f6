//! The status line, and the status texts and widgets of extensions.

use std::time::Instant;

use pinion_message::ThinkingLevel;
use pinion_text::duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::state::State;
use crate::request::Placement;
use crate::text::{sanitise, truncate, width};

/// The frames of the spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Status texts, widgets and the title of extensions.
#[derive(Debug, Default)]
pub(super) struct Panels {
    pub title: Option<String>,
    statuses: Vec<(String, String)>,
    widgets: Vec<(String, Placement, Vec<String>)>,
}

impl Panels {
    pub fn set_status(&mut self, key: String, text: Option<String>) {
        let place = self.statuses.iter().position(|(known, _)| *known == key);
        match (place, text) {
            (Some(place), Some(text)) => self.statuses[place].1 = text,
            (Some(place), None) => drop(self.statuses.remove(place)),
            (None, Some(text)) => self.statuses.push((key, text)),
            (None, None) => {}
        }
    }

    pub fn set_widget(&mut self, key: String, lines: Option<Vec<String>>, placement: Placement) {
        let place = self.widgets.iter().position(|(known, ..)| *known == key);
        match (place, lines) {
            (Some(place), Some(lines)) => self.widgets[place] = (key, placement, lines),
            (Some(place), None) => drop(self.widgets.remove(place)),
            (None, Some(lines)) => self.widgets.push((key, placement, lines)),
            (None, None) => {}
        }
    }

    /// The lines of all widgets at a placement.
    pub fn lines(&self, placement: Placement) -> Vec<&str> {
        let widgets = self.widgets.iter();
        let here = widgets.filter(|(_, place, _)| *place == placement);
        here.flat_map(|(_, _, lines)| lines.iter().map(String::as_str))
            .collect()
    }

    fn statuses(&self) -> String {
        let texts: Vec<&str> = self
            .statuses
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        sanitise(&texts.join(" · ")).into_owned()
    }
}

impl State {
    /// Draws the model, the use of the context, the cost and the current activity.
    pub(super) fn draw_status(&self, area: Rect, buf: &mut Buffer) {
        let now = Instant::now();
        let room = usize::from(area.width);
        let mut facts = self.facts();
        let statuses = self.panels.statuses();
        if !statuses.is_empty() {
            facts.push((2, statuses));
        }
        let left = self.activity_line(now).unwrap_or_else(|| {
            let rest = room.saturating_sub(width(&joined(&facts)) + 2);
            self.idle_line(rest)
        });
        let left_width = left.width();
        left.render_clipped(area, buf);
        // The least important facts are dropped first if there is no room for all.
        let space = room.saturating_sub(left_width + 2);
        while facts.len() > 1 && width(&joined(&facts)) > space {
            let least = facts
                .iter()
                .map(|(rank, _)| *rank)
                .max()
                .unwrap_or_default();
            if let Some(place) = facts.iter().rposition(|(rank, _)| *rank == least) {
                facts.remove(place);
            }
        }
        let words = truncate(&joined(&facts), space);
        let taken = u16::try_from(width(&words)).unwrap_or(area.width);
        let x = area.right().saturating_sub(taken);
        buf.set_stringn(x, area.y, words, space, self.theme.dim);
    }

    /// The current activity, if any.
    fn activity_line(&self, now: Instant) -> Option<Line<'static>> {
        if let Some((hint, _)) = &self.hint {
            return Some(Line::from(Span::styled(hint.clone(), self.theme.accent)));
        }
        let (words, since) = match (self.running, self.compacting, self.waits_since) {
            (since, true, _) => ("summarising", since),
            (Some(since), ..) => ("working", Some(since)),
            (None, false, Some(since)) if since.elapsed().as_millis() > 300 => {
                ("waiting", Some(since))
            }
            _ if !self.session.is_known => ("starting", None),
            _ if self.completion.is_searching() => ("looking for files", None),
            _ => return None,
        };
        let tick = (now - self.started).as_millis() / super::TICK.as_millis();
        let spinner = SPINNER[tick as usize % SPINNER.len()];
        let mut spans = vec![
            Span::styled(format!("{spinner} "), self.theme.accent),
            Span::raw(words.to_owned()),
        ];
        if let Some(since) = since {
            let time = now - since;
            if time.as_secs() > 0 {
                let time = duration::compact(time, " ");
                spans.push(Span::raw(format!(" {time}")));
            }
            spans.push(Span::styled(" · Esc stops".to_owned(), self.theme.dim));
        }
        Some(Line::from(spans))
    }

    /// Hints about keys, as many as fit.
    fn idle_line(&self, room: usize) -> Line<'static> {
        let words: &[&str] = if self.transcript.follows_end() {
            &["/ commands · @ files · Ctrl-G help", "Ctrl-G help"]
        } else {
            &["scrolled up · Ctrl-End to the end", "Ctrl-End"]
        };
        let fits = |words: &&&str| width(words) <= room;
        let words = words.iter().find(fits).copied().unwrap_or_default();
        Line::from(Span::styled(words.to_owned(), self.theme.dim))
    }

    /// Facts about the session, each with its rank: higher ranks are dropped first.
    fn facts(&self) -> Vec<(u8, String)> {
        let mut facts = Vec::new();
        if let Some(model) = &self.session.model {
            facts.push((0, model.id.clone()));
            if model.reasoning && self.session.thinking != ThinkingLevel::Off {
                facts.push((4, format!("thinks {}", self.session.thinking.as_str())));
            }
        } else if self.session.is_known {
            facts.push((0, "no model".to_owned()));
        }
        if let Some(stats) = &self.stats {
            if let Some(percent) = self.context_percent() {
                facts.push((1, format!("{percent:.0}% full")));
            }
            if stats.cost > 0.0 {
                facts.push((3, format!("${:.4}", stats.cost)));
            }
        }
        facts
    }

    fn context_percent(&self) -> Option<f64> {
        let usage = self.stats.as_ref()?.context_usage?;
        match self.context_tokens {
            Some(tokens) if usage.context_window > 0 => {
                Some(tokens as f64 * 100.0 / usage.context_window as f64)
            }
            _ => usage.percent,
        }
    }
}

fn joined(facts: &[(u8, String)]) -> String {
    let texts: Vec<&str> = facts.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(" · ")
}

/// Draws the part that fits.
pub(super) trait RenderClipped {
    fn render_clipped(&self, area: Rect, buf: &mut Buffer);
}

impl RenderClipped for Line<'_> {
    fn render_clipped(&self, area: Rect, buf: &mut Buffer) {
        if area.height > 0 {
            buf.set_line(area.x, area.y, self, area.width);
        }
    }
}

/// Draws one row of text in one style.
pub(super) fn row(text: &str, style: Style, area: Rect, buf: &mut Buffer) {
    let text = truncate(&sanitise(text), usize::from(area.width));
    if area.height > 0 {
        buf.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }
}
