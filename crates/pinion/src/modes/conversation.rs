//! One conversation from its prompts to its last answer, for the modes without a client that sends further prompts.

use std::fs::File;
use std::io::IsTerminal;

use pinion_config::FileArguments;
use pinion_jsonl::{Queue, Writer, WriterEnd};
use pinion_message::StopReason;
use pinion_pi::{Out, Outcome, PrintListener, Projection, Prompts, SETTLE_TIMEOUT, Settled};
use tokio::runtime::Runtime;

use super::finish_writing;
use crate::cli::Flags;
use crate::engine::{Engine, Shared};
use crate::failure::Failure;
use crate::reader;
use crate::signals::ShutdownSignals;
use crate::stdin::{Wanted, read_prompt};

/// Returns the failure if the last answer is missing, failed or was aborted. If a server could not be reached, the
/// second line names the server and the reason.
pub(super) fn failed_answer(printer: &PrintListener, shared: &Shared) -> Option<Failure> {
    let last = printer.last();
    let Some(answer) = last.as_deref().and_then(|message| message.as_assistant()) else {
        return Some(Failure::failed("the model gave no answer."));
    };
    if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let error = answer.error_message.clone();
    let mut error = error.unwrap_or_else(|| format!("Request {}", answer.stop_reason.as_str()));
    if answer.stop_reason == StopReason::Error
        && let Some(unreachable) = shared.providers.http().unreachable()
    {
        error.push_str(&format!("\n{unreachable}"));
    }
    Some(Failure::failed(error).bare())
}

/// The output of a mode that prints events as lines.
pub(super) struct Lines {
    pub stdout: File,
    pub projection: Projection,
    pub queue: Queue<Out>,
}

/// Runs the conversation while its events are printed, and waits until the reader has read them.
pub(super) fn print_conversation(
    runtime: Runtime,
    engine: Engine,
    shared: &Shared,
    prompts: Prompts,
    settled: Settled,
    lines: Lines,
) -> Result<Outcome, Failure> {
    let Lines {
        stdout,
        projection,
        queue,
    } = lines;
    let watched = stdout.try_clone()?;
    let writer = Writer::spawn(stdout, projection, queue.clone())?;
    let mut signals = ShutdownSignals::listen(&runtime)?;
    let broken = async {
        tokio::select! {
            () = reader::gone(watched) => {}
            () = queue.broken() => {}
        }
    };
    let outcome = converse(
        &runtime,
        &mut signals,
        engine,
        shared,
        prompts,
        settled,
        broken,
    );
    queue.close();
    let end = match outcome {
        Ok(Outcome::Ended(code)) => {
            writer.join_within(SETTLE_TIMEOUT);
            Err(code)
        }
        _ => finish_writing(&runtime, &mut signals, writer),
    };
    runtime.shutdown_background();
    match (outcome?, end) {
        (_, Err(code)) => Ok(Outcome::Ended(code)),
        (_, Ok(WriterEnd::Broken(error))) => {
            Err(Failure::failed("standard output").caused_by(error))
        }
        (outcome, Ok(WriterEnd::Complete)) => Ok(outcome),
    }
}

/// Runs the conversation until its last answer, or until a signal, a companion or the completion of `unread` ends it.
pub(super) fn converse(
    runtime: &Runtime,
    signals: &mut ShutdownSignals,
    engine: Engine,
    shared: &Shared,
    prompts: Prompts,
    settled: Settled,
    unread: impl Future<Output = ()>,
) -> Result<Outcome, Failure> {
    let Engine {
        config, companions, ..
    } = engine;
    let interrupted = async {
        tokio::select! {
            () = unread => 1,
            code = signals.received() => code,
        }
    };
    let conversation = pinion_pi::converse(config, &*companions, prompts, settled, interrupted);
    let outcome = runtime.block_on(conversation);
    pinion_process::kill_all();
    shared.preferences.flush();
    Ok(outcome?)
}

/// Returns the prompts. Standard input and files are prepended to the first message. Fails if there is no prompt.
pub(super) fn prompts(flags: &Flags) -> Result<Prompts, Failure> {
    let files = files(flags)?;
    let has_prompt = !flags.prompt.messages.is_empty() || !files.text.is_empty();
    let no_prompt = || {
        Failure::usage("there is no prompt.")
            .hint("Give one as an argument or on standard input, or see `pinion --help`.")
    };
    if !has_prompt && !flags.prompt.stdin && std::io::stdin().is_terminal() {
        return Err(no_prompt());
    }
    let wanted = if has_prompt && !flags.prompt.stdin {
        Wanted::IfPresent
    } else {
        Wanted::Required
    };
    let piped = read_prompt(wanted)?;
    let prompts = joined(flags, piped, files);
    if prompts.texts.is_empty() {
        return Err(no_prompt());
    }
    Ok(prompts)
}

/// Returns the first prompts of a chat, with files prepended to the first message. May be empty.
pub(super) fn opening(flags: &Flags) -> Result<Prompts, Failure> {
    Ok(joined(flags, None, files(flags)?))
}

fn files(flags: &Flags) -> Result<FileArguments, Failure> {
    let cwd = std::env::current_dir()?;
    let resolve = |path: &str| pinion_tools::resolve_existing_path(path, &cwd);
    let mut prepare = crate::commands::prepare_image;
    Ok(FileArguments::read(
        &flags.prompt.files,
        &resolve,
        &mut prepare,
    )?)
}

fn joined(flags: &Flags, piped: Option<String>, files: FileArguments) -> Prompts {
    let mut texts = flags.prompt.messages.clone();
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
    Prompts {
        texts,
        images: files.images,
    }
}
