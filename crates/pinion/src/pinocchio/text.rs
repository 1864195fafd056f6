//! A run for people and scripts: the answer as it arrives, or every event as JSON or YAML. Frames are made only for a
//! store: the file of `--debug-events-jsonl`, or a timeline. A user who reads the answer on a terminal may continue
//! in the chat.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use pinion_history::{BlockKind, Turn};
use pinion_jsonl::{Coalesce, Queue, Writer, WriterEnd, stdio};
use pinion_pinocchio::{Closing, ErrorCode, Metadata, RunEnd, Text, TextFormat, TextPrinter};
use tokio_util::sync::CancellationToken;

use super::conversation::{Conversation, Unanswered};
use super::job::Job;
use super::kept::KeptFrames;
use super::options::{Asking, Detail, Output};
use super::question::{self, Wish};
use super::{End, chat, conclude, leave};
use crate::failure::Failure;
use crate::modes::last_words;
use crate::signals::Ending;
use crate::{reader, runtime};

/// Runs a command once and prints the answer or the events.
pub(super) fn run(mut job: Job, output: Output) -> Result<ExitCode, Failure> {
    let failed = |error: String| Failure::failed(format!("Error: {error}"));
    let mut stores = job.open_stores().map_err(failed)?;
    let asks = match job.options.asking {
        Asking::Never => false,
        Asking::OnTerminal => std::io::stdout().is_terminal(),
        Asking::Always => true,
    };
    let history = match asks {
        true => chat::history(&job, &mut stores).map_err(failed)?,
        false => Vec::new(),
    };
    let stdout = stdio::claim_stdout()?;
    let runtime = runtime::build()?;
    let mut ending = Ending::listen_to_all(&runtime)?;
    let frames = KeptFrames::begin(&mut job, stores.timeline.take())?;
    let runner = match job.runner(&runtime) {
        Ok(runner) => runner,
        Err(error) => {
            let error = format!("failed to create engine: {error}");
            if let Some(frames) = frames {
                frames.fail(ErrorCode::EngineInitFailed, &error);
            }
            return Err(failed(error));
        }
    };
    let turn = job.first_turn(stores.resumed.take());
    let screen = Queue::new(Coalesce::Never);
    // Frames in a file are for debugging; then pinion prints only the answer.
    let shows_answer = job.options.debug_events.is_some();
    let mut queues = vec![screen.clone()];
    if shows_answer {
        queues.clear();
    }
    queues.extend(frames.iter().map(KeptFrames::queue));
    let mut conversation = Conversation {
        session_id: job.session_id.clone(),
        base: job.seed.clone(),
        turns: stores.turns.take(),
        queues,
        patch_mode: job.options.patch_mode,
        listeners: Vec::new(),
        unanswered: Unanswered::Forgotten,
    };
    let watched = stdout.try_clone()?;
    let mut answer = stdout.try_clone()?;
    let printer = printer(output, job.options.detail);
    let writer = Writer::spawn(stdout, printer, screen.clone())?;
    let (run_end, interrupted) = runtime.block_on(async {
        let stop = CancellationToken::new();
        let request = Text::default();
        let run = conversation.run(&runner, turn, request, Closing::Nothing, stop.clone());
        tokio::pin!(run);
        let interrupted = tokio::select! {
            end = &mut run => return (end, None),
            code = ending.signalled() => End::Signal(code),
            () = reader::gone(watched) => End::Unread,
            () = screen.broken() => End::Unread,
        };
        stop.cancel();
        (run.await, Some(interrupted))
    });
    let end = match (&run_end, interrupted) {
        (_, Some(end)) => end,
        (RunEnd::Finished, None) => {
            if shows_answer {
                let text = answer_text(&conversation.base);
                answer.write_all(format!("{}\n", text.trim()).as_bytes())?;
            }
            End::Done
        }
        (RunEnd::Stopped, None) => End::Done,
        (RunEnd::Failed(error), None) => {
            eprintln!("Error: {error}");
            End::Failed
        }
    };
    if !asks || end != End::Done {
        if let Some(frames) = frames {
            frames.end(&run_end);
        }
        return Ok(conclude(runtime, ending, &screen, writer, end));
    }
    screen.close();
    let end = match last_words(&runtime, &mut ending, writer) {
        Ok(WriterEnd::Complete) => match question::ask(&runtime, &mut ending) {
            Wish::GoOn => {
                let shown = chat::shown_after(history, &conversation.base);
                let stage = chat::Stage {
                    runtime,
                    ending,
                    frames,
                    runner,
                    conversation,
                    shown,
                };
                return chat::go_on(&job, stage, answer);
            }
            Wish::End => End::Done,
            Wish::Signal(code) => End::Signal(code),
        },
        Ok(_) => End::Unread,
        Err(code) => End::Signal(code),
    };
    if let Some(frames) = frames {
        frames.end(&run_end);
    }
    Ok(leave(runtime, end))
}

fn printer(output: Output, detail: Detail) -> TextPrinter {
    let format = match output {
        Output::Text => TextFormat::Text,
        Output::Json => TextFormat::Json,
        Output::Yaml => TextFormat::Yaml,
    };
    let metadata = match detail {
        Detail::Plain => Metadata::None,
        Detail::Metadata => Metadata::Short,
        Detail::Full => Metadata::Full,
    };
    TextPrinter::new(format, metadata)
}

/// Returns the model's text since the last prompt.
fn answer_text(turn: &Turn) -> String {
    let since_prompt = turn.blocks.iter().rev();
    let since_prompt = since_prompt.take_while(|block| block.kind != BlockKind::User);
    let mut texts: Vec<&str> = since_prompt
        .filter(|block| block.kind == BlockKind::LlmText)
        .filter_map(|block| block.payload_text("text"))
        .collect();
    texts.reverse();
    texts.concat()
}
