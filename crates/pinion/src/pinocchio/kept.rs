//! Frames that are only stored, not shown: in a file, in a timeline, or both.

use std::fs::{File, OpenOptions};

use pinion_history::TimelineStore;
use pinion_jsonl::{Coalesce, Queue, Writer, WriterEnd};
use pinion_pinocchio::{
    Address, Control, DoneStatus, ErrorCode, Front, FrontOptions, Out, RunEnd, Surface, Terminal,
    Text,
};

use super::job::Job;
use crate::failure::Failure;

/// The queue and the writer of stored frames.
pub(super) struct KeptFrames {
    queue: Queue<Out>,
    writer: Writer,
    address: Address,
}

impl KeptFrames {
    /// Starts making frames if there is a store for them: the file of `--debug-events-jsonl`, or a timeline.
    pub fn begin(
        job: &mut Job,
        timeline: Option<Box<dyn TimelineStore>>,
    ) -> Result<Option<Self>, Failure> {
        let file = match (job.debug_events.take(), &timeline) {
            (Some(file), _) => file,
            (None, Some(_)) => nowhere()?,
            (None, None) => return Ok(None),
        };
        let queue = Queue::new(Coalesce::WhenBehind);
        let front = Front::new(FrontOptions {
            patch_mode: job.options.patch_mode,
            store: timeline,
            copy: None,
        })
        .watched(|words| eprintln!("Warning: {words}"));
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
        if let RunEnd::Failed(words) = end {
            self.error(ErrorCode::RunFailed, words);
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

    /// Writes an error without a `done` frame, for a chat that could not start or be shown.
    pub fn break_off(self, code: ErrorCode, message: &str) {
        self.error(code, message);
        self.close();
    }

    fn error(&self, code: ErrorCode, message: &str) {
        let message = match message.is_empty() {
            true => "chat run failed",
            false => message,
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
            eprintln!("Warning: the frames are not complete: {error}");
        }
    }
}

fn nowhere() -> Result<File, Failure> {
    Ok(OpenOptions::new().write(true).open("/dev/null")?)
}
