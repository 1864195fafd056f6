//! The JSON mode: prints every event of one conversation as a line of JSON.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_extensions::Mode;
use pinion_jsonl::{Queue, stdio};
use pinion_pi::{Out, Outcome, PiListener, PrintListener, Projection};

use super::conversation::{Lines, failed_answer, print_conversation, prompts};
use super::{build_engine, coalesce};
use crate::cli::Flags;
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::runtime;

pub(crate) fn json(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let stdout = stdio::claim_stdout()?;
    let queue: Queue<Out> = Queue::new(coalesce(&flags));
    let (printer, settled) = PrintListener::new();
    let basis = Basis::read(&flags)?;
    let dialect = basis.dialect;
    let listeners: Vec<Arc<dyn Listener>> = vec![
        Arc::new(PiListener::new(queue.clone(), dialect)),
        Arc::clone(&printer) as _,
    ];
    let prompts = prompts(&flags)?;
    let runtime = runtime::build()?;
    let shared = Shared::new(&basis.dirs);
    let engine = build_engine(
        &runtime,
        program,
        &flags,
        basis,
        listeners,
        Audience::none(Mode::Json),
        &shared,
    )?;
    let mut header = engine.config.store.header().json().to_vec();
    header.push(b'\n');
    queue.push(Out::Record(header));
    let projection = Projection::new(dialect, engine.companions.additions());
    let lines = Lines {
        stdout,
        projection,
        queue,
    };
    match print_conversation(runtime, engine, &shared, prompts, settled, lines)? {
        Outcome::Ended(code) => Ok(ExitCode::from(code)),
        // pi exits with 0 whether or not the answer failed; the failure is in the events.
        _ if program == Program::Pi => Ok(ExitCode::SUCCESS),
        Outcome::NothingAsked => Ok(ExitCode::SUCCESS),
        Outcome::Answered => failed_answer(&printer, &shared).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}
