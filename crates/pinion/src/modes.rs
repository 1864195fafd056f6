//! The modes of a run: a chat on a terminal, RPC with one session or several, events as JSON lines, or only the answer.

mod chat;
mod conversation;
mod json;
mod opencode;
mod print;
mod rpc;
mod serving;
mod several;
mod status_line;

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinion_agent::{Hooks, Listener, Stopper};
use pinion_extensions::{Extensions, RecordSink, RoomCheck};
use pinion_jsonl::{Coalesce, Outgoing, Queue, Writer, WriterEnd};
use pinion_pi::{Additions, Dialect, Out, Projection, Sink};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub(crate) use self::chat::chat;
pub(crate) use self::json::json;
pub(crate) use self::opencode::opencode;
pub(crate) use self::print::print;
pub(crate) use self::rpc::rpc;
pub(crate) use self::several::several;
use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, Engine, Shared};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::preferences::SavedPreferences;
use crate::program::Program;
use crate::signals::Ending;

/// The reason why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed its end.
    Input,
    /// An extension requested the end.
    Asked,
    /// The reader of standard output is gone.
    Output,
    /// A signal; its exit code.
    Signal(u8),
    /// An extension ended the program, with this exit code.
    Exit(u8),
}

impl End {
    fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Input | Self::Asked => 0,
            Self::Output => 1,
            Self::Signal(code) | Self::Exit(code) => code,
        })
    }
}

/// Longest wait for extensions to shut down.
const FAREWELL: Duration = Duration::from_secs(5);
/// Longest wait, when the program must end, for a run to settle and for the client to read the last lines.
const LAST_WORDS: Duration = Duration::from_millis(800);

/// Refuses `@file` arguments: in RPC mode the client sends the content of files itself.
fn refuse_files(flags: &Flags) -> Result<(), Failure> {
    match flags.prompt.files.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(
            "Error: @file arguments are not supported in RPC mode",
        )),
    }
}

fn coalesce(flags: &Flags) -> Coalesce {
    match flags.no_coalesce {
        true => Coalesce::Never,
        false => Coalesce::WhenBehind,
    }
}

/// Opens the one conversation of a process and builds its session.
fn the_engine(
    runtime: &Runtime,
    program: Program,
    flags: &Flags,
    basis: Basis,
    listeners: Vec<Arc<dyn Listener>>,
    audience: Audience,
    shared: &Shared,
) -> Result<Engine, Failure> {
    let conversation = Conversation::open(flags, &basis)?;
    runtime.block_on(engine::build(
        program,
        flags,
        basis,
        conversation,
        Company::new(listeners, audience),
        shared,
    ))
}

/// Projects events to lines of `dialect`. With extensions loaded, the lines include the events of pi 0.73, because
/// extensions are written for it.
fn projection(dialect: Dialect, engine: &Engine) -> Projection {
    Projection::new(dialect, additions(engine))
}

fn additions(engine: &Engine) -> Additions {
    match engine.extensions {
        None => Additions::None,
        Some(_) => Additions::OfExtensions,
    }
}

/// Returns a sink that sends the records of extensions to the writer.
fn records(out: impl Sink) -> RecordSink {
    Arc::new(move |record| out.push(Out::Record(line_of(record))))
}

/// Returns a check whether the writer has room for records of extensions.
fn room(out: impl Sink) -> RoomCheck {
    Arc::new(move || out.has_room())
}

fn line_of(record: String) -> Vec<u8> {
    let mut line = record.into_bytes();
    line.push(b'\n');
    line
}

/// Informs extensions that the session ends, and waits up to `FAREWELL` for their shutdown hooks.
pub(crate) async fn farewell(extensions: &Extensions) {
    let farewell = Hooks::shutdown(extensions);
    // An extension that takes longer is abandoned.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Stops the current run and waits up to `LAST_WORDS`, so that the session file is complete.
pub(crate) async fn stop_session(stopper: &Stopper, task: JoinHandle<()>) {
    stopper.stop();
    // A session that does not settle in time is abandoned; its file is valid at any moment.
    let _ = tokio::time::timeout(LAST_WORDS, task).await;
}

/// Waits until the reader has read everything or is gone. A signal ends the wait for a reader that never finishes; the
/// error is its exit code.
pub(crate) fn last_words(
    runtime: &Runtime,
    ending: &mut Ending,
    writer: Writer,
) -> Result<WriterEnd, u8> {
    runtime.block_on(writer.join_unless(ending.signalled()))
}

/// Ends the process after serving: kills child processes, saves preferences, and writes the remaining lines if there is
/// a reader.
fn conclude<T: Outgoing>(
    runtime: Runtime,
    mut ending: Ending,
    preferences: &SavedPreferences,
    queue: &Queue<T>,
    writer: Writer,
    end: End,
) -> ExitCode {
    pinion_process::kill_all();
    preferences.flush();
    queue.close();
    let (end, written) = match end {
        End::Input | End::Asked | End::Exit(_) => match last_words(&runtime, &mut ending, writer) {
            Ok(written) => (end, Some(written)),
            Err(code) => (End::Signal(code), None),
        },
        End::Output | End::Signal(_) => (end, writer.join_within(LAST_WORDS)),
    };
    let end = match (end, written) {
        (end, Some(WriterEnd::Broken(error))) => {
            if error.kind() != ErrorKind::BrokenPipe {
                eprintln!("Error: could not write to standard output: {error}");
            }
            match end {
                // Lines are missing, no matter which of the two ends was noticed first.
                End::Input | End::Asked => End::Output,
                end => end,
            }
        }
        (end, _) => end,
    };
    // Threads that still wait for something must not delay the exit of the process.
    runtime.shutdown_background();
    end.exit_code()
}
