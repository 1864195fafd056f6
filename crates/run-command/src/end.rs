//! The end of a run, and of the process's work for it.

use std::time::Duration;

use pinion_jsonl::{Outgoing, Queue, Writer, WriterEnd};
use pinion_pinocchio::RunEnd;
use pinion_process::signals::ShutdownSignals;
use tokio::runtime::Runtime;

/// The longest wait for the writer when the program must end.
const WRITER_TIMEOUT: Duration = Duration::from_millis(800);

/// The reason why a run, or serving requests, is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything that the client requested is done.
    Done,
    /// The run failed, or the input did.
    Failed,
    /// The reader of standard output is gone.
    Unread,
    /// A signal ended it; holds the exit code.
    Signal(u8),
}

impl End {
    pub(crate) fn of(end: &RunEnd) -> Self {
        match end {
            RunEnd::Finished | RunEnd::Stopped => Self::Done,
            RunEnd::Failed(_) => Self::Failed,
        }
    }
}

/// Ends the processes of the run. After a regular end it waits until the rest of the queue is written or a signal
/// arrives; otherwise it waits for the writer at most `WRITER_TIMEOUT`.
pub(crate) fn conclude<T: Outgoing>(
    runtime: Runtime,
    mut signals: ShutdownSignals,
    queue: &Queue<T>,
    writer: Writer,
    end: End,
) -> End {
    pinion_process::kill_all();
    queue.close();
    let end = match end {
        End::Done | End::Failed => match runtime.block_on(writer.join_unless(signals.received())) {
            Ok(WriterEnd::Complete) => end,
            Ok(_) => End::Unread,
            Err(code) => End::Signal(code),
        },
        End::Unread | End::Signal(_) => {
            writer.join_within(WRITER_TIMEOUT);
            end
        }
    };
    leave(runtime);
    end
}

/// Ends every process that is left.
pub(crate) fn leave(runtime: Runtime) {
    pinion_process::kill_all();
    // Threads that still wait for something must not delay the exit of the process.
    runtime.shutdown_background();
}
