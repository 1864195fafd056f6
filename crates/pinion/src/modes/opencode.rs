//! `run --format json`: one conversation in the lines that opencode prints, for harnesses written for those.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_extensions::Mode;
use pinion_fleet::FailureKind;
use pinion_jsonl::{Coalesce, Queue, stdio};
use pinion_pi::{
    Additions, Dialect, OpencodeError, OpencodeLines, Out, Outcome, PrintListener, Projection,
};

use super::build_engine;
use super::conversation::{Lines, failed_answer, print_conversation, prompts};
use crate::cli::{self, Flags};
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::log;
use crate::program::Program;
use crate::runtime;

/// Runs one conversation and prints opencode's lines.
pub(crate) fn opencode(words: Vec<String>) -> Result<ExitCode, Failure> {
    let flags = cli::parse_run(words)?;
    // Before --dir changes the directory of a relative --log-file.
    log::start(flags.log.clone())?;
    let flags = with_opencodes(flags)?;
    let stdout = stdio::claim_stdout()?;
    let prompts = prompts(&flags)?;
    let queue: Queue<Out> = Queue::new(Coalesce::Never);
    let (printer, settled) = PrintListener::new();
    let lines = Arc::new(OpencodeLines::new(queue.clone(), classify));
    let listeners: Vec<Arc<dyn Listener>> =
        vec![Arc::clone(&lines) as _, Arc::clone(&printer) as _];
    let basis = Basis::read(&flags)?;
    let runtime = runtime::build()?;
    let shared = Shared::new(&basis.dirs);
    let audience = Audience::none(Mode::Json);
    let engine = build_engine(
        &runtime,
        Program::Pinion,
        &flags,
        basis,
        listeners,
        audience,
        &shared,
    )?;
    lines.set_session(engine.config.store.id());
    let projection = Projection::new(Dialect::Modern, Additions::None);
    let lines = Lines {
        stdout,
        projection,
        queue,
    };
    match print_conversation(runtime, engine, &shared, prompts, settled, lines)? {
        Outcome::Ended(code) => Ok(ExitCode::from(code)),
        Outcome::NothingAsked => Ok(ExitCode::SUCCESS),
        Outcome::Answered => failed_answer(&printer, &shared).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// Applies the flags that are opencode's.
fn with_opencodes(mut flags: Flags) -> Result<Flags, Failure> {
    let line = &mut flags.prompt;
    let mut files = Vec::new();
    for (flag, value) in line.flags() {
        match (flag, value) {
            ("--format", Some(format)) if format != "json" => {
                let problem = format!("--format {format} is unknown; use json.");
                return Err(Failure::usage(problem).hint("For just the answer, use pinion -p."));
            }
            ("--dir", Some(directory)) => {
                std::env::set_current_dir(directory).map_err(|error| {
                    Failure::usage(format!("--dir {directory}")).caused_by(error)
                })?;
            }
            ("--file", Some(file)) => files.push(file.to_owned()),
            _ => {}
        }
    }
    line.files.append(&mut files);
    flags.decide_unknown(Program::Pinion)?;
    // opencode joins its arguments to one prompt.
    let messages = &mut flags.prompt.messages;
    if messages.len() > 1 {
        *messages = vec![messages.join(" ")];
    }
    Ok(flags)
}

/// Derives the kind of a failure from its message.
fn classify(message: &str) -> OpencodeError {
    match pinion_fleet::classify_text(message) {
        FailureKind::ProviderAuth => OpencodeError::ProviderAuth,
        FailureKind::ContextOverflow => OpencodeError::ContextOverflow,
        FailureKind::Aborted => OpencodeError::Aborted,
        FailureKind::Api { status, retryable } => OpencodeError::Api { status, retryable },
        _ => OpencodeError::Unknown,
    }
}
