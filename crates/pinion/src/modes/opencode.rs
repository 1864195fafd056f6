//! `run --format json`: one conversation in the lines that opencode prints, for harnesses written for those.

mod lines;

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_jsonl::{Coalesce, Queue, stdio};
use pinion_pi::{Additions, Dialect, Out, PrintListener, Projection};

use self::lines::OpencodeLines;
use super::conversation::{Lines, Outcome, failed_answer, prompts, tell};
use super::the_engine;
use crate::cli::{self, Action, Flags};
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::runtime;

/// Runs one conversation and prints opencode's lines.
pub(crate) fn opencode(words: Vec<String>) -> Result<ExitCode, Failure> {
    let flags = flags(words)?;
    let stdout = stdio::claim_stdout()?;
    let prompts = prompts(&flags)?;
    let queue: Queue<Out> = Queue::new(Coalesce::Never);
    let (printer, settled) = PrintListener::new();
    let lines = Arc::new(OpencodeLines::new(queue.clone()));
    let listeners: Vec<Arc<dyn Listener>> =
        vec![Arc::clone(&lines) as _, Arc::clone(&printer) as _];
    let basis = Basis::read(&flags)?;
    let runtime = runtime::build()?;
    let shared = Shared::new(&basis.dirs);
    let audience = Audience::none();
    let engine = the_engine(
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
    match tell(runtime, engine, &shared, prompts, settled, lines)? {
        Outcome::Ended(code) => Ok(ExitCode::from(code)),
        Outcome::NothingAsked => Ok(ExitCode::SUCCESS),
        Outcome::Answered => failed_answer(&printer, &shared).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// Translates opencode's flags to pinion's; pinion's own flags pass unchanged.
fn flags(words: Vec<String>) -> Result<Box<Flags>, Failure> {
    let mut ours = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => {
                (flag.to_owned(), Some(value.to_owned()))
            }
            _ => (word.clone(), None),
        };
        let mut value = || {
            let value = attached.clone().or_else(|| words.next());
            value.ok_or_else(|| Failure::usage(format!("Error: {flag} needs a value after it.")))
        };
        match flag.as_str() {
            "--format" => match value()?.as_str() {
                "json" => {}
                other => {
                    return Err(Failure::usage(format!(
                        "Error: --format {other} is unknown; use json. For just the answer, use pinion -p."
                    )));
                }
            },
            "-m" => ours.extend(["--model".to_owned(), value()?]),
            "-f" | "--file" => ours.push(format!("@{}", value()?)),
            "--title" => ours.extend(["--name".to_owned(), value()?]),
            "--dir" => {
                let directory = value()?;
                std::env::set_current_dir(&directory).map_err(|error| {
                    Failure::usage(format!("Error: --dir {directory}: {error}"))
                })?;
            }
            "--" => {
                ours.push(word);
                ours.extend(words.by_ref());
            }
            _ => ours.push(word),
        }
    }
    match cli::parse(Program::Pinion, ours)? {
        Action::Run(mut flags) => {
            flags.decide_unknown(Program::Pinion)?;
            // opencode joins its arguments to one prompt.
            if flags.messages.len() > 1 {
                flags.messages = vec![flags.messages.join(" ")];
            }
            Ok(flags)
        }
        _ => Err(Failure::usage(
            "Error: run --format json runs a prompt. See `pinion run --format json --help`.",
        )),
    }
}
