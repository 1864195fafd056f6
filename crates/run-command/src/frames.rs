//! Runs as frames on standard output: one run, or the runs that requests on standard input ask for.

use std::fs::File;
use std::io::Write;

use pinion_jsonl::{Queue, Writer, read_lines_until_too_long, stdio};
use pinion_pinocchio::{
    Address, Binding, Closing, Control, DoneStatus, ErrorCode, Front, FrontOptions, LINE_LIMIT,
    Out, PatchMode, Surface, Terminal, Text,
};
use pinion_process::signals::ShutdownSignals;
use pinion_process::{reader, runtime};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Conversation, Unanswered};
use crate::end::conclude;
use crate::job::{Job, Stores};
use crate::requests::Requests;
use crate::{End, RunError, stderr};

/// The queue and the writer of the frames, with the runtime.
struct FrameOutput {
    runtime: Runtime,
    signals: ShutdownSignals,
    queue: Queue<Out>,
    writer: Writer,
    /// A copy of standard output, to detect that its reader is gone.
    watched: File,
    /// The address of frames that belong to no request.
    address: Address,
}

impl FrameOutput {
    /// Takes standard output over. The timeline, if there is one, is moved out of `stores`.
    fn open(job: &mut Job, stores: &mut Result<Stores, String>) -> Result<Self, RunError> {
        let stdout = stdio::claim_stdout()?;
        let runtime = runtime::build()?;
        let signals = ShutdownSignals::listen_to_all(&runtime)?;
        let queue = Queue::new(job.options.coalesce);
        let timeline = stores
            .as_mut()
            .ok()
            .and_then(|stores| stores.timeline.take());
        let front = Front::new(FrontOptions {
            patch_mode: job.options.patch_mode,
            store: timeline,
            copy: job
                .debug_file
                .take()
                .map(|file| Box::new(FrameCopy(file)) as Box<dyn Write + Send>),
        });
        let watched = stdout.try_clone()?;
        Ok(Self {
            writer: Writer::spawn(stdout, front, queue.clone())?,
            runtime,
            signals,
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
    fn fail(self, code: ErrorCode, message: String) -> End {
        stderr::error(&message);
        self.frame(Control::Error {
            code,
            message,
            terminal: Terminal::Yes,
        });
        self.frame(Control::Done(DoneStatus::Failed));
        self.end(End::Failed)
    }

    fn end(self, end: End) -> End {
        conclude(self.runtime, self.signals, &self.queue, self.writer, end)
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
struct FrameCopy(File);

impl Write for FrameCopy {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).inspect_err(|error| {
            stderr::warn(format_args!(
                "the file of --debug-events-jsonl is not complete: {error}. The frames on standard output are."
            ));
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Runs a command once.
pub(crate) fn one_shot(mut job: Job) -> Result<End, RunError> {
    let mut stores = job.open_stores();
    let mut output = FrameOutput::open(&mut job, &mut stores)?;
    output.frame(Control::Hello(Surface::OneShot));
    let stores = match stores {
        Ok(stores) => stores,
        Err(error) => return Ok(output.fail(ErrorCode::RunnerInitFailed, error)),
    };
    output.frame(Control::Snapshot);
    let engine = match job.engine(&output.runtime) {
        Ok(engine) => engine,
        Err(error) => {
            let error = format!("failed to create engine: {error}");
            return Ok(output.fail(ErrorCode::EngineInitFailed, error));
        }
    };
    let turn = job.first_turn(stores.resumed.clone());
    let mut conversation = conversation(&job, &output.queue, stores, job.options.patch_mode);
    let end = output.runtime.block_on(async {
        let stop = CancellationToken::new();
        let closing = Closing::Request {
            terminal: Terminal::Yes,
        };
        let run = conversation.run(&engine, turn, Text::default(), closing, stop.clone());
        tokio::pin!(run);
        let unread = unread(&output.watched, &output.queue);
        let end = tokio::select! {
            end = &mut run => return End::of(&end),
            code = output.signals.received() => End::Signal(code),
            () = unread => End::Unread,
        };
        stop.cancel();
        run.await;
        end
    });
    Ok(output.end(end))
}

/// Serves requests on standard input.
pub(crate) fn requests(mut job: Job) -> Result<End, RunError> {
    let mut stores = job.open_stores();
    let mut output = FrameOutput::open(&mut job, &mut stores)?;
    output.frame(Control::Hello(Surface::Stdin));
    let stores = match stores {
        Ok(stores) => stores,
        Err(error) => return Ok(output.fail(ErrorCode::RunnerInitFailed, error)),
    };
    let engine = job.engine(&output.runtime);
    let binding = match job.options.session_id {
        Some(_) => Binding::to(job.session_id.clone()),
        None => Binding::new(job.session_id.clone()),
    };
    let conversation = conversation(&job, &output.queue, stores, job.options.patch_mode);
    let lines = read_lines_until_too_long(std::io::stdin(), LINE_LIMIT);
    let end = output.runtime.block_on(async {
        let unread = unread(&output.watched, &output.queue);
        let interrupted = async {
            tokio::select! {
                code = output.signals.received() => End::Signal(code),
                () = unread => End::Unread,
            }
        };
        Requests::new(binding, output.queue.clone(), &engine, conversation)
            .serve(lines, interrupted)
            .await
    });
    Ok(output.end(end))
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
