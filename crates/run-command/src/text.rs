//! A run for people and scripts: the answer as it arrives, or every event as JSON or YAML. Frames are made only for a
//! store: the file of `--debug-events-jsonl`, or a timeline. A user who reads the answer on a terminal may continue
//! in the chat.

use std::io::{IsTerminal, Write};

use pinion_history::{BlockKind, Turn};
use pinion_jsonl::{Coalesce, Queue, Writer, WriterEnd, stdio};
use pinion_pinocchio::{Closing, RunEnd, Text, TextFormat, TextPrinter};
use pinion_process::signals::ShutdownSignals;
use pinion_process::{reader, runtime};
use tokio_util::sync::CancellationToken;

use crate::chat::{self, ChatParts};
use crate::conversation::{Conversation, Unanswered};
use crate::debug_file::DebugFile;
use crate::end::{conclude, leave};
use crate::job::Job;
use crate::options::ContinueInChat;
use crate::question::{self, Reply};
use crate::{End, RunError, stderr};

/// Runs a command once and prints the answer or the events.
pub(crate) fn run(mut job: Job, format: TextFormat) -> Result<End, RunError> {
    let mut stores = job.open_stores().map_err(RunError::Failed)?;
    let asks = match job.options.continue_in_chat {
        ContinueInChat::Never => false,
        ContinueInChat::AskOnTerminal => std::io::stdout().is_terminal(),
        ContinueInChat::Ask => true,
    };
    let history = if asks {
        chat::history(&job, &mut stores).map_err(RunError::Failed)?
    } else {
        Vec::new()
    };
    let stdout = stdio::claim_stdout()?;
    let runtime = runtime::build()?;
    let mut signals = ShutdownSignals::listen_to_all(&runtime)?;
    let mut debug_file = DebugFile::open(&mut job, stores.timeline.take())?;
    let engine = DebugFile::build_engine(&mut debug_file, &job, &runtime)?;
    let turn = job.first_turn(stores.resumed.take());
    let screen = Queue::new(Coalesce::Never);
    // Frames in a file are for debugging; then pinion prints only the answer.
    let prints_only_answer = job.options.debug_events.is_some();
    let mut queues = Vec::new();
    if !prints_only_answer {
        queues.push(screen.clone());
    }
    queues.extend(debug_file.iter().map(DebugFile::queue));
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
    let printer = TextPrinter::new(format, job.options.metadata);
    let writer = Writer::spawn(stdout, printer, screen.clone())?;
    let (run_end, interrupted) = runtime.block_on(async {
        let stop = CancellationToken::new();
        let request = Text::default();
        let run = conversation.run(&engine, turn, request, Closing::Nothing, stop.clone());
        tokio::pin!(run);
        let interrupted = tokio::select! {
            end = &mut run => return (end, None),
            code = signals.received() => End::Signal(code),
            () = reader::gone(watched) => End::Unread,
            () = screen.broken() => End::Unread,
        };
        stop.cancel();
        (run.await, Some(interrupted))
    });
    if let (RunEnd::Failed(error), None) = (&run_end, interrupted) {
        stderr::error(error);
    }
    if prints_only_answer && run_end == RunEnd::Finished && interrupted.is_none() {
        let text = answer_text(&conversation.base);
        answer.write_all(format!("{}\n", text.trim()).as_bytes())?;
    }
    let end = interrupted.unwrap_or_else(|| End::of(&run_end));
    if !asks || end != End::Done {
        if let Some(debug_file) = debug_file {
            debug_file.end(&run_end);
        }
        return Ok(conclude(runtime, signals, &screen, writer, end));
    }
    screen.close();
    let end = match runtime.block_on(writer.join_unless(signals.received())) {
        Ok(WriterEnd::Complete) => match question::ask(&runtime, &mut signals) {
            Reply::Yes => {
                let parts = ChatParts {
                    shown: chat::shown_after(history, &conversation.base),
                    runtime,
                    signals,
                    debug_file,
                    engine,
                    conversation,
                };
                return chat::continue_conversation(&job, parts, answer);
            }
            Reply::No => End::Done,
            Reply::Signal(code) => End::Signal(code),
        },
        Ok(_) => End::Unread,
        Err(code) => End::Signal(code),
    };
    if let Some(debug_file) = debug_file {
        debug_file.end(&run_end);
    }
    leave(runtime);
    Ok(end)
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
