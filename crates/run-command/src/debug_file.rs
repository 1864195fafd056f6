//! Frames that are stored and not shown: in the file of `--debug-events-jsonl`, in a timeline, or both.

use std::fs::OpenOptions;

use pinion_history::TimelineStore;
use pinion_jsonl::{Coalesce, Queue, Writer, WriterEnd};
use pinion_pinocchio::{
    Address, Control, DoneStatus, ErrorCode, Front, FrontOptions, Out, RunEnd, Surface, Terminal,
    Text,
};
use tokio::runtime::Runtime;

use crate::engine::Engine;
use crate::job::Job;
use crate::{RunError, stderr};

/// The queue and the writer of stored frames.
pub(crate) struct DebugFile {
    queue: Queue<Out>,
    writer: Writer,
    address: Address,
}

impl DebugFile {
    /// Starts making frames if there is a store for them: the file of `--debug-events-jsonl`, or a timeline.
    pub fn open(
        job: &mut Job,
        timeline: Option<Box<dyn TimelineStore>>,
    ) -> Result<Option<Self>, RunError> {
        let file = match (job.debug_file.take(), &timeline) {
            (Some(file), _) => file,
            (None, Some(_)) => OpenOptions::new().write(true).open("/dev/null")?,
            (None, None) => return Ok(None),
        };
        let queue = Queue::new(Coalesce::WhenBehind);
        let front = Front::new(FrontOptions {
            patch_mode: job.options.patch_mode,
            store: timeline,
            copy: None,
        })
        .watched(|message| stderr::warn(message));
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

    /// Returns the queue for the events of runs.
    pub fn queue(&self) -> Queue<Out> {
        self.queue.clone()
    }

    /// Writes the last frames after the end of the last run.
    pub fn end(self, end: &RunEnd) {
        self.frame(Control::Snapshot);
        if let RunEnd::Failed(reason) = end {
            self.error(ErrorCode::RunFailed, reason);
        }
        self.frame(Control::Done(match end {
            RunEnd::Finished => DoneStatus::Ok,
            RunEnd::Stopped => DoneStatus::Stopped,
            RunEnd::Failed(_) => DoneStatus::Failed,
        }));
        self.close();
    }

    /// Writes the reason why there is no run.
    pub fn fail(self, code: ErrorCode, message: &str) {
        self.error(code, message);
        self.frame(Control::Done(DoneStatus::Failed));
        self.close();
    }

    /// Builds the engine of `job`. The debug file records a failure and is then complete.
    pub fn build_engine(
        file: &mut Option<Self>,
        job: &Job,
        runtime: &Runtime,
    ) -> Result<Engine, RunError> {
        job.engine(runtime).map_err(|error| {
            let error = format!("failed to create engine: {error}");
            if let Some(file) = file.take() {
                file.fail(ErrorCode::EngineInitFailed, &error);
            }
            RunError::Failed(error)
        })
    }

    /// Writes an error without a `done` frame, for a chat that could not start or be shown.
    pub fn break_off(self, code: ErrorCode, message: &str) {
        self.error(code, message);
        self.close();
    }

    fn error(&self, code: ErrorCode, message: &str) {
        let message = if message.is_empty() {
            "chat run failed"
        } else {
            message
        };
        self.frame(Control::Error {
            code,
            message: message.to_owned(),
            terminal: Terminal::Yes,
        });
    }

    fn frame(&self, control: Control) {
        self.queue.push(Out::Control {
            address: self.address.clone(),
            control,
        });
    }

    fn close(self) {
        self.queue.close();
        if let WriterEnd::Broken(error) = self.writer.join() {
            stderr::warn(format_args!("the frames are not complete: {error}"));
        }
    }
}
