//! Tool calls and shell commands as plain text.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{BashOutcome, ToolOutput, ToolRun};
use pinion_message::Block;

use super::PlainPrinter;
use crate::text::{one_line, sanitise};
use crate::transcript::{Fold, changes, elapsed, image, split_ending, subject};

/// Lines of tool output that are printed while folded.
const FOLDED_LINES: usize = 5;

impl PlainPrinter {
    pub(super) fn tool_line(&mut self, name: &str, subject: &str) {
        self.finish_line();
        self.has_begun = true;
        // The dollar sign is useful on a screen only.
        let subject = one_line(subject.strip_prefix("$ ").unwrap_or(subject));
        let _ = match subject.as_str() {
            "" => write!(self.out, "Tool {} …", one_line(name)),
            subject => write!(self.out, "Tool {}: {subject} …", one_line(name)),
        };
    }

    pub(super) fn tool_start(&mut self, run: &ToolRun) {
        self.tool_line(&run.name, &subject(&run.name, &run.arguments));
        self.unfinished = Some(Arc::clone(&run.call_id));
    }

    pub(super) fn tool_end(
        &mut self,
        run: &ToolRun,
        output: &ToolOutput,
        is_error: bool,
        duration: Option<Duration>,
    ) {
        if self.unfinished.as_deref() != Some(&*run.call_id) {
            self.tool_line(&run.name, &subject(&run.name, &run.arguments));
        }
        self.unfinished = None;
        self.tool_result(&run.name, output, is_error, duration);
    }

    /// Completes the line of a call and prints its result.
    pub(super) fn tool_result(
        &mut self,
        name: &str,
        output: &ToolOutput,
        is_error: bool,
        duration: Option<Duration>,
    ) {
        let detail = |member: &str| output.details.as_ref()?.get(member);
        let texts: Vec<&str> = output.content.iter().filter_map(Block::as_text).collect();
        let text = texts.join("\n");
        let (printed, ending) = match name {
            "bash" if is_error => split_ending(&text),
            _ => (text.as_str(), String::new()),
        };
        let outcome = match (is_error, ending.as_str()) {
            (false, _) => "done".to_owned(),
            (true, _) if detail("approval").is_some() => "refused".to_owned(),
            (true, "") => "failed".to_owned(),
            (true, ending) => format!("failed, {ending}"),
        };
        let time = duration.map(in_seconds).unwrap_or_default();
        let diff = detail("diff").and_then(|diff| diff.as_str());
        let extent = match diff {
            Some(diff) => {
                let (added, removed) = changes(diff);
                format!(", {added} lines added, {removed} removed")
            }
            None => String::new(),
        };
        let _ = writeln!(self.out, " {outcome}{time}{extent}");
        match diff {
            Some(diff) if self.tools == Fold::Unfolded => self.excerpt(diff, Excerpt::First),
            Some(_) => {}
            None if is_error => self.excerpt(printed, excerpt_of(name)),
            None if matches!(name, "read" | "ls" | "find" | "write") => {
                if self.tools == Fold::Unfolded {
                    self.excerpt(printed, Excerpt::First);
                }
            }
            None => self.excerpt(printed, excerpt_of(name)),
        }
        for words in output.content.iter().filter_map(image) {
            self.line(&words);
        }
    }

    /// Prints all of a text, or a few lines of it.
    fn excerpt(&mut self, text: &str, which: Excerpt) {
        let clean = sanitise(text.trim_end());
        let lines: Vec<&str> = clean.lines().collect();
        let shown = match self.tools {
            Fold::Folded if lines.len() > FOLDED_LINES + 1 => FOLDED_LINES,
            _ => lines.len(),
        };
        let left_out = lines.len() - shown;
        let range = match which {
            Excerpt::First => &lines[..shown],
            Excerpt::Last => &lines[left_out..],
        };
        let rest = format!("({left_out} more lines)");
        if left_out > 0 && which == Excerpt::Last {
            self.line(&rest);
        }
        for line in range {
            self.line(line);
        }
        if left_out > 0 && which == Excerpt::First {
            self.line(&rest);
        }
    }

    pub(super) fn shell(&mut self, command: &str, outcome: Result<&BashOutcome, &str>) {
        let command = one_line(command);
        match outcome {
            Err(error) => self.text(&format!("Command {command} failed: "), error),
            Ok(outcome) => {
                let ending = match outcome.exit_code {
                    _ if outcome.cancelled => "stopped".to_owned(),
                    Some(0) => "done".to_owned(),
                    Some(code) => format!("exit code {code}"),
                    None => "ended by a signal".to_owned(),
                };
                self.line(&format!("Command {command} … {ending}"));
                self.excerpt(&outcome.output, Excerpt::Last);
                if let Some(path) = &outcome.full_output_path {
                    self.line(&format!("Full output: {path}"));
                }
            }
        }
    }
}

/// The part of a text to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excerpt {
    First,
    Last,
}

fn excerpt_of(tool: &str) -> Excerpt {
    if tool == "bash" {
        Excerpt::Last
    } else {
        Excerpt::First
    }
}

/// " in 1.2 s"; whole seconds where tenths do not matter.
fn in_seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!(" in {:.1} s", duration.as_secs_f64())
    } else {
        format!(" in{}", elapsed(duration))
    }
}
