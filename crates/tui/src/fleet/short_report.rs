//! The short report for a user at a terminal: the result, one row per child, time and money, and the path of the full
//! report.

use std::path::Path;
use std::time::Duration;

use crate::text::one_line;
use pinion_fleet::{ChildReport, ChildStatus, Report, RunStatus};
use pinion_text::duration::compact;

use super::layout::{self, Shown, count, money};
use super::style::{Palette, Style, StyledLine, paint};

/// The largest number of children with a row.
const MAX_ROWS: usize = 40;
/// The largest number of failed children whose message is shown.
const MAX_MESSAGES: usize = 10;
/// The largest length of such a message in bytes; the full report has the rest.
const MAX_MESSAGE: usize = 500;

/// Facts about a run that its report does not contain.
#[derive(Debug)]
pub struct FinishedRun<'a> {
    pub directory: &'a Path,
    /// The name by which `resume` finds it.
    pub name: String,
    /// The time that this start of the run took.
    pub took: Duration,
}

/// Returns the text for the end of a run on a terminal with this many columns.
pub fn short_report(
    report: &Report,
    run: &FinishedRun<'_>,
    columns: usize,
    palette: Palette,
) -> String {
    let style = match report.exit_code {
        Some(0) => Style::Good,
        _ => Style::Bad,
    };
    let title = format!("{}: ", one_line(&report.plan));
    let mut lines: Vec<StyledLine> = vec![
        vec![
            (title, Style::Strong),
            (one_line(&report.headline()), style),
        ],
        StyledLine::new(),
    ];
    let mut children: Vec<&ChildReport> = report.children.iter().chain(&report.judge).collect();
    let count_of_all = children.len();
    if count_of_all > MAX_ROWS {
        // Failed children come first, because the user has to look at them.
        children.sort_by_key(|child| child.status != ChildStatus::Failed);
        children.truncate(MAX_ROWS);
    }
    let rows: Vec<Shown> = children.iter().map(|child| shown(child)).collect();
    let cells = columns.saturating_sub(1).max(1);
    lines.extend(layout::lines(&rows, cells));
    if count_of_all > rows.len() {
        let more = format!("… and {} more in the report", count_of_all - rows.len());
        lines.push(vec![(more, Style::Faint)]);
    }
    lines.push(StyledLine::new());
    let mut text = String::new();
    for line in &lines {
        paint(line, cells, palette, &mut text);
        text.push('\n');
    }
    // From here on the terminal may fold lines: the user reads them to their ends and copies them.
    let failed = |child: &&&ChildReport| child.status == ChildStatus::Failed;
    for child in children.iter().filter(failed).take(MAX_MESSAGES) {
        if let Some(failure) = &child.failure {
            let mut message = one_line(&failure.message);
            message.truncate(message.floor_char_boundary(MAX_MESSAGE));
            text.push_str(&format!("{}: {message}\n", child.name));
        }
    }
    for warning in &report.warnings {
        text.push_str(&format!("Warning: {}\n", one_line(warning)));
    }
    let budget = report
        .budget_micros
        .map_or(String::new(), |budget| format!(" of {}", money(budget)));
    text.push_str(&format!(
        "{} tokens · {}{budget} · {}\n",
        count(report.total_tokens.total()),
        money(report.total_cost_micros),
        compact(run.took, ""),
    ));
    let place = run.directory.join("report.md");
    text.push_str(&format!("Report: {}\n", place.display()));
    if is_unfinished(report) {
        text.push_str(&format!("To go on: pinion fleet resume {}\n", run.name));
    }
    text
}

/// Reports whether `resume` has children left to run.
fn is_unfinished(report: &Report) -> bool {
    let mut children = report.children.iter().chain(&report.judge);
    report.status != RunStatus::Finished
        && children.any(|child| child.status != ChildStatus::Finished)
}

fn shown(child: &ChildReport) -> Shown {
    let attempt = child.attempts.last();
    Shown {
        name: one_line(&child.name),
        status: child.status,
        model: child.model.as_deref().map(one_line).unwrap_or_default(),
        steps: attempt.map_or(0, |attempt| attempt.steps.len()),
        tokens: child.total_tokens.total(),
        cost: child.total_cost_micros,
        elapsed: attempt.map(|_| Duration::from_millis(child.total_duration_ms)),
        doing: match &child.failure {
            Some(failure) => layout::reason(failure, child.status),
            None => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn child(name: &str, status: &str, failure: Option<&str>) -> Value {
        let kind = json!({"kind": "provider_auth", "message": failure, "retryable": false});
        let mut child = json!({
            "name": name, "agent": "pinion", "isolation": "process", "model": "anthropic/claude-opus-4-7",
            "status": status, "totalTokens": {"input": 1200, "output": 34, "reasoning": 0, "cacheRead": 0, "cacheWrite": 0},
            "totalCostMicros": 123_456, "totalDurationMs": 65_000,
            "attempts": [{"attempt": 1, "steps": [], "changed": false, "durationMs": 65_000, "log": "l",
                "printed": {"lines": 1, "bytes": 1, "events": 1, "noise": 0, "truncated": 0, "cut": 0},
                "clocks": {}}],
        });
        if failure.is_some() {
            child["failure"] = kind;
        }
        child
    }

    fn report(children: Vec<Value>, status: &str, code: u8) -> Report {
        let report = json!({
            "run": "20261116-1", "plan": "review", "status": status, "exitCode": code,
            "startedAt": "2026-11-16T10:00:00Z", "endedAt": "2026-11-16T10:02:00Z", "resumed": 0,
            "children": children, "breakers": [], "totalCostMicros": 246_912, "budgetMicros": 4_000_000,
            "totalTokens": {"input": 2400, "output": 68, "reasoning": 0, "cacheRead": 0, "cacheWrite": 0},
        });
        serde_json::from_value(report).unwrap()
    }

    fn printed(report: &Report, columns: usize) -> String {
        let run = FinishedRun {
            directory: Path::new("/runs/20261116-1"),
            name: "20261116-1".into(),
            took: Duration::from_secs(120),
        };
        short_report(report, &run, columns, Palette::None)
    }

    #[test]
    fn all_is_well() {
        let report = report(vec![child("security", "finished", None)], "finished", 0);
        assert_eq!(
            printed(&report, 81),
            "\
review: finished (1 of 1 finished)

child        state    model           step tokens    cost    time
security     finished claude-opus-4-7        1.2k   $0.12   1m05s

2.5k tokens · $0.25 of $4.00 · 2m00s
Report: /runs/20261116-1/report.md
"
        );
    }

    #[test]
    fn what_failed_and_what_was_stopped() {
        let mut report = report(
            vec![
                child("security", "failed", Some("401 \u{1b}[31minvalid\nkey")),
                child("tests", "stopped", None),
            ],
            "interrupted",
            130,
        );
        report.verdict = Some("approve".into());
        report.warnings.push("the disk is full".into());
        assert_eq!(
            printed(&report, 41),
            "\
review: interrupted (0 of 2 finished)

child        state    doing         time
security     failed   provider…    1m05s
tests        stopped               1m05s

security: 401 invalid key
Warning: the disk is full
2.5k tokens · $0.25 of $4.00 · 2m00s
Report: /runs/20261116-1/report.md
To go on: pinion fleet resume 20261116-1
"
        );
    }

    #[test]
    fn of_very_many_those_that_failed_are_shown() {
        let mut children: Vec<Value> = (0..200)
            .map(|index| child(&format!("c{index}"), "finished", None))
            .collect();
        children.push(child("last", "failed", Some("no")));
        let text = printed(&report(children, "failed", 1), 80);
        assert!(
            text.contains("\nlast ") && text.contains("\nlast: no\n"),
            "{text}"
        );
        assert!(text.contains("… and 161 more in the report"), "{text}");
        assert_eq!(text.lines().count(), 3 + 40 + 1 + 1 + 4, "{text}");
    }
}
