//! `pinion invoke`: one call of a clip's command.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use bytes::Bytes;
use pinion_clip::manifest::{Arguments, CommandInput};
use pinion_filter::{Filter, Flow, Form};
use pinion_hub_client::{commands, hub_error, keep_command};
use pinion_proto::hub::{InvokeRequest, InvokeResponse};

use crate::clip::manifest;
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless;

pub(crate) const VERB: Verb = Verb::new("pinion", &tables::clip::INVOKE, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let mut arguments = Arguments::read(&line.raw).map_err(|failure| line.wrong(failure))?;
    if let Some(text) = &line.piped {
        arguments.take_text(text.clone());
    }
    let caller = Caller::of(line)?;
    if arguments.command.is_none() || arguments.wants_help {
        return describe(line, &caller, alias, &arguments);
    }
    call(line, &caller, alias, arguments)
}

/// Prints the description of a clip or of one of its commands.
fn describe(
    line: &Line,
    caller: &Caller,
    alias: &str,
    arguments: &Arguments,
) -> Result<ExitCode, Failure> {
    if !arguments.wants_help {
        return Err(line.wrong(format!("name which command of {alias} to call")));
    }
    let mut manifest = manifest(caller, alias)?;
    if let Some(command) = &arguments.command {
        keep_command(&mut manifest, alias, command)?;
    }
    out(&crate::clip::described(&manifest))
}

fn call(
    line: &Line,
    caller: &Caller,
    alias: &str,
    arguments: Arguments,
) -> Result<ExitCode, Failure> {
    let stream = line.has("--stream") || arguments.stream;
    let mut printer = Printer {
        json: line.has("--json") || arguments.json,
        filter: None,
    };
    // Compiled before the call, which may have effects that cannot be undone.
    if let Some(code) = arguments.filter.as_deref().or(line.value("--jq")) {
        let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let is_terminal = std::io::stdout().is_terminal();
        let form = Form::for_output(is_terminal, printer.json, harmless);
        let filter = Filter::compile_confined(&program, code, form);
        let wrong = |problem| line.wrong(format!("--jq is not a filter: {problem}"));
        printer.filter = Some(filter.map_err(wrong)?);
    }
    caller::wait(async {
        let commands = if arguments.needs_manifest() {
            let manifest = caller.client().clip_manifest(alias);
            commands(&caller.explained(manifest).await?.commands)
        } else {
            Vec::new()
        };
        let input = arguments.input(&commands, std::io::stdin().lock());
        let CommandInput { command, input } = input.map_err(|failure| line.wrong(failure))?;
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
    /// Prints one output. Returns an exit code if the filter halted and the remaining outputs are not needed.
    async fn print(
        &self,
        caller: &Caller,
        answer: InvokeResponse,
    ) -> Result<Option<ExitCode>, Failure> {
        if let Some(error) = &answer.error {
            return Err(caller.explain(hub_error(error)));
        }
        let Some(filter) = &self.filter else {
            let mut text = shown(&answer.output, self.json);
            text.push(b'\n');
            let written = std::io::stdout().write_all(&text);
            written.map_err(Failure::unwritten)?;
            return Ok(None);
        };
        Ok(match filter.apply(answer.output.to_vec()).await? {
            Flow::Next => None,
            Flow::Halt(code) => Some(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        })
    }
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
