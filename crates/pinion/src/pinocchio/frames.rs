//! Runs as frames on standard output: one run, or the runs that requests on standard input ask for.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;

use pinion_jsonl::{Queue, Writer, read_lines_until_too_long, stdio};
use pinion_pinocchio::{
    Address, Binding, Closing, Control, DoneStatus, ErrorCode, Front, FrontOptions, LINE_LIMIT,
    Out, PatchMode, RunEnd, Surface, Terminal, Text,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::conversation::{Conversation, Unanswered};
use super::job::{Job, Stores};
use super::requests::Requests;
use super::running::Runner;
use super::{End, conclude};
use crate::failure::Failure;
use crate::signals::Ending;
use crate::{reader, runtime};

/// The queue and the writer of the frames, with the runtime.
struct Stage {
    runtime: Runtime,
    ending: Ending,
    queue: Queue<Out>,
    writer: Writer,
    /// A copy of standard output, to detect that its reader is gone.
    watched: File,
    /// The address of frames that belong to no request.
    address: Address,
}

impl Stage {
    fn set(job: &mut Job, stores: &mut Result<Stores, String>) -> Result<Self, Failure> {
        let stdout = stdio::claim_stdout()?;
        let runtime = runtime::build()?;
        let ending = Ending::listen_to_all(&runtime)?;
        let queue = Queue::new(job.options.coalesce);
        let timeline = stores
            .as_mut()
            .ok()
            .and_then(|stores| stores.timeline.take());
        let front = Front::new(FrontOptions {
            patch_mode: job.options.patch_mode,
            store: timeline,
            copy: job
                .debug_events
                .take()
                .map(|file| Box::new(Copied(file)) as Box<dyn Write + Send>),
        });
        let watched = stdout.try_clone()?;
        Ok(Self {
            writer: Writer::spawn(stdout, front, queue.clone())?,
            runtime,
            ending,
            queue,
            watched,
            address: Address {
                session_id: job.session_id.clone(),
                request_id: Text::default(),
            },
        })
    }

    fn frame(&self, control: Control) {
        self.queue.push(Out::Control {
            address: self.address.clone(),
            control,
        });
    }

    /// Reports that there will be no run, and why.
    fn fail(self, code: ErrorCode, message: String) -> ExitCode {
        eprintln!("Error: {message}");
        self.frame(Control::Error {
            code,
            message,
            terminal: Terminal::Yes,
        });
        self.frame(Control::Done(DoneStatus::Failed));
        self.end(End::Failed)
    }

    fn end(self, end: End) -> ExitCode {
        conclude(self.runtime, self.ending, &self.queue, self.writer, end)
    }
}

fn conversation(job: &Job, queue: &Queue<Out>, stores: Stores, mode: PatchMode) -> Conversation {
    Conversation {
        session_id: job.session_id.clone(),
        base: stores.resumed.unwrap_or_else(|| job.seed.clone()),
        turns: stores.turns,
        queues: vec![queue.clone()],
        patch_mode: mode,
        listeners: Vec::new(),
        unanswered: Unanswered::Forgotten,
    }
}

/// A file that receives the frames as well. The front stops writing to it after its first failure, which is reported.
struct Copied(File);

impl Write for Copied {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).inspect_err(|error| {
            eprintln!(
                "Warning: the file of --debug-events-jsonl is not complete: {error}. The frames on standard output are."
            );
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Runs a command once.
pub(super) fn one_shot(mut job: Job) -> Result<ExitCode, Failure> {
    let mut stores = job.open_stores();
    let mut stage = Stage::set(&mut job, &mut stores)?;
    stage.frame(Control::Hello(Surface::OneShot));
    let stores = match stores {
        Ok(stores) => stores,
        Err(error) => return Ok(stage.fail(ErrorCode::RunnerInitFailed, error)),
    };
    stage.frame(Control::Snapshot);
    let runner = match job.runner(&stage.runtime) {
        Ok(runner) => runner,
        Err(error) => {
            let error = format!("failed to create engine: {error}");
            return Ok(stage.fail(ErrorCode::EngineInitFailed, error));
        }
    };
    let turn = job.first_turn(stores.resumed.clone());
    let mut conversation = conversation(&job, &stage.queue, stores, job.options.patch_mode);
    let end = stage.runtime.block_on(async {
        let stop = CancellationToken::new();
        let closing = Closing::Request {
            terminal: Terminal::Yes,
        };
        let run = conversation.run(&runner, turn, Text::default(), closing, stop.clone());
        tokio::pin!(run);
        let broken = unread(&stage.watched, &stage.queue);
        let end = tokio::select! {
            end = &mut run => return End::of(&end),
            code = stage.ending.signalled() => End::Signal(code),
            () = broken => End::Unread,
        };
        stop.cancel();
        run.await;
        end
    });
    Ok(stage.end(end))
}

/// Serves requests on standard input.
pub(super) fn requests(mut job: Job) -> Result<ExitCode, Failure> {
    let mut stores = job.open_stores();
    let mut stage = Stage::set(&mut job, &mut stores)?;
    stage.frame(Control::Hello(Surface::Stdin));
    let stores = match stores {
        Ok(stores) => stores,
        Err(error) => return Ok(stage.fail(ErrorCode::RunnerInitFailed, error)),
    };
    let runner: Result<Runner, String> = job.runner(&stage.runtime);
    let binding = match job.options.session_id {
        Some(_) => Binding::to(job.session_id.clone()),
        None => Binding::new(job.session_id.clone()),
    };
    let conversation = conversation(&job, &stage.queue, stores, job.options.patch_mode);
    let lines = read_lines_until_too_long(std::io::stdin(), LINE_LIMIT);
    let end = stage.runtime.block_on(async {
        let broken = unread(&stage.watched, &stage.queue);
        let interrupted = async {
            tokio::select! {
                code = stage.ending.signalled() => End::Signal(code),
                () = broken => End::Unread,
            }
        };
        Requests::new(binding, stage.queue.clone(), &runner, conversation)
            .serve(lines, interrupted)
            .await
    });
    Ok(stage.end(end))
}

/// Waits until the reader of standard output is gone.
async fn unread(watched: &File, queue: &Queue<Out>) {
    let gone = async {
        match watched.try_clone() {
            Ok(watched) => reader::gone(watched).await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = gone => {}
        () = queue.broken() => {}
    }
}

impl End {
    fn of(end: &RunEnd) -> Self {
        match end {
            RunEnd::Finished | RunEnd::Stopped => Self::Done,
            RunEnd::Failed(_) => Self::Failed,
        }
    }
}
