//! A run for people and scripts: the answer as it comes, or every event as JSON or YAML. Frames are made only where
//! something keeps them: a file that was asked for, or a timeline.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::ExitCode;

use pinion_history::{BlockKind, Turn};
use pinion_jsonl::{Coalesce, Queue, Writer, stdio};
use pinion_pinocchio::{
    Address, Closing, Code, Control, DoneStatus, Front, FrontOptions, Metadata, Out, RunEnd,
    Surface, Terminal, Text, TextFormat, TextPrinter,
};
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::job::{Job, Stores};
use super::options::{Detail, Output};
use super::{End, conclude};
use crate::failure::Failure;
use crate::signals::Ending;
use crate::{reader, runtime};

/// Runs a command once and prints what it says.
pub(super) fn run(mut job: Job, output: Output) -> Result<ExitCode, Failure> {
    let failed = |error: String| Failure::failed(format!("Error: {error}"));
    let mut stores = job.open_stores().map_err(failed)?;
    let stdout = stdio::claim_stdout()?;
    let runtime = runtime::build()?;
    let mut ending = Ending::listen_to_all(&runtime)?;
    let frames = Frames::where_kept(&mut job, &mut stores)?;
    let runner = match job.runner(&runtime) {
        Ok(runner) => runner,
        Err(error) => {
            let error = format!("failed to create engine: {error}");
            if let Some(frames) = frames {
                frames.fail(&error);
            }
            return Err(failed(error));
        }
    };
    let turn = job.first_turn(stores.resumed.take());
    let screen = Queue::new(Coalesce::Never);
    // Frames in a file are for looking at closely; then only the answer is printed.
    let shows_answer = job.options.debug_events.is_some();
    let mut queues = vec![screen.clone()];
    if shows_answer {
        queues.clear();
    }
    queues.extend(frames.as_ref().map(|frames| frames.queue.clone()));
    let mut conversation = Conversation {
        session_id: job.session_id.clone(),
        base: job.seed.clone(),
        turns: stores.turns.take(),
        queues,
        patch_mode: job.options.patch_mode,
    };
    let watched = stdout.try_clone()?;
    let mut answer = stdout.try_clone()?;
    let printer = printer(output, job.options.detail);
    let writer = Writer::spawn(stdout, printer, screen.clone())?;
    let run_end = runtime.block_on(async {
        let stop = CancellationToken::new();
        let closing = Closing::Request {
            terminal: Terminal::Yes,
        };
        let run = conversation.run(&runner, turn, Text::default(), closing, stop.clone());
        tokio::pin!(run);
        let interrupted = tokio::select! {
            end = &mut run => return Ok(end),
            code = ending.signalled() => End::Signal(code),
            () = reader::gone(watched) => End::Unread,
            () = screen.broken() => End::Unread,
        };
        stop.cancel();
        run.await;
        Err(interrupted)
    });
    if let Some(frames) = frames {
        frames.end();
    }
    let end = match run_end {
        Ok(RunEnd::Finished) => {
            if shows_answer {
                let text = answer_text(&conversation.base);
                answer.write_all(format!("{}\n", text.trim()).as_bytes())?;
            }
            End::Done
        }
        Ok(RunEnd::Stopped) => End::Done,
        Ok(RunEnd::Failed(error)) => {
            eprintln!("Error: {error}");
            End::Failed
        }
        Err(end) => end,
    };
    Ok(conclude(runtime, ending, &screen, writer, end))
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

/// Frames that nobody waits for: in a file, in a timeline, or both.
struct Frames {
    queue: Queue<Out>,
    writer: Writer,
    address: Address,
}

impl Frames {
    /// Begins to make frames if something keeps them.
    fn where_kept(job: &mut Job, stores: &mut Stores) -> Result<Option<Self>, Failure> {
        let store = stores.timeline.take();
        let file = match (job.debug_events.take(), &store) {
            (Some(file), _) => file,
            (None, Some(_)) => nowhere()?,
            (None, None) => return Ok(None),
        };
        let queue = Queue::new(Coalesce::WhenBehind);
        let front = Front::new(FrontOptions {
            patch_mode: job.options.patch_mode,
            store,
            copy: None,
        });
        let frames = Self {
            writer: Writer::spawn(file, front, queue.clone())?,
            queue,
            address: Address {
                session_id: job.session_id.clone(),
                request_id: Text::default(),
            },
        };
        frames.frame(Control::Hello(Surface::DebugFile));
        frames.frame(Control::Snapshot);
        Ok(Some(frames))
    }

    fn frame(&self, control: Control) {
        self.queue.push(Out::Control {
            address: self.address.clone(),
            control,
        });
    }

    fn fail(self, message: &str) {
        self.frame(Control::Error {
            code: Code::EngineInitFailed,
            message: message.to_owned(),
            terminal: Terminal::Yes,
        });
        self.frame(Control::Done(DoneStatus::Failed));
        self.end();
    }

    fn end(self) {
        self.queue.close();
        if let pinion_jsonl::WriterEnd::Broken(error) = self.writer.join() {
            eprintln!("Warning: the frames are not complete: {error}");
        }
    }
}

fn nowhere() -> Result<File, Failure> {
    Ok(OpenOptions::new().write(true).open("/dev/null")?)
}

/// What the model said last.
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
