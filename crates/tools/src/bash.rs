//! The bash tool, and commands that the user runs without the model.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use serde_json::{Map, Value};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::output::Output;
use crate::shell::{Follower, ShellOptions, ShellOutcome, run_shell};
use crate::truncate::{MAX_BYTES, MAX_LINES, TruncatedBy, Truncation, format_size};
use crate::{Tool, ToolContext, ToolError, ToolOutput, ToolSettings, arguments, coerce};

#[derive(Debug)]
pub(crate) struct Bash {
    spec: ToolSpec,
    settings: ToolSettings,
}

impl Bash {
    pub fn new(settings: ToolSettings) -> Self {
        let spec = arguments::spec(
            "bash",
            &format!(
                "Run a command in a shell, in the working directory, without input. What it prints comes \
                 back together with what it prints to stderr; of long output you get the last {MAX_LINES} \
                 lines or {} KiB, and the name of a file with all of it.",
                MAX_BYTES / 1024
            ),
            &[
                ("command", "string", "The command line to run"),
                (
                    "timeout",
                    "number",
                    "Seconds after which the command is killed; without it, it may run for ever",
                ),
            ],
            &["command"],
        );
        Self { spec, settings }
    }

    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let command = arguments::text(&arguments, "command")?;
        let seconds = arguments::number(&arguments, "timeout").filter(|&seconds| seconds > 0.0);
        let output = Output::raw();
        let pace = output.pace();
        let options = ShellOptions {
            cwd: &context.cwd,
            settings: &self.settings,
            timeout: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            follower: Some(&pace),
        };
        if self.settings.send_start_update {
            (context.updates)(ToolOutput::default());
        }
        let progress = Mutex::new(Progress {
            output,
            context,
            interval: self.settings.update_interval,
            last_sent: None,
            unsent: false,
            withheld: false,
        });
        let locked = || progress.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ticks =
            tokio::time::interval(self.settings.update_interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let run = run_shell(command, options, &context.cancel, |chunk| {
            locked().push(chunk)
        });
        let mut run = std::pin::pin!(run);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut run => break outcome?,
                _ = ticks.tick() => locked().send_if_due(),
            }
        };
        let log = {
            let output = &mut locked().output;
            output.finish();
            output.log_file().clone()
        };
        log.finish(outcome == ShellOutcome::Aborted).await;
        let mut progress = locked();
        if progress.withheld {
            progress.send();
        }
        result(&progress.output, outcome, arguments.get("timeout"))
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(arguments, context).boxed()
    }
}

/// Sends the output so far: the first time at once, then at intervals.
struct Progress<'a> {
    output: Output,
    context: &'a ToolContext,
    interval: Duration,
    last_sent: Option<Instant>,
    unsent: bool,
    /// An update that was due waits for the log that it names.
    withheld: bool,
}

impl Progress<'_> {
    fn push(&mut self, chunk: &[u8]) {
        self.output.push(chunk);
        self.unsent = true;
        self.send_if_due();
    }

    fn send_if_due(&mut self) {
        let due = self
            .last_sent
            .is_none_or(|sent| sent.elapsed() >= self.interval);
        if !self.unsent || !due || self.output.is_empty() {
            return;
        }
        // The update names the log, which exists in a moment.
        self.withheld = self.output.log_file().is_opening();
        if !self.withheld {
            self.send();
        }
    }

    fn send(&mut self) {
        self.unsent = false;
        self.withheld = false;
        self.last_sent = Some(Instant::now());
        let tail = self.output.tail();
        let details = Value::Object(details(&self.output, &tail));
        let content = vec![Block::text(tail.content)];
        (self.context.updates)(ToolOutput {
            content,
            details: Some(details),
            terminate: false,
        });
    }
}

fn details(output: &Output, tail: &Truncation) -> Map<String, Value> {
    let mut details = Map::new();
    if tail.truncated {
        details.insert("truncation".into(), tail.to_value());
    }
    if let Some(path) = output.log_path() {
        details.insert("fullOutputPath".into(), path.to_string_lossy().into());
    }
    details
}

fn result(
    output: &Output,
    outcome: ShellOutcome,
    timeout: Option<&Value>,
) -> Result<ToolOutput, ToolError> {
    let tail = output.tail();
    let mut text = tail.content.clone();
    let shown_if_empty = matches!(outcome, ShellOutcome::Exited(_) | ShellOutcome::Signalled);
    if text.is_empty() && (shown_if_empty || tail.truncated) {
        text.push_str("(no output)");
    }
    if tail.truncated {
        text.push_str(&notice(output, &tail));
    }
    let ending = match outcome {
        ShellOutcome::Exited(0) | ShellOutcome::Signalled => {
            let details = details(output, &tail);
            let details = (!details.is_empty()).then_some(Value::Object(details));
            return Ok(ToolOutput {
                content: vec![Block::text(text)],
                details,
                terminate: false,
            });
        }
        ShellOutcome::Exited(code) => format!("Command exited with code {code}"),
        ShellOutcome::TimedOut => {
            let seconds = match timeout {
                Some(Value::Number(number)) => coerce::number_text(number),
                _ => String::new(),
            };
            format!("Command timed out after {seconds} seconds")
        }
        ShellOutcome::Aborted => "Command aborted".to_owned(),
    };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&ending);
    Err(ToolError(text))
}

/// Describes to the model which part of the output is missing, and the file that has all of it.
fn notice(output: &Output, tail: &Truncation) -> String {
    let total = tail.total_lines;
    let shown = if tail.last_line_partial {
        let (shown, line) = (
            format_size(tail.output_bytes),
            format_size(output.last_line_bytes()),
        );
        format!("last {shown} of line {total} (line is {line})")
    } else {
        let first = total - tail.output_lines + 1;
        let limit = match tail.truncated_by {
            Some(TruncatedBy::Bytes) => format!(" ({} limit)", format_size(tail.max_bytes)),
            _ => String::new(),
        };
        format!("lines {first}-{total} of {total}{limit}")
    };
    match output.log_path() {
        Some(path) => format!("\n\n[Showing {shown}. Full output: {}]", path.display()),
        None => format!("\n\n[Showing {shown}. The full output could not be saved.]"),
    }
}

/// The result of a command that the user ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BashOutcome {
    /// The end of its output, as plain text.
    pub output: String,
    /// Absent if it was killed.
    pub exit_code: Option<i32>,
    /// The command was killed.
    pub cancelled: bool,
    /// `output` is only a part.
    pub truncated: bool,
    /// A file with the whole output, if `output` is only a part.
    pub full_output_path: Option<String>,
}

/// Runs a command for the user rather than the model: plain text, no notices, and an exit code is
/// not an error. `follower` receives all output as it is printed.
pub async fn user_bash(
    command: &str,
    cwd: &Path,
    settings: &ToolSettings,
    follower: Option<Arc<dyn Follower>>,
    cancel: &CancellationToken,
) -> Result<BashOutcome, ToolError> {
    let mut output = Output::followed(follower, &settings.mask);
    let pace = output.pace();
    let options = ShellOptions {
        cwd,
        settings,
        timeout: None,
        follower: Some(&pace),
    };
    let outcome = run_shell(command, options, cancel, |chunk| output.push(chunk)).await?;
    output.finish();
    output
        .log_file()
        .finish(outcome == ShellOutcome::Aborted)
        .await;
    let tail = output.tail();
    let exit_code = match outcome {
        ShellOutcome::Exited(code) => Some(code),
        _ => None,
    };
    Ok(BashOutcome {
        output: tail.content,
        exit_code,
        cancelled: exit_code.is_none(),
        truncated: tail.truncated,
        full_output_path: output
            .log_path()
            .map(|path| path.to_string_lossy().into_owned()),
    })
}
