//! Every event of one conversation as a line of JSON.

use std::process::ExitCode;
use std::sync::Arc;

use pinion_agent::Listener;
use pinion_jsonl::{Queue, Writer, WriterEnd, stdio};
use pinion_pi::{Out, PiListener, PrintListener};

use super::conversation::{Outcome, converse, failed_answer, prompts};
use super::{LAST_WORDS, coalesce, last_words, projection, the_engine};
use crate::cli::Flags;
use crate::engine::{Basis, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;
use crate::signals::Ending;
use crate::{reader, runtime};

/// Prints every event of one conversation as a line of JSON.
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
    let engine = the_engine(
        &runtime,
        program,
        &flags,
        basis,
        listeners,
        Audience::none(),
        &shared,
    )?;
    let mut header = engine.config.store.header().json().to_vec();
    header.push(b'\n');
    queue.push(Out::Record(header));
    let watched = stdout.try_clone()?;
    let writer = Writer::spawn(stdout, projection(dialect, &engine), queue.clone())?;
    let mut ending = Ending::listen(&runtime)?;
    let broken = async {
        tokio::select! {
            () = reader::gone(watched) => {}
            () = queue.broken() => {}
        }
    };
    let outcome = converse(
        &runtime,
        &mut ending,
        engine,
        &shared,
        prompts,
        settled,
        broken,
    );
    queue.close();
    let end = match outcome {
        Ok(Outcome::Ended(code)) => {
            writer.join_within(LAST_WORDS);
            Err(code)
        }
        _ => last_words(&runtime, &mut ending, writer),
    };
    runtime.shutdown_background();
    match (outcome?, end) {
        (_, Err(code)) => Ok(ExitCode::from(code)),
        (_, Ok(WriterEnd::Broken(error))) => {
            Err(Failure::failed(format!("Error: standard output: {error}")))
        }
        // pi ends with 0 whatever became of the answer, which is in the events.
        (_, Ok(WriterEnd::Complete)) if program == Program::Pi => Ok(ExitCode::SUCCESS),
        (Outcome::NothingAsked, Ok(WriterEnd::Complete)) => Ok(ExitCode::SUCCESS),
        (_, Ok(WriterEnd::Complete)) => failed_answer(&printer).map_or(Ok(ExitCode::SUCCESS), Err),
    }
}
