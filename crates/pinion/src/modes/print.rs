//! The print mode (`-p`): prints only the last answer of one conversation.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_extensions::Mode;
use pinion_jsonl::stdio;
use pinion_pi::{Outcome, PrintListener};
use pinion_tui::StatusLine;

use super::build_engine;
use super::conversation::{converse, failed_answer, prompts};
use crate::cli::Flags;
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::ShutdownSignals;
use crate::{reader, runtime};

/// Prints the last answer of one conversation. Fails if that answer is missing or failed.
pub(crate) fn print(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let mut stdout = stdio::claim_stdout()?;
    let (printer, settled) = PrintListener::new();
    let prompts = prompts(&flags)?;
    let runtime = runtime::build()?;
    let status = StatusLine::on_terminal();
    let mut listeners: Vec<Arc<dyn Listener>> = vec![Arc::clone(&printer) as _];
    listeners.extend(status.clone().map(|status| status as _));
    let basis = Basis::read(&flags)?;
    let shared = Shared::new(&basis.dirs);
    let engine = build_engine(
        &runtime,
        program,
        &flags,
        basis,
        listeners,
        Audience::none(Mode::Print),
        &shared,
    )?;
    if let (Some(status), Some(model)) = (&status, &engine.config.model) {
        status.set_model(model);
    }
    let mut signals = ShutdownSignals::listen(&runtime)?;
    let gone = reader::gone(stdout.try_clone()?);
    let outcome = converse(
        &runtime,
        &mut signals,
        engine,
        &shared,
        prompts,
        settled,
        gone,
    );
    if let Some(status) = status {
        status.end();
    }
    let outcome = outcome?;
    runtime.shutdown_background();
    match outcome {
        Outcome::Ended(code) => Ok(ExitCode::from(code)),
        Outcome::NothingAsked => Ok(ExitCode::SUCCESS),
        Outcome::Answered => print_answer(&printer, &shared, &mut stdout),
    }
}

fn print_answer(
    printer: &PrintListener,
    shared: &Shared,
    stdout: &mut File,
) -> Result<ExitCode, Failure> {
    if let Some(failure) = failed_answer(printer, shared) {
        return Err(failure);
    }
    let last = printer.last();
    let Some(answer) = last.as_deref().and_then(|message| message.as_assistant()) else {
        return Ok(ExitCode::FAILURE);
    };
    let texts = answer.content.iter().filter_map(|block| block.as_text());
    let lines: String = texts.map(|text| format!("{text}\n")).collect();
    stdout.write_all(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
