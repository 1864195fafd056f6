//! The live table: which rows, how wide, and the few bytes that draw it over itself.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use pinion_fleet::{ChildState, ChildStatus, FleetEvent, Record, RunState};

use super::view::is_open;

/// How often it is drawn.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// What is on the screen.
pub(super) struct Screen {
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
    /// How many lines were drawn last time.
    drawn: usize,
    total: String,
    color: bool,
}

/// A child.
struct Row {
    name: String,
    status: ChildStatus,
    model: String,
    steps: usize,
    tool: String,
    tokens: u64,
    cost: String,
    begun: Option<Instant>,
    took: Option<Duration>,
    note: String,
}

impl Screen {
    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            by_name: HashMap::new(),
            drawn: 0,
            total: String::new(),
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
        if matches!(
            record.event,
            FleetEvent::ChildStep { .. } | FleetEvent::RunStarted { .. }
        ) {
            self.total = state.cost().to_string();
        }
    }
}

impl Row {
    fn new(child: &ChildState) -> Self {
        let mut row = Self {
            name: child.planned.name.clone(),
            status: child.status,
            model: String::new(),
            steps: 0,
            tool: String::new(),
            tokens: 0,
            cost: String::new(),
            begun: None,
            took: None,
            note: String::new(),
        };
        row.update(child);
        row
    }

    fn update(&mut self, child: &ChildState) {
        if child.status == ChildStatus::Running && self.begun.is_none() {
            self.begun = Some(Instant::now());
        }
        if !is_open(child.status) && self.took.is_none() {
            self.took = Some(self.begun.map_or(Duration::ZERO, |begun| begun.elapsed()));
        }
        self.status = child.status;
        self.model = child.model().unwrap_or_default().to_owned();
        self.steps = child
            .attempts
            .last()
            .map_or(0, |attempt| attempt.steps.len());
        self.tool = child.last_tool.clone().unwrap_or_default();
        self.tokens = child.tokens().total();
        self.cost = child.cost().to_string();
        self.note = match (&child.failure, child.quiet_seconds) {
            (Some(failure), _) => failure.kind.to_string(),
            (None, Some(seconds)) => format!("thinking, silent for {seconds} s"),
            (None, None) => String::new(),
        };
    }

    fn line(&self) -> String {
        let word = match self.status {
            ChildStatus::Waiting => "waiting",
            ChildStatus::Running => "running",
            ChildStatus::Finished => "finished",
            ChildStatus::Failed => "failed",
            ChildStatus::Stopped => "stopped",
        };
        let elapsed = self.took.or(self.begun.map(|begun| begun.elapsed()));
        let elapsed = elapsed.map_or(String::new(), |time| format!("{}s", time.as_secs()));
        format!(
            "{:<16} {word:<8} {:<28} {:>5} {:<10} {:>9} {:>10} {elapsed:>6}  {}",
            cut(&self.name, 16),
            cut(&self.model, 28),
            self.steps,
            cut(&self.tool, 10),
            self.tokens,
            self.cost,
            self.note,
        )
    }
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// The bytes that draw the screen over what was drawn before.
pub(super) fn render(screen: &mut Screen) -> String {
    let (height, width) = size();
    let room = height.saturating_sub(4).max(3);
    let mut lines = vec![format!(
        "{:<16} {:<8} {:<28} {:>5} {:<10} {:>9} {:>10} {:>6}",
        "child", "state", "model", "step", "tool", "tokens", "cost", "time"
    )];
    // Those that run come first when there are more than fit.
    let mut order: Vec<&Row> = screen.rows.iter().collect();
    if order.len() > room {
        order.sort_by_key(|row| match row.status {
            ChildStatus::Running => 0,
            ChildStatus::Failed | ChildStatus::Stopped => 1,
            ChildStatus::Waiting => 2,
            ChildStatus::Finished => 3,
        });
    }
    let hidden = order.len().saturating_sub(room);
    lines.extend(order.iter().take(room).map(|row| row.line()));
    let count = |status| {
        screen
            .rows
            .iter()
            .filter(|row| row.status == status)
            .count()
    };
    let mut summary = format!(
        "{} finished, {} running, {} waiting, {} failed  {}",
        count(ChildStatus::Finished),
        count(ChildStatus::Running),
        count(ChildStatus::Waiting),
        count(ChildStatus::Failed) + count(ChildStatus::Stopped),
        screen.total,
    );
    if hidden > 0 {
        let _ = write!(summary, "  ({hidden} not shown)");
    }
    lines.push(summary);
    let mut text = String::new();
    if screen.drawn > 0 {
        let _ = write!(text, "\x1b[{}A", screen.drawn);
    }
    for (index, line) in lines.iter().enumerate() {
        let line = cut(line, width);
        match (index, screen.color) {
            (0, true) => {
                let _ = write!(text, "\r\x1b[K\x1b[2m{line}\x1b[0m\n");
            }
            _ => {
                let _ = write!(text, "\r\x1b[K{line}\n");
            }
        }
    }
    // A picture that has become shorter leaves nothing behind.
    text.push_str("\x1b[J");
    screen.drawn = lines.len();
    text
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
        let first = render(&mut screen);
        assert!(!first.contains("\x1b[4A"), "{first:?}");
        assert!(
            first.contains("c0               waiting")
                && first.contains("c1               running  m/x"),
            "{first:?}"
        );
        assert!(first.contains("0 finished, 1 running, 1 waiting, 0 failed"));
        assert!(render(&mut screen).starts_with("\x1b[4A"));
    }

    #[test]
    fn those_that_run_are_shown_when_not_all_fit() {
        let text = render(&mut screen(500, 2));
        assert!(text.contains("c498") && text.contains("c499"), "{text:?}");
        assert!(text.contains("not shown"));
        assert!(text.lines().count() < 120);
    }
}
