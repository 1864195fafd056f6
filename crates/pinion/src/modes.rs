//! The ways a run talks: RPC, events as JSON lines, or just the answer.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::{Listener, Session};
use pinion_config::FileArguments;
use pinion_jsonl::{Coalesce, DEFAULT_LINE_LIMIT, Queue, Writer, WriterEnd, read_lines, stdio};
use pinion_message::StopReason;
use pinion_pi::{Classic, Out, PiListener, PrintListener, Prompts, Rpc, RpcEnd, ask_all};

use crate::cli::{Flags, OnEof};
use crate::engine::{self, Engine};
use crate::failure::Failure;
use crate::program::Program;
use crate::stdin::{Wanted, read_prompt};
use crate::{runtime, signals};

/// Serves a client over lines of JSON until it closes its end.
pub(crate) fn rpc(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    if !flags.files.is_empty() {
        return Err(Failure::failed("Error: @file arguments are not supported in RPC mode"));
    }
    let stdout = stdio::claim_stdout()?;
    let queue = queue(&flags);
    let listener: Arc<dyn Listener> = Arc::new(PiListener::new(queue.clone()));
    let engine = engine::build(program, &flags, vec![listener])?;
    let on_eof = flags.on_eof;
    drop(flags);
    let writer = Writer::spawn(stdout, Classic::default(), queue.clone())?;
    let input = read_lines(std::io::stdin(), DEFAULT_LINE_LIMIT);

    let Engine { config, preferences } = engine;
    let runtime = runtime::build()?;
    let code = runtime.block_on(async {
        let (session, task) = Session::spawn(config);
        let rpc = Rpc { session, out: queue.clone() };
        let served = async {
            let end = rpc.serve(input).await;
            if end == RpcEnd::EndOfInput && on_eof == OnEof::Drain {
                // Every handle is gone: the session ends when its work has.
                tokio::select! {
                    result = task => drop(result),
                    () = queue.broken() => {}
                }
            }
            Ok(0)
        };
        tokio::select! {
            code = served => code,
            code = signals::terminated() => code,
        }
    })?;
    pinion_tools::kill_all();
    preferences.flush();
    queue.close();
    if code == 0 {
        writer.join();
    }
    // Threads that still wait for something must not keep the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

/// Prints every event of one conversation as a line of JSON.
pub(crate) fn json(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let stdout = stdio::claim_stdout()?;
    let queue = queue(&flags);
    let (printer, settled) = PrintListener::new();
    let listeners: Vec<Arc<dyn Listener>> =
        vec![Arc::new(PiListener::new(queue.clone())), Arc::clone(&printer) as _];
    let prompts = prompts(&flags)?;
    let engine = engine::build(program, &flags, listeners)?;
    let mut header = engine.config.store.header().json().to_vec();
    header.push(b'\n');
    queue.push(Out::Record(header));
    let writer = Writer::spawn(stdout, Classic::default(), queue.clone())?;
    let outcome = converse(engine, prompts, settled, Some(&queue));
    queue.close();
    let end = writer.join();
    let code = outcome?;
    if let WriterEnd::Broken(error) = end {
        return Err(Failure::failed(format!("Error: standard output: {error}")));
    }
    Ok(ExitCode::from(code))
}

/// Prints the last answer of one conversation.
pub(crate) fn print(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let mut stdout = stdio::claim_stdout()?;
    let (printer, settled) = PrintListener::new();
    let prompts = prompts(&flags)?;
    let engine = engine::build(program, &flags, vec![Arc::clone(&printer) as _])?;
    let code = converse(engine, prompts, settled, None)?;
    if code != 0 {
        return Ok(ExitCode::from(code));
    }
    print_answer(&printer, &mut stdout)
}

fn print_answer(printer: &PrintListener, stdout: &mut File) -> Result<ExitCode, Failure> {
    let last = printer.last();
    let Some(answer) = last.as_deref().and_then(|message| message.as_assistant()) else {
        return Err(Failure::failed("Error: the model gave no answer."));
    };
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        let error = answer.error_message.clone();
        let error = error.unwrap_or_else(|| format!("Request {}", answer.stop_reason.as_str()));
        return Err(Failure::failed(error));
    }
    let texts = answer.content.iter().filter_map(|block| block.as_text());
    let lines: String = texts.map(|text| format!("{text}\n")).collect();
    stdout.write_all(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn queue(flags: &Flags) -> Queue<Out> {
    Queue::new(if flags.no_coalesce { Coalesce::Never } else { Coalesce::WhenBehind })
}

/// Runs the conversation; gives the exit code of a signal, or 0.
fn converse(
    engine: Engine,
    prompts: Prompts,
    mut settled: tokio::sync::mpsc::UnboundedReceiver<()>,
    output: Option<&Queue<Out>>,
) -> Result<u8, Failure> {
    let runtime = runtime::build()?;
    let Engine { config, preferences } = engine;
    let result = runtime.block_on(async {
        let (session, task) = Session::spawn(config);
        let asked = async {
            let result = ask_all(&session, prompts, &mut settled).await;
            drop(session);
            // The session's last writes.
            let _ = task.await;
            result.map(|()| 0).map_err(|error| Failure::failed(error.to_string()))
        };
        let broken = async {
            match output {
                Some(queue) => queue.broken().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = asked => result,
            () = broken => Ok(1),
            code = signals::terminated() => Ok(code?),
        }
    });
    pinion_tools::kill_all();
    preferences.flush();
    runtime.shutdown_background();
    result
}

/// What is said: files and standard input before the first message.
fn prompts(flags: &Flags) -> Result<Prompts, Failure> {
    let cwd = std::env::current_dir()?;
    let resolve = |path: &str| pinion_tools::resolve_existing_path(path, &cwd);
    let mut prepare = crate::commands::prepare_image;
    let files = FileArguments::read(&flags.files, &resolve, &mut prepare)
        .map_err(|error| Failure::failed(format!("Error: {error}")))?;
    let has_prompt = !flags.messages.is_empty() || !files.text.is_empty();
    let wanted =
        if has_prompt && !flags.stdin { Wanted::IfPresent } else { Wanted::Required };
    let piped = read_prompt(wanted)?;
    let mut texts = flags.messages.clone();
    let mut first: Vec<String> = Vec::new();
    first.extend(piped);
    if !files.text.is_empty() {
        first.push(files.text);
    }
    if !first.is_empty() {
        if !texts.is_empty() {
            first.push(texts.remove(0));
        }
        texts.insert(0, first.join("\n"));
    }
    if texts.is_empty() {
        return Err(Failure::usage(
            "Error: there is no prompt. Give one as an argument or on standard input, or see `pinion --help`.",
        ));
    }
    Ok(Prompts { texts, images: files.images })
}
