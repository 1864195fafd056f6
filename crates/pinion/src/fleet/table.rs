//! The live table: which rows, and the few bytes that draw it over itself.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use pinion_fleet::{ChildState, ChildStatus, FleetEvent, Micros, Record, RunState};

use super::layout::{self, Ink, Shown, cut, money, time};
use super::view::is_open;

/// How often it is drawn.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// What is on the screen.
pub(super) struct Screen {
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
    /// How wide the lines were that were drawn last time.
    drawn: Vec<usize>,
    total: Micros,
    begun: Instant,
    color: bool,
}

/// A child.
struct Row {
    shown: Shown,
    begun: Option<Instant>,
}

impl Screen {
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            by_name: HashMap::new(),
            drawn: Vec::new(),
            total: Micros::ZERO,
            begun: Instant::now(),
            color: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// Takes what a record changed.
    pub fn take(&mut self, record: &Record, state: &RunState) {
        if self.rows.len() != state.children.len() {
            self.rows = state.children.iter().map(Row::new).collect();
            let names = state.children.iter().enumerate();
            self.by_name = names
                .map(|(index, child)| (child.planned.name.clone(), index))
                .collect();
        }
        let child = match &record.event {
            FleetEvent::ChildStarted { child, .. }
            | FleetEvent::ChildTool { child, .. }
            | FleetEvent::ChildStep { child, .. }
            | FleetEvent::ChildQuiet { child, .. }
            | FleetEvent::AttemptEnded { child, .. }
            | FleetEvent::ChildEnded { child, .. } => child,
            _ => return,
        };
        if let Some(index) = self.by_name.get(child)
            && let (Some(row), Some(child)) =
                (self.rows.get_mut(*index), state.children.get(*index))
        {
            row.update(child);
        }
        if matches!(record.event, FleetEvent::ChildStep { .. }) {
            self.total = state.cost();
        }
    }

    /// How many children are in this state.
    fn count(&self, status: ChildStatus) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.shown.status == status).count()
    }

    fn summary(&self, hidden: usize) -> String {
        let mut parts: Vec<String> = [
            (ChildStatus::Finished, "finished"),
            (ChildStatus::Running, "running"),
            (ChildStatus::Waiting, "waiting"),
            (ChildStatus::Failed, "failed"),
            (ChildStatus::Stopped, "stopped"),
        ]
        .into_iter()
        .map(|(status, word)| (self.count(status), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
        if hidden > 0 {
            parts.push(format!("{hidden} not shown"));
        }
        parts.push(money(self.total));
        parts.push(time(self.begun.elapsed()));
        parts.join(" · ")
    }
}

impl Row {
    fn new(child: &ChildState) -> Self {
        let mut row = Self {
            shown: Shown {
                name: child.planned.name.clone(),
                status: child.status,
                model: String::new(),
                steps: 0,
                tokens: 0,
                cost: Micros::ZERO,
                elapsed: None,
                doing: String::new(),
            },
            begun: None,
        };
        row.update(child);
        row
    }

    fn update(&mut self, child: &ChildState) {
        if child.status == ChildStatus::Running && self.begun.is_none() {
            self.begun = Some(Instant::now());
        }
        let shown = &mut self.shown;
        if !is_open(child.status) {
            shown.elapsed = shown.elapsed.or(self.begun.map(|begun| begun.elapsed()));
        }
        shown.status = child.status;
        shown.model = child.model().unwrap_or_default().to_owned();
        let attempt = child.attempts.last();
        shown.steps = attempt.map_or(0, |attempt| attempt.steps.len());
        shown.tokens = child.tokens().total();
        shown.cost = child.cost();
        shown.doing = match (&child.failure, child.quiet_seconds) {
            (Some(failure), _) => failure.kind.to_string(),
            (None, Some(seconds)) => {
                format!("thinking, silent {}", time(Duration::from_secs(seconds)))
            }
            (None, None) => child.last_tool.clone().unwrap_or_default(),
        };
    }

    fn shown(&self) -> Shown {
        let running = self.begun.map(|begun| begun.elapsed());
        Shown {
            elapsed: self.shown.elapsed.or(running),
            ..self.shown.clone()
        }
    }
}

/// The bytes that draw the screen over what was drawn before.
pub(super) fn render(screen: &mut Screen) -> String {
    render_at(screen, size())
}

fn render_at(screen: &mut Screen, (height, width): (usize, usize)) -> String {
    // The head, the summary, and the line the cursor is on.
    let room = height.saturating_sub(4).max(3);
    // Those that run come first when there are more than fit.
    let mut order: Vec<&Row> = screen.rows.iter().collect();
    if order.len() > room {
        order.sort_by_key(|row| match row.shown.status {
            ChildStatus::Running => 0,
            ChildStatus::Failed | ChildStatus::Stopped => 1,
            ChildStatus::Waiting => 2,
            ChildStatus::Finished => 3,
        });
    }
    let hidden = order.len().saturating_sub(room);
    let rows: Vec<Shown> = order.iter().take(room).map(|row| row.shown()).collect();
    // The last column stays free: terminals differ in what they do after it.
    let width = width.saturating_sub(1).max(1);
    let mut lines = layout::lines(&rows, width);
    lines.push(vec![(cut(&screen.summary(hidden), width), Ink::Plain)]);
    let mut text = String::new();
    let up = risen(&screen.drawn, width + 1).min(height.saturating_sub(1));
    if up > 0 {
        let _ = write!(text, "\x1b[{up}A");
    }
    screen.drawn.clear();
    for line in &lines {
        text.push_str("\r\x1b[K");
        let mut left = width;
        for (piece, ink) in line {
            let piece: String = piece.chars().take(left).collect();
            left -= piece.chars().count();
            match code(*ink).filter(|_| screen.color) {
                Some(code) => {
                    let _ = write!(text, "\x1b[{code}m{piece}\x1b[0m");
                }
                None => text.push_str(&piece),
            }
        }
        text.push('\n');
        screen.drawn.push(width - left);
    }
    // A picture that has become shorter leaves nothing behind.
    text.push_str("\x1b[J");
    text
}

/// How many rows lines of these widths take. A terminal that has become narrower has folded them.
fn risen(drawn: &[usize], width: usize) -> usize {
    drawn
        .iter()
        .map(|wide| wide.div_ceil(width.max(1)).max(1))
        .sum()
}

/// Colours that can be read on dark and on light.
fn code(ink: Ink) -> Option<u8> {
    match ink {
        Ink::Plain => None,
        Ink::Faint => Some(2),
        Ink::Good => Some(32),
        Ink::Bad => Some(31),
    }
}

/// Rows and columns of the terminal.
fn size() -> (usize, usize) {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the structure is valid and lives across the call.
    let asked = unsafe { libc::ioctl(2, libc::TIOCGWINSZ, &mut size) };
    match (asked, size.ws_row, size.ws_col) {
        (0, rows @ 1.., columns @ 1..) => (usize::from(rows), usize::from(columns)),
        _ => (24, 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn screen(children: usize, started: usize) -> Screen {
        let planned: Vec<_> = (0..children)
            .map(|index| json!({"name": format!("c{index}"), "agent": "pinion", "isolation": "process"}))
            .collect();
        let mut events =
            vec![json!({"type": "run_started", "run": "r", "plan": "p", "children": planned})];
        events.extend((children - started..children).map(
            |index| json!({"type": "child_started", "child": format!("c{index}"), "attempt": 1, "model": "m/x"}),
        ));
        let mut screen = Screen::new();
        let mut state = RunState::default();
        for (index, mut event) in events.into_iter().enumerate() {
            event["seq"] = (index + 1).into();
            event["time"] = "2026-11-16T00:00:00Z".into();
            let record: Record = serde_json::from_value(event).unwrap();
            state.apply(&record);
            screen.take(&record, &state);
        }
        screen
    }

    #[test]
    fn a_picture_is_drawn_over_the_last_one() {
        let mut screen = screen(2, 1);
        let first = render_at(&mut screen, (24, 80));
        assert!(!first.contains('A'), "{first:?}");
        assert!(
            first.contains("c0") && first.contains("waiting") && first.contains("running"),
            "{first:?}"
        );
        assert!(first.contains("1 running · 1 waiting · $0.00 · 0s"));
        assert!(render_at(&mut screen, (24, 80)).starts_with("\x1b[4A"));
    }

    #[test]
    fn a_terminal_that_became_narrower_has_folded_what_was_drawn() {
        let mut screen = screen(2, 1);
        render_at(&mut screen, (24, 80));
        let lines: usize = screen.drawn.iter().map(|wide| wide.div_ceil(30)).sum();
        assert!(lines > 4);
        let text = render_at(&mut screen, (24, 30));
        assert!(text.starts_with(&format!("\x1b[{lines}A")), "{text:?}");
        assert!(screen.drawn.iter().all(|wide| *wide < 30));
        assert!(render_at(&mut screen, (24, 30)).starts_with("\x1b[4A"));
        // Never further than the screen is high.
        assert!(render_at(&mut screen, (3, 30)).starts_with("\x1b[2A"));
    }

    #[test]
    fn without_colour_there_are_no_colours() {
        let mut screen = screen(2, 1);
        screen.color = false;
        let text = render_at(&mut screen, (24, 80));
        assert!(
            !text.contains("\x1b[2m") && text.contains("child"),
            "{text:?}"
        );
        screen.color = true;
        assert!(render_at(&mut screen, (24, 80)).contains("\x1b[2m"));
    }

    #[test]
    fn those_that_run_are_shown_when_not_all_fit() {
        let text = render_at(&mut screen(500, 2), (24, 80));
        assert!(text.contains("c498") && text.contains("c499"), "{text:?}");
        assert!(text.contains("480 not shown"), "{text:?}");
        assert_eq!(text.lines().count(), 23);
    }
}
