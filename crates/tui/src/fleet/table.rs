//! The live table: the children that have a row, and the summary line below them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::text::{one_line, truncate, width};
use pinion_fleet::{ChildState, ChildStatus, FleetEvent, Micros, Record, RunState};
use pinion_text::duration::compact;

use super::canvas::Canvas;
use super::layout::{self, Shown, money};
use super::progress::is_open;
use super::style::{Palette, Style, StyledLine, terminal_size};

/// The interval between two drawings.
pub const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The content of the screen.
#[derive(Debug)]
pub(super) struct Screen {
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
    canvas: Canvas,
    total: Micros,
    warnings: usize,
    begun: Instant,
    palette: Palette,
}

/// The row of a child.
#[derive(Debug)]
struct Row {
    shown: Shown,
    begun: Option<Instant>,
}

impl Screen {
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            by_name: HashMap::new(),
            canvas: Canvas::default(),
            total: Micros::ZERO,
            warnings: 0,
            begun: Instant::now(),
            palette: Palette::from_env(),
        }
    }

    /// Applies the change of a record.
    pub fn take(&mut self, record: &Record, state: &RunState) {
        if self.rows.len() != state.children.len() {
            self.rows = state.children.iter().map(Row::new).collect();
            let names = state.children.iter().enumerate();
            self.by_name = names
                .map(|(index, child)| (child.planned.name.clone(), index))
                .collect();
        }
        self.warnings = state.warnings.len();
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

    /// Returns the number of children with this status.
    fn count(&self, status: ChildStatus) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| row.shown.status == status).count()
    }

    fn summary(&self, hidden: usize, cells: usize) -> String {
        let counted = |count: usize, word: &str| match count {
            0 => None,
            count => Some(format!("{count} {word}")),
        };
        let of = |status, word| counted(self.count(status), word);
        let warnings = match self.warnings {
            1 => "warning",
            _ => "warnings",
        };
        let mut parts = [
            of(ChildStatus::Finished, "finished"),
            of(ChildStatus::Running, "running"),
            of(ChildStatus::Waiting, "waiting"),
            of(ChildStatus::Failed, "failed"),
            of(ChildStatus::Stopped, "stopped"),
            counted(hidden, "not shown"),
            counted(self.warnings, warnings),
            Some(money(self.total)),
            Some(compact(self.begun.elapsed(), "")),
        ];
        let joined = |parts: &[Option<String>]| {
            let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
            parts.join(" · ")
        };
        // Parts to leave out when there is no room, in this order: not shown, waiting, finished, warnings.
        for dispensable in [5, 2, 0, 6] {
            if width(&joined(&parts)) <= cells {
                break;
            }
            parts[dispensable] = None;
        }
        truncate(&joined(&parts), cells)
    }
}

impl Row {
    fn new(child: &ChildState) -> Self {
        let mut row = Self {
            shown: Shown {
                name: one_line(&child.planned.name),
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
        shown.model = child.model().map(one_line).unwrap_or_default();
        let attempt = child.attempts.last();
        shown.steps = attempt.map_or(0, |attempt| attempt.steps.len());
        shown.tokens = child.tokens().total();
        shown.cost = child.cost();
        shown.doing = match (&child.failure, child.quiet_seconds) {
            _ if child.status == ChildStatus::Finished => String::new(),
            (Some(failure), _) => layout::reason(failure, child.status),
            (None, Some(seconds)) => {
                format!(
                    "thinking, silent {}",
                    compact(Duration::from_secs(seconds), "")
                )
            }
            (None, None) => child.last_tool.as_deref().map(one_line).unwrap_or_default(),
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

/// Returns the bytes that draw the screen over the previous drawing; empty if nothing has changed.
pub(super) fn render(screen: &mut Screen) -> String {
    render_at(screen, terminal_size(std::io::stderr()))
}

fn render_at(screen: &mut Screen, size: (usize, usize)) -> String {
    let (height, width) = size;
    // The last column stays free: terminals differ in what they do after it.
    let lines = picture(screen, height, width.saturating_sub(1).max(1));
    screen.canvas.draw(lines, size, screen.palette)
}

/// Returns the bytes that remove the drawing.
pub(super) fn erase(screen: &mut Screen) -> String {
    screen.canvas.erase(terminal_size(std::io::stderr()))
}

fn picture(screen: &Screen, height: usize, width: usize) -> Vec<StyledLine> {
    // Besides the rows there are the head, the summary and the line of the cursor.
    let room = match height {
        0..4 => 0,
        4..8 => height - 3,
        _ => height - 4,
    };
    // Running children come first when not all rows fit.
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
    let mut lines = match room {
        0 => Vec::new(),
        _ => layout::lines(&rows, width),
    };
    if height > 1 {
        lines.push(vec![(screen.summary(hidden, width), Style::Plain)]);
    }
    lines
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
    fn the_picture_tells_of_everybody() {
        let mut screen = screen(2, 1);
        let text = render_at(&mut screen, (24, 80));
        assert!(
            text.contains("c0") && text.contains("waiting") && text.contains("running"),
            "{text:?}"
        );
        assert!(text.contains("1 running · 1 waiting · $0.00 · 0s"));
    }

    #[test]
    fn the_picture_is_always_lower_than_the_terminal() {
        for height in 1..40 {
            let screen = screen(500, 2);
            let lines = picture(&screen, height, 79);
            assert!(lines.len() < height, "{} of {height}", lines.len());
            assert!(height == 1 || !lines.is_empty());
        }
    }

    #[test]
    fn what_children_say_does_nothing_to_the_terminal() {
        let mut screen = screen(1, 1);
        let mut state = RunState::default();
        for (index, event) in [
            json!({"type": "run_started", "run": "r", "plan": "p", "children": [
                {"name": "c0", "agent": "jsonl", "isolation": "process"}]}),
            json!({"type": "child_started", "child": "c0", "attempt": 1, "model": "m\u{1b}[2J/x"}),
            json!({"type": "child_tool", "child": "c0", "attempt": 1, "tool": "ev\u{1b}]0;title\u{7}il\n\r\u{9b}5Atool"}),
        ]
        .into_iter()
        .enumerate()
        {
            let mut event = event;
            event["seq"] = (index + 1).into();
            event["time"] = "2026-11-16T00:00:00Z".into();
            let record: Record = serde_json::from_value(event).unwrap();
            state.apply(&record);
            screen.take(&record, &state);
        }
        let text = render_at(&mut screen, (24, 80));
        assert!(text.contains("evil tool"), "{text:?}");
        assert!(!text.contains("title") && !text.contains("2J"), "{text:?}");
    }

    #[test]
    fn a_narrow_summary_keeps_what_matters() {
        let screen = screen(120, 12);
        assert_eq!(
            screen.summary(100, 80),
            "12 running · 108 waiting · 100 not shown · $0.00 · 0s"
        );
        assert_eq!(
            screen.summary(100, 40),
            "12 running · 108 waiting · $0.00 · 0s"
        );
        assert_eq!(screen.summary(100, 30), "12 running · $0.00 · 0s");
        assert_eq!(screen.summary(100, 10), "12 runnin…");
    }

    #[test]
    fn without_colour_there_are_no_colours() {
        let mut screen = screen(2, 1);
        screen.palette = Palette::None;
        let text = render_at(&mut screen, (24, 80));
        assert!(
            !text.contains("\x1b[2m") && text.contains("child"),
            "{text:?}"
        );
        screen.palette = Palette::Colours;
        assert!(render_at(&mut screen, (24, 70)).contains("\x1b[2m"));
    }

    #[test]
    fn those_that_run_are_shown_when_not_all_fit() {
        let mut screen = screen(500, 2);
        let text = render_at(&mut screen, (24, 80));
        assert!(text.contains("c498") && text.contains("c499"), "{text:?}");
        assert!(text.contains("480 not shown"), "{text:?}");
        assert_eq!(picture(&screen, 24, 79).len(), 22);
    }
}
