//! The report as Markdown for a merge request.

use std::fmt::Write;

use super::{ChildReport, Report};
use crate::ChildStatus;

/// The longest part of a result that is shown, in bytes; `report.json` has all of it.
const MAX_RESULT: usize = 20_000;

/// Formats the report. Errors are ignored because writing to a `String` cannot fail.
pub(super) fn print(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "## {}: {}\n",
        one_line(&report.plan),
        report.headline()
    );
    if let Some(judge) = &report.judge {
        result(&mut text, judge);
    }
    table(&mut text, report);
    for warning in &report.warnings {
        let _ = writeln!(text, "> **Warning:** {}\n", one_line(warning));
    }
    for child in &report.children {
        details(&mut text, child);
    }
    let _ = writeln!(
        text,
        "<sub>run {} · {} → {} · {} tokens · {}{}</sub>",
        report.run,
        report.started_at,
        report.ended_at,
        report.total_tokens.total(),
        report.total_cost_micros,
        match report.budget_micros {
            Some(budget) => format!(" of {budget}"),
            None => String::new(),
        },
    );
    text
}

pub(super) fn headline(report: &Report) -> String {
    let finished = report
        .children
        .iter()
        .filter(|child| child.status == ChildStatus::Finished);
    let counts = format!("{} of {} finished", finished.count(), report.children.len());
    format!("{} ({counts})", report.ending())
}

fn table(text: &mut String, report: &Report) {
    text.push_str("| child | result | model | attempts | tokens | cost | time |\n");
    text.push_str("|---|---|---|--:|--:|--:|--:|\n");
    for child in report.children.iter().chain(&report.judge) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            child.name,
            cell(&status(child)),
            cell(child.model.as_deref().unwrap_or("–")),
            child.attempts.len(),
            child.total_tokens.total(),
            child.total_cost_micros,
            seconds(child.total_duration_ms),
        );
    }
    text.push('\n');
}

fn status(child: &ChildReport) -> String {
    match (&child.status, &child.failure) {
        (ChildStatus::Finished, _) => "✓".into(),
        (ChildStatus::Waiting, _) => "not started".into(),
        (ChildStatus::Running, _) => "interrupted".into(),
        (_, Some(failure)) => format!("✗ {}", failure.kind),
        (ChildStatus::Stopped, None) => "stopped".into(),
        (ChildStatus::Failed, None) => "✗".into(),
    }
}

fn details(text: &mut String, child: &ChildReport) {
    let _ = writeln!(
        text,
        "<details><summary><b>{}</b> {}</summary>\n",
        child.name,
        escaped(&status(child))
    );
    if let Some(failure) = &child.failure {
        let _ = writeln!(text, "> {}\n", one_line(&failure.message));
    }
    let moved: Vec<&str> = child
        .attempts
        .iter()
        .filter_map(|attempt| attempt.model.as_deref())
        .collect();
    if moved.windows(2).any(|pair| pair[0] != pair[1]) {
        let _ = writeln!(text, "Models tried: {}\n", moved.join(" → "));
    }
    result(text, child);
    text.push_str("</details>\n\n");
}

fn result(text: &mut String, child: &ChildReport) {
    if let Some(output) = &child.output {
        let pretty = serde_json::to_string_pretty(output).unwrap_or_default();
        let _ = writeln!(text, "```json\n{}\n```\n", shortened(&pretty));
    } else if let Some(answer) = &child.result {
        let _ = writeln!(text, "{}\n", shortened(answer.trim()));
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_RESULT);
    format!(
        "{}\n… ({} bytes in all; see report.json)",
        &text[..end],
        text.len()
    )
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let end = line.floor_char_boundary(500);
    escaped(&line[..end])
}

fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn seconds(milliseconds: u64) -> String {
    match milliseconds / 1000 {
        0..60 => format!("{:.1} s", milliseconds as f64 / 1000.0),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}
