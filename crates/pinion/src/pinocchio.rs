//! `run-command`: prompts kept in YAML files, run over the engine and told as Pinocchio tells them.

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

/// Why a run, or serving requests, is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everything that was asked is done.
    Done,
    /// The run failed, or the input did.
    Failed,
    /// Nobody reads what we write.
    Unread,
    /// A signal; its exit code.
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

/// The way out: nothing is left running, and what was said is read if there is somebody to read it.
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

/// Leaves nothing running.
fn leave(runtime: Runtime, end: End) -> ExitCode {
    pinion_process::kill_all();
    // Threads that still wait for something must not keep the process.
    runtime.shutdown_background();
    end.exit_code()
}
