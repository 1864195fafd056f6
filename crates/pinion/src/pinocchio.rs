//! `run-command`: runs prompts stored in YAML files with the engine and prints the run in Pinocchio's formats.

mod chat;
mod conversation;
mod frames;
mod job;
mod kept;
mod models;
mod options;
mod pages;
mod question;
mod requests;
mod running;
mod text;
mod verbs;
mod words;

use std::process::ExitCode;

use pinion_jsonl::{Outgoing, Queue, Writer, WriterEnd};
use tokio::runtime::Runtime;

pub(crate) use self::verbs::{Verb, run};
use crate::modes::{LAST_WORDS, last_words};
use crate::signals::Ending;

/// The reason why a run, or serving requests, is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everything that the client asked for is done.
    Done,
    /// The run failed, or the input did.
    Failed,
    /// The reader of standard output is gone.
    Unread,
    /// A signal ended it; holds the exit code.
    Signal(u8),
}

impl End {
    fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Failed | Self::Unread => 1,
            Self::Signal(code) => code,
        })
    }
}

/// Ends the processes of the run and returns the exit code. After a regular end it waits until the rest of the queue is
/// written or a signal arrives; otherwise it waits for the writer at most `LAST_WORDS`.
fn conclude<T: Outgoing>(
    runtime: Runtime,
    mut ending: Ending,
    queue: &Queue<T>,
    writer: Writer,
    end: End,
) -> ExitCode {
    pinion_process::kill_all();
    queue.close();
    let end = match end {
        End::Done | End::Failed => match last_words(&runtime, &mut ending, writer) {
            Ok(WriterEnd::Complete) => end,
            Ok(_) => End::Unread,
            Err(code) => End::Signal(code),
        },
        End::Unread | End::Signal(_) => {
            writer.join_within(LAST_WORDS);
            end
        }
    };
    leave(runtime, end)
}

/// Ends every process that is left and returns the exit code.
fn leave(runtime: Runtime, end: End) -> ExitCode {
    pinion_process::kill_all();
    // Threads that still wait for something must not delay the exit of the process.
    runtime.shutdown_background();
    end.exit_code()
}
