//! The ways a run talks: a chat on a terminal, RPC with one session or several, events as JSON lines, or just the
//! answer.

pub(crate) mod chat;
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

/// Why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed its end.
    Input,
    /// An extension asked for it.
    Asked,
    /// Nobody reads what we write.
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

/// How long extensions may take to end.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a run may take to settle, and its last lines to be read, when the program must end.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(800);

/// A client sends what files would say.
fn refuse_files(flags: &Flags) -> Result<(), Failure> {
    match flags.files.is_empty() {
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

/// Opens the one conversation of a process and puts its session together.
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

/// Events as lines; with those of pi 0.73 where extensions, which are written for it, are loaded.
fn projection(dialect: Dialect, engine: &Engine) -> Projection {
    Projection::new(dialect, additions(engine))
}

fn additions(engine: &Engine) -> Additions {
    match engine.extensions {
        None => Additions::None,
        Some(_) => Additions::OfExtensions,
    }
}

/// Takes records of extensions to the writer.
fn records(out: impl Sink) -> RecordSink {
    Arc::new(move |record| out.push(Out::Record(line_of(record))))
}

/// Whether the writer has room for records of extensions.
fn room(out: impl Sink) -> RoomCheck {
    Arc::new(move || out.has_room())
}

fn line_of(record: String) -> Vec<u8> {
    let mut line = record.into_bytes();
    line.push(b'\n');
    line
}

/// Tells extensions that the session ends, and waits a while for what they still do.
pub(crate) async fn farewell(extensions: &Extensions) {
    let farewell = Hooks::shutdown(extensions);
    // Who takes longer is left behind.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// Stops what is going on and waits a moment, so that what was said is saved.
pub(crate) async fn stop_session(stopper: &Stopper, task: JoinHandle<()>) {
    stopper.stop();
    // A session that does not settle in time is left behind; its file is whole at any moment.
    let _ = tokio::time::timeout(LAST_WORDS, task).await;
}

/// Waits until everything has been read, or cannot be; a reader that takes for ever is ended by a
/// signal, whose exit code is the error.
pub(crate) fn last_words(
    runtime: &Runtime,
    ending: &mut Ending,
    writer: Writer,
) -> Result<WriterEnd, u8> {
    runtime.block_on(async {
        tokio::select! {
            end = tokio::task::spawn_blocking(move || writer.join()) => {
                Ok(end.unwrap_or_else(|error| WriterEnd::Broken(error.into())))
            }
            code = ending.signalled() => Err(code),
        }
    })
}

/// The way out when serving has ended: nothing is left running, everything is saved, and what was said is
/// read if there is somebody to read it.
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
                // Lines are missing, whichever of the two ends was noticed first.
                End::Input | End::Asked => End::Output,
                end => end,
            }
        }
        (end, _) => end,
    };
    // Threads that still wait for something must not keep the process.
    runtime.shutdown_background();
    end.exit_code()
}
