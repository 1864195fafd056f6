//! The bash tool, and commands that the user runs without the model.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pinion_message::{Block, ToolSpec};
use pinion_process::Confinement;
use pinion_sandbox::{NetworkMode, SandboxReport};
use serde_json::{Map, Value, json};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::output::Output;
use crate::shell::{Follower, ShellOptions, ShellOutcome, run_reported, run_shell};
use crate::truncate::{MAX_BYTES, MAX_LINES, TruncatedBy, Truncation, format_size};
use crate::{
    ErrorWords, ResultForm, Tool, ToolContext, ToolError, ToolOutput, ToolSettings, arguments,
    coerce,
};

#[derive(Debug)]
pub(crate) struct Bash {
    spec: ToolSpec,
    settings: ToolSettings,
    guidelines: Vec<String>,
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
        let guidelines = guidelines(&settings.confinement);
        Self {
            spec,
            settings,
            guidelines,
        }
    }

    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let command = arguments::text(&arguments, "command")?;
        let seconds = arguments::number(&arguments, "timeout").filter(|&seconds| seconds > 0.0);
        let form = self.settings.form;
        let mut output = Output::raw().in_form(form);
        if let Some(follower) = &context.follower {
            output = output.followed_by(Arc::clone(follower), &self.settings.mask);
        }
        let settings = self.settings_with(&context.env);
        let begun = Instant::now();
        let pace = output.pace();
        let options = ShellOptions {
            cwd: &context.cwd,
            settings: &settings,
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
        let run = run_reported(command, options, &context.cancel, |chunk| {
            locked().push(chunk)
        });
        let mut run = std::pin::pin!(run);
        let (outcome, report) = loop {
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
        let timeout = arguments.get("timeout");
        let result = result(&progress.output, outcome, timeout, begun.elapsed(), form);
        match report {
            Some(report) => with_report(result, &report),
            None => result,
        }
    }

    /// Returns the settings with further variables for commands.
    fn settings_with(&self, env: &[(String, String)]) -> Cow<'_, ToolSettings> {
        if env.is_empty() {
            return Cow::Borrowed(&self.settings);
        }
        let mut settings = self.settings.clone();
        settings.env.extend_from_slice(env);
        Cow::Owned(settings)
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn error_words(&self) -> ErrorWords {
        self.settings.form.error_words()
    }

    fn constrained_sampling(&self) -> Option<Value> {
        self.settings.form.constrained_sampling()
    }

    fn guidelines(&self) -> &[String] {
        &self.guidelines
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(arguments, context).boxed()
    }
}

/// Describes the sandbox of commands to the model.
fn guidelines(confinement: &Confinement) -> Vec<String> {
    let Confinement::Confined(policy) = confinement else {
        return Vec::new();
    };
    let writable: Vec<String> = policy
        .writable
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    let writable = if writable.is_empty() {
        "$TMPDIR only".to_owned()
    } else {
        format!("{} and $TMPDIR only", writable.join(", "))
    };
    let network = match policy.network.mode {
        NetworkMode::Open => "The network is open.",
        NetworkMode::Proxy | NetworkMode::None => {
            "There is no network but servers of the commands themselves on 127.0.0.1."
        }
    };
    vec![format!(
        "Commands run in a sandbox ({}). They write to {writable}; git hooks, .git/config and files that configure \
         editors and agents are protected, and secrets are hidden. {network} A refusal is reported after the output; \
         do not try to get around it.",
        policy.mode.name()
    )]
}

/// Adds the denials to a result: a sentence for the model, and records for programs. A failure with records is a whole
/// result, because a failure that is only a text has no details.
fn with_report(
    result: Result<ToolOutput, ToolError>,
    report: &SandboxReport,
) -> Result<ToolOutput, ToolError> {
    let mut output = result.unwrap_or_else(|error| ToolOutput {
        is_error: true,
        ..ToolOutput::text(error.0)
    });
    let sentence = report.sentence();
    match output.content.first_mut() {
        Some(Block::Text(block)) => {
            block.text.push_str("\n\n");
            block.text.push_str(&sentence);
        }
        _ => output.content.push(Block::text(sentence)),
    }
    let details = output.details.get_or_insert_with(|| json!({}));
    if let (Value::Object(details), Ok(report)) = (details, serde_json::to_value(report)) {
        details.insert("sandbox".into(), report);
    }
    Ok(output)
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
            ..ToolOutput::default()
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
    duration: Duration,
    form: ResultForm,
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
                details,
                structured_content: form
                    .is_structured()
                    .then(|| structured(output, outcome, duration)),
                ..ToolOutput::text(text)
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
    if !form.is_structured() || !matches!(outcome, ShellOutcome::Exited(_)) {
        return Err(ToolError(text));
    }
    let details = details(output, &tail);
    Ok(ToolOutput {
        details: (!details.is_empty()).then_some(Value::Object(details)),
        structured_content: Some(structured(output, outcome, duration)),
        is_error: true,
        ..ToolOutput::text(text)
    })
}

/// Returns the result of a command as data for programs.
fn structured(output: &Output, outcome: ShellOutcome, duration: Duration) -> Value {
    let (text, is_whole) = output.window();
    let mut structured = json!({"output": text, "truncated": !is_whole});
    if let ShellOutcome::Exited(code) = outcome {
        structured["exit_code"] = code.into();
    }
    structured["wall_time_seconds"] = duration.as_secs_f64().into();
    if let Some(path) = output.log_path().filter(|_| !is_whole) {
        structured["full_output_path"] = path.to_string_lossy().into();
    }
    structured
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
    let mut output = Output::followed(follower, &settings.mask).in_form(settings.form);
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
