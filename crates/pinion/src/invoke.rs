//! `pinion invoke`: one call of a clip's command.

pub(crate) mod arguments;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use bytes::Bytes;
use pinion_connect::{Code, Failure as Refusal};
use pinion_filter::{Filter, Flow, Form, Layout, Problem, Texts};
use pinion_proto::hub::{HubError, InvokeRequest, InvokeResponse};
use pinion_text::harmless;

use self::arguments::{Input, Words};
use crate::clip::manifest;
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(crate) const VERB: Verb = Verb::new("pinion", &tables::clip::INVOKE, run);

/// Runs `invoke` with these arguments.
pub(crate) fn run_words(arguments: &[String]) -> Result<ExitCode, Failure> {
    VERB.run(arguments)
}

/// Runs `invoke` with text that becomes the member `stdin`.
pub(crate) fn run_with(arguments: &[String], piped: Option<String>) -> Result<ExitCode, Failure> {
    VERB.run_with(arguments, piped)
}

/// Reports whether `word` asks for help.
fn is_help(word: &str) -> bool {
    matches!(word, "--help" | "-h")
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let mut words = Words::read(&line.raw).map_err(|problem| line.wrong(&problem))?;
    if let Some(text) = &line.piped {
        words.take_text(text.clone());
    }
    let caller = Caller::of(line)?;
    if words.command.is_none() || words.wants_help {
        return describe(line, &caller, alias, &words);
    }
    call(line, &caller, alias, words)
}

/// Prints the description of a clip or of one of its commands.
fn describe(line: &Line, caller: &Caller, alias: &str, words: &Words) -> Result<ExitCode, Failure> {
    if !words.wants_help {
        return Err(line.wrong(&format!("say which command of {alias}")));
    }
    let mut manifest = caller::wait(manifest(caller, alias))?;
    if let Some(command) = &words.command {
        let names = manifest.commands.iter().map(|it| &*it.name);
        let meant = pinion_text::nearest(command, names).map(str::to_owned);
        let lists_any = !manifest.commands.is_empty();
        manifest.commands.retain(|it| it.name == *command.as_str());
        if lists_any && manifest.commands.is_empty() {
            let hint = meant.map(|name| format!("; did you mean \"{name}\"?"));
            return Err(Failure::failed(format!(
                "Error: clip \"{alias}\" has no command \"{command}\"{}",
                hint.unwrap_or_default()
            )));
        }
    }
    out(&crate::clip::described(&manifest))
}

fn call(line: &Line, caller: &Caller, alias: &str, words: Words) -> Result<ExitCode, Failure> {
    let stream = line.has("--stream") || words.stream;
    let mut printer = Printer {
        json: line.has("--json") || words.json,
        filter: None,
    };
    // Compiled before the call, which may have effects that cannot be undone.
    if let Some(code) = words.filter.as_deref().or(line.value("--jq")) {
        let ourselves = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let filter = Filter::compile_confined(&ourselves, code, printer.form());
        let wrong = |problem| line.wrong(&format!("--jq is not a filter: {problem}"));
        printer.filter = Some(filter.map_err(wrong)?);
    }
    caller::wait(async {
        let Input { command, input } = match words.needs_manifest() {
            true => {
                let manifest = manifest(caller, alias).await?;
                words.input(&manifest.commands)
            }
            false => words.input(&[]),
        }
        .map_err(|problem| line.wrong(&problem))?;
        let request = InvokeRequest {
            clip_name: alias.to_owned().into(),
            command: command.into(),
            input: input.into(),
            clip_token: line
                .value("--clip-token")
                .unwrap_or_default()
                .to_owned()
                .into(),
        };
        if !stream {
            let answer: InvokeResponse = caller.ask("Invoke", &request).await?;
            let end = printer.print(caller, answer).await?;
            return Ok(end.unwrap_or(ExitCode::SUCCESS));
        }
        let mut answers = caller.follow("Invoke", &request).await?;
        while let Some(answer) = answers.next().await.map_err(|it| caller.explain(it))? {
            if let Some(end) = printer.print(caller, answer).await? {
                return Ok(end);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Prints outputs.
struct Printer {
    /// Print texts in quotes too.
    json: bool,
    filter: Option<Filter>,
}

impl Printer {
    /// Returns the format of the filter's output.
    fn form(&self) -> Form {
        let is_terminal = std::io::stdout().is_terminal();
        Form {
            layout: match is_terminal {
                true => Layout::Indented,
                false => Layout::Compact,
            },
            texts: match (self.json, is_terminal) {
                (true, _) => Texts::Quoted,
                (false, true) => Texts::Shown(harmless),
                (false, false) => Texts::Plain,
            },
        }
    }

    /// Prints one output. Returns an exit code if the filter halted and the remaining outputs are not needed.
    async fn print(
        &self,
        caller: &Caller,
        answer: InvokeResponse,
    ) -> Result<Option<ExitCode>, Failure> {
        if let Some(error) = &answer.error {
            return Err(caller.explain(refusal(error)));
        }
        let Some(filter) = &self.filter else {
            let mut text = shown(&answer.output, self.json);
            text.push(b'\n');
            std::io::stdout().write_all(&text).map_err(unwritten)?;
            return Ok(None);
        };
        match filter.apply(answer.output.to_vec()).await {
            Ok(Flow::Next) => Ok(None),
            Ok(Flow::Halt(code)) => Ok(Some(ExitCode::from(u8::try_from(code).unwrap_or(1)))),
            Err(Problem::Failed(why)) => Err(Failure::failed(format!("Error: --jq: {why}"))),
            Err(Problem::Output(error)) => Err(unwritten(error)),
        }
    }
}

/// Returns a failure without a message if the reader of stdout has closed the pipe.
fn unwritten(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::quiet(),
        _ => error.into(),
    }
}

/// Converts a clip's error to a refusal.
pub(crate) fn refusal(error: &HubError) -> Refusal {
    let code = Code::all().find(|known| *error.code == *known.as_str());
    Refusal::new(code.unwrap_or(Code::Unknown), error.message.to_string())
}

/// Formats an output: texts without quotes, unless JSON is requested.
fn shown(output: &Bytes, json: bool) -> Vec<u8> {
    match serde_json::from_slice::<String>(output) {
        // Text of a clip must not control the terminal.
        Ok(text) if !json && std::io::stdout().is_terminal() => harmless(&text).into_bytes(),
        Ok(text) if !json => text.into_bytes(),
        _ => output.to_vec(),
    }
}
